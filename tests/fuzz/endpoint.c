#include "endpoint.h"

#include "base/assert.h"
#include "http/head.h"

#include <string.h>

void endpoint_begin(struct endpoint *endpoint) {
    endpoint->wire_end = endpoint->wire;
    endpoint->settings_seen = endpoint->in_block = false;
    endpoint->connection_given = endpoint->window_most = HTTP2_WINDOW_DEFAULT;
    memset(endpoint->given, 0, sizeof endpoint->given);
    hpack_decoder_init(&endpoint->decoder, HPACK_TABLE_DEFAULT);
}

void endpoint_end(struct endpoint *endpoint) {
    hpack_decoder_release(&endpoint->decoder);
}

/* What it puts */

void endpoint_put(struct endpoint *endpoint, struct slice bytes) {
    endpoint->wire_end = slice_put(endpoint->wire_end, bytes);
}

static void note_window_update(struct endpoint *endpoint, uint32_t stream, struct slice payload) {
    if (payload.length != 4)
        return;
    uint32_t value = http2_get32(payload.base) & HTTP2_STREAM_MOST;
    if (stream == 0)
        endpoint->connection_given += value;
    else if (stream < ENDPOINT_STREAMS)
        endpoint->given[stream] += value;
}

static void note_settings(struct endpoint *endpoint, struct slice payload) {
    uint16_t id;
    uint32_t value;
    while (http2_frame_next_setting(&payload, &id, &value))
        if (id == HTTP2_SETTING_INITIAL_WINDOW_SIZE && value > endpoint->window_most)
            endpoint->window_most = value;
}

void endpoint_put_frame(struct endpoint *endpoint, unsigned type, unsigned flags, uint32_t stream,
                        struct slice payload) {
    endpoint->wire_end = http2_frame_write(endpoint->wire_end, payload.length,
                                           (enum http2_frame_type)type, flags, stream);
    endpoint_put(endpoint, payload);
    if (type == HTTP2_WINDOW_UPDATE)
        note_window_update(endpoint, stream, payload);
    else if (type == HTTP2_SETTINGS)
        note_settings(endpoint, payload);
}

void endpoint_put_setting(struct endpoint *endpoint, uint16_t id, uint32_t value) {
    char setting[HTTP2_SETTING_SIZE];
    http2_frame_put_setting(setting, id, value);
    endpoint_put_frame(endpoint, HTTP2_SETTINGS, 0, 0, slice_make(setting, sizeof setting));
}

struct slice endpoint_take_put(struct endpoint *endpoint) {
    struct slice bytes = slice_make(endpoint->wire, (size_t)(endpoint->wire_end - endpoint->wire));
    endpoint->wire_end = endpoint->wire;
    return bytes;
}

/* What it sees */

bool endpoint_next(struct slice *received, struct http2_frame *frame, struct slice *payload) {
    if (received->length < HTTP2_FRAME_HEAD)
        return false;
    http2_frame_read(frame, received->base);
    if (received->length - HTTP2_FRAME_HEAD < frame->length)
        return false;
    *payload = slice_make(received->base + HTTP2_FRAME_HEAD, frame->length);
    *received = slice_make(payload->base + frame->length,
                           received->length - HTTP2_FRAME_HEAD - frame->length);
    return true;
}

static struct hpack_list *see_head(struct endpoint *endpoint) {
    static char text[1 << 18];
    static struct hpack_field fields[HTTP_FIELDS_MAX];
    static struct hpack_list list;
    struct slice block = slice_make(endpoint->block, endpoint->block_length);
    hpack_list_init(&list, text, sizeof text, fields, HTTP_FIELDS_MAX, 1 << 17);
    ASSERT(hpack_decode(&endpoint->decoder, block, &list) == HPACK_GOOD);
    for (unsigned i = 0; i < list.count; i++)
        ASSERT(list.fields[i].is_clean);
    return &list;
}

static struct hpack_list *see_block(struct endpoint *endpoint, const struct http2_frame *frame,
                                    struct slice payload) {
    if (frame->type == HTTP2_HEADERS) {
        endpoint->block_of = *frame;
        endpoint->block_length = 0;
    }
    ASSERT(frame->stream == endpoint->block_of.stream &&
           endpoint->block_length + payload.length <= sizeof endpoint->block);
    slice_put(endpoint->block + endpoint->block_length, payload);
    endpoint->block_length += payload.length;
    endpoint->in_block = !(frame->flags & HTTP2_END_HEADERS);
    return endpoint->in_block ? NULL : see_head(endpoint);
}

static void see_data(struct endpoint *endpoint, const struct http2_frame *frame) {
    endpoint->connection_given -= frame->length;
    ASSERT(endpoint->connection_given >= 0);
    if (frame->stream >= ENDPOINT_STREAMS)
        return;
    endpoint->given[frame->stream] -= frame->length;
    ASSERT(endpoint->given[frame->stream] + endpoint->window_most >= 0);
}

struct hpack_list *endpoint_see(struct endpoint *endpoint, const struct http2_frame *frame,
                                struct slice payload) {
    ASSERT(frame->length <= HTTP2_FRAME_SIZE_DEFAULT);
    ASSERT(endpoint->settings_seen ||
           (frame->type == HTTP2_SETTINGS && !(frame->flags & HTTP2_ACK)));
    ASSERT(endpoint->in_block == (frame->type == HTTP2_CONTINUATION));
    endpoint->settings_seen = true;
    switch (frame->type) {
    case HTTP2_HEADERS:
    case HTTP2_CONTINUATION: return see_block(endpoint, frame, payload);
    case HTTP2_DATA: see_data(endpoint, frame); break;
    case HTTP2_WINDOW_UPDATE: ASSERT(http2_get32(payload.base) > 0); break;
    case HTTP2_SETTINGS:
    case HTTP2_PING:
    case HTTP2_GOAWAY: ASSERT(frame->stream == 0); break;
    case HTTP2_RST_STREAM: break;
    default: ASSERT(!"a frame that we never send");
    }
    return NULL;
}
