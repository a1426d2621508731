/* The text of c-icap's info service. The input is the text.
 *
 * What must be true: a text that is read gives numbers that can be counts, and twice the same text is
 * refused, because each line that counts may be there once. */
#include "icap/info.h"

#include "base/assert.h"
#include "lines.h"

#include <stdlib.h>
#include <string.h>

static void check_numbers(const struct server_numbers *numbers) {
    ASSERT(numbers->requests <= (uint64_t)1 << 53);
    ASSERT(numbers->bytes_in <= (uint64_t)1 << 53 && numbers->bytes_out <= (uint64_t)1 << 53);
    ASSERT(numbers->processes <= (uint64_t)1 << 53);
}

/* A second copy of its lines spoils it, since each is there once. */
static void check_twice(struct slice text) {
    struct server_numbers numbers;
    char *twice = xmalloc(2 * text.length + 1);
    memcpy(twice, text.base, text.length);
    twice[text.length] = '\n';
    memcpy(twice + text.length + 1, text.base, text.length);
    ASSERT(!icap_info_text_read(slice_make(twice, 2 * text.length + 1), &numbers));
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice text = lines_copy(slice_make((const char *)data, size));
    struct server_numbers numbers;
    memset(&numbers, 0, sizeof numbers);
    if (icap_info_text_read(text, &numbers)) {
        check_numbers(&numbers);
        check_twice(text);
    }
    free((void *)text.base);
    return 0;
}
