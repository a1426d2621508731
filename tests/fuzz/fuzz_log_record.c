/* A line of an access log, as `retortctl logs top` reads it. The input is one line.
 *
 * What must be true: each text stands in the line, or in the JSON of the record; the status has three
 * digits at most; there are no more services than there is room for; and the host is a part of the
 * URL. */
#include "tools/log_entry.h"

#include "base/assert.h"
#include "lines.h"

#include <stdlib.h>

static bool is_inside(struct slice text, struct slice whole) {
    return text.length == 0 ||
           (text.base >= whole.base && text.base + text.length <= whole.base + whole.length);
}

static void log_entry_check(const struct log_entry *record, struct slice line) {
    ASSERT(record->status <= 999 && record->service_count <= LOG_ENTRY_SERVICES);
    ASSERT(is_inside(record->host, record->url));
    if (record->json != NULL)
        return;
    ASSERT(is_inside(record->url, line) && is_inside(record->client, line));
    ASSERT(is_inside(record->result, line));
    for (unsigned i = 0; i < record->service_count; i++)
        ASSERT(is_inside(record->services[i].name, line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice line = lines_copy(slice_make((const char *)data, size));
    struct log_entry record;
    if (log_entry_of_line(&record, line.base, line.length))
        log_entry_check(&record, line);
    log_entry_release(&record);
    free((void *)line.base);
    return 0;
}
