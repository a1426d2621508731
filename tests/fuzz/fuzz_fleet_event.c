/* Entries of the stream of a fleet, as a node reads them. The first byte says what the rest is: an entry, the body of the first
 * event of an epoch, or a body that is signed as an event of a node that has the key.
 *
 * What must be true: what is read as an event is, written again, the same text. An end that is known has a number. */
#include "fleet/chains.h"

#include "base/assert.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fleet_key key = {
    .fleet = "edge", .length = 32, .bytes = "0123456789abcdef0123456789abcdef"};

static void check_entry(struct slice text) {
    struct fleet_event event;
    if (!fleet_event_read(&event, text, &key) || !fleet_event_is_known(&event))
        return;
    char *again = fleet_event_write(&event, &key);
    ASSERT(slice_equal(slice_from(again), text));
    free(again);
}

static void check_signed(struct slice body) {
    struct fleet_event event = {.kind = FLEET_PURGE, .node = "n7", .number = 7, .body = body}, read;
    if (memchr(body.base, '\0', body.length) != NULL)
        return;
    char *text = fleet_event_write(&event, &key);
    ASSERT(fleet_event_read(&read, slice_from(text), &key));
    ASSERT(slice_equal(read.body, body));
    check_entry(slice_from(text));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fleet_end end;
    if (size < 1 || size > FLEET_BODY_MAX)
        return 0;
    char *copy = malloc(size); /* without a byte behind it */
    memcpy(copy, data + 1, size - 1);
    struct slice text = slice_make(copy, size - 1);
    switch (data[0] % 3) {
    case 0: check_entry(text); break;
    case 1:
        if (fleet_end_read(&end, text) && end.known)
            ASSERT(end.number <= INT64_MAX);
        break;
    default: check_signed(text); break;
    }
    free(copy);
    return 0;
}
