/* What a process that runs a service writes into the memory that it shares with the proxy, and what it
 * says of its module. The input is the ring, and then the words.
 *
 * What must be true: a frame that is received is no longer than a frame may be, and its type is one;
 * a ring that is broken stays so. A verdict that is read has its texts within its bytes. What is
 * believed of a module can stand in logs and metrics. */
#include "base/assert.h"
#include "inside/child.h"
#include "lines.h"
#include "runner/frame.h"
#include "runner/link.h"

#include <string.h>

static bool is_inside(struct slice text, const struct bundle *bundle) {
    return text.base >= bundle->bytes && text.length <= bundle->length &&
           (size_t)(text.base - bundle->bytes) <= bundle->length - text.length;
}

static void read_bundle(struct bundle *bundle) {
    struct facts_verdict verdict;
    struct facts_message message;
    if (!bundle_is_whole(bundle))
        return;
    if (facts_read_verdict(&verdict, bundle)) {
        ASSERT(is_inside(verdict.head, bundle) && is_inside(verdict.because, bundle));
        ASSERT(verdict.skip <= 1 && verdict.failed <= 1 && verdict.answers <= 1);
    }
    if (facts_read_message(&message, bundle))
        ASSERT(is_inside(message.request, bundle) && is_inside(message.head, bundle) &&
               is_inside(message.transaction_id, bundle));
    bundle_release(bundle);
}

/* The first bytes are the index that the process has written. */
static void read_ring(struct link_ring *ring, struct slice input) {
    static char payload[FRAME_PAYLOAD];
    struct bundle bundle = {0};
    struct link link;
    struct frame frame;
    uint32_t written;
    if (input.length < sizeof written)
        return;
    memcpy(&written, input.base, sizeof written);
    size_t length = input.length - sizeof written;
    memcpy(ring->bytes, input.base + sizeof written, length < LINK_RING ? length : LINK_RING);
    atomic_store(&ring->shared.written, written);
    link_open(&link, ring, ring, -1);
    while (link_receive(&link, &frame, payload) == LINK_FRAME) {
        ASSERT(frame.length <= FRAME_PAYLOAD);
        ASSERT(frame.type >= FRAME_OPEN && frame.type < FRAME_TYPES);
        if (!bundle_add(&bundle, &frame, payload))
            bundle_release(&bundle);
        else
            read_bundle(&bundle);
    }
    if (link.in.broken)
        ASSERT(link_receive(&link, &frame, payload) == LINK_BROKEN);
    bundle_release(&bundle);
}

static void check_text(const char *text) {
    for (; *text != '\0'; text++)
        ASSERT(*text >= ' ' && *text <= '~');
}

static void read_told(struct slice input) {
    static struct inside_event_calls told;
    if (!inside_event_calls_read(&told, input.base, input.length))
        return;
    check_text(told.name);
    check_text(told.description);
    check_text(told.notice);
    ASSERT(told.counter_count <= SERVICE_MODULE_COUNTERS && told.points != 0);
    for (unsigned i = 0; i < told.counter_count; i++)
        check_text(told.counters[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct link_ring ring;
    struct slice input = lines_copy(slice_make((const char *)data, size));
    memset(&ring, 0, sizeof ring);
    read_ring(&ring, input);
    read_told(input);
    free((void *)input.base);
    return 0;
}
