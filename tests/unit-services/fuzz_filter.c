/* Rules and a URL, one a line, the URL first: whatever they are, the code must come back. */
#include "adremover/filter.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct filter_request request;
    const char *text = (const char *)data, *end = text + size;
    const char *line_end = memchr(text, '\n', size);
    if (line_end == NULL ||
        !filter_request_init(&request, slice_make(text, (size_t)(line_end - text)),
                             SLICE("page.example"), FILTER_TYPE_PARTS))
        return 0;
    struct filter *filter = filter_create();
    for (text = line_end + 1; text < end; text = line_end + 1) {
        line_end = memchr(text, '\n', (size_t)(end - text));
        if (line_end == NULL)
            line_end = end;
        filter_add(filter, slice_make(text, (size_t)(line_end - text)), "fuzz");
    }
    filter_seal(filter);
    filter_match(filter, &request);
    filter_free(&filter);
    return 0;
}
