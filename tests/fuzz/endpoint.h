/*
 * The endpoint of an HTTP/2 connection that a fuzzer plays, a client or an origin: the frames that it
 * puts, what its windows let through, and whether what we send is in order (RFC 9113 §3.4, §4, §5.2).
 *
 *     endpoint_begin(&endpoint);
 *     endpoint_put_frame(&endpoint, HTTP2_DATA, 0, 1, payload);
 *     struct slice bytes = endpoint_take_put(&endpoint);         all that was put since the last time
 *     ...
 *     while (endpoint_next(&received, &frame, &payload)) {
 *         struct hpack_list *list = endpoint_see(&endpoint, &frame, payload);
 *         if (list != NULL) ...                                  the whole head of endpoint.block_of
 *     }
 *     endpoint_end(&endpoint);
 *
 * What must hold is asserted. Threads: one.
 */
#ifndef RETORT_TESTS_FUZZ_ENDPOINT_H
#define RETORT_TESTS_FUZZ_ENDPOINT_H

#include "steps.h"

#include "http2/frame.h"
#include "http2/hpack.h"

/* Of higher streams it is not known what they may be sent. */
enum { ENDPOINT_STREAMS = 256 };

struct endpoint {
    char wire[1 << 20], *wire_end; /* what was put */
    bool settings_seen, in_block;
    /* What the windows let through: all streams, and each; a stream's begins at window_most or less. */
    int64_t connection_given, window_most, given[ENDPOINT_STREAMS];
    /* The head that is coming */
    struct http2_frame block_of;
    char block[1 << 17];
    size_t block_length;
    struct hpack_decoder decoder;
};

void endpoint_begin(struct endpoint *endpoint);
void endpoint_end(struct endpoint *endpoint);

void endpoint_put(struct endpoint *endpoint, struct slice bytes);
/* A frame, whatever its type and flags are; if it is one that lets more through, that counts. */
void endpoint_put_frame(struct endpoint *endpoint, unsigned type, unsigned flags, uint32_t stream,
                        struct slice payload);
/* SETTINGS with one entry. */
void endpoint_put_setting(struct endpoint *endpoint, uint16_t id, uint32_t value);
struct slice endpoint_take_put(struct endpoint *endpoint);

/* Takes a whole frame from the beginning of what has come; false: there is none. */
bool endpoint_next(struct slice *received, struct http2_frame *frame, struct slice *payload);
/* Checks a frame of ours. NULL: it completes no head. The fields are good until the next call. */
struct hpack_list *endpoint_see(struct endpoint *endpoint, const struct http2_frame *frame,
                                struct slice payload);

#endif
