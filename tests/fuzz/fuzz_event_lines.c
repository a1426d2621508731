/* Lines of the event stream, as `retortctl tail` and `top` read them. The input is lines.
 *
 * What must be true: a transaction is a JSON object, and its data stand in the line. A loss is of one
 * transaction at least, and only comes behind "event: lost". */
#include "tools/event_lines.h"

#include "base/assert.h"
#include "lines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines input = lines_of(data, size);
    struct event_lines lines = {0};
    bool losses = false;
    while (input.rest.length > 0) {
        struct slice line = lines_copy(lines_next(&input));
        if (line.length == 0)
            losses = false;
        losses |= slice_equal(line, SLICE("event: lost"));
        switch (event_lines_take(&lines, line)) {
        case EVENT_LINE_LOSS: ASSERT(losses && event_lines_lost(&lines) > 0); break;
        case EVENT_LINE_TRANSACTION:
            ASSERT(json_is_object(lines.json));
            ASSERT(lines.data.base + lines.data.length == line.base + line.length);
            break;
        case EVENT_LINE_BAD:
        case EVENT_LINE_OTHER: break;
        }
        free((void *)line.base);
    }
    event_lines_release(&lines);
    return 0;
}
