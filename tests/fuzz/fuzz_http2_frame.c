/*
 * Frames of HTTP/2: the bytes of a connection, one frame after the other.
 *
 * A frame whose head is good has a payload that its readers take without looking behind it. What is
 * stripped of padding is a part of the payload. What was read is written as the same bytes.
 */
#include "base/assert.h"
#include "http2/frame.h"
#include "http2/stream.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct slice part, struct slice whole) {
    return part.base >= whole.base && part.base + part.length <= whole.base + whole.length;
}

static void check_stripped(const struct http2_frame *frame, struct slice payload) {
    struct slice stripped = payload;
    struct http2_fault fault = http2_frame_strip_padding(frame, &stripped);
    ASSERT((fault.text == NULL) == (fault.error == HTTP2_NO_ERROR));
    if (fault.error != HTTP2_NO_ERROR && !fault.of_stream)
        return;
    ASSERT(is_inside(stripped, payload));
    if (!(frame->flags & HTTP2_PADDED))
        return;
    size_t padding = (unsigned char)payload.base[0];
    size_t priority =
        frame->type == HTTP2_HEADERS && frame->flags & HTTP2_HAS_PRIORITY ? HTTP2_PRIORITY_SIZE : 0;
    ASSERT(stripped.length + padding + priority + 1 == payload.length);
}

static void check_settings(struct slice payload) {
    char written[HTTP2_SETTING_SIZE];
    struct slice rest = payload;
    uint16_t id;
    uint32_t value;
    for (size_t at = 0; http2_frame_next_setting(&rest, &id, &value); at += HTTP2_SETTING_SIZE) {
        struct http2_fault fault = http2_setting_check(id, value);
        ASSERT(!fault.of_stream && (fault.text == NULL) == (fault.error == HTTP2_NO_ERROR));
        http2_frame_put_setting(written, (enum http2_setting)(id & 0xff), value);
        written[0] = (char)(id >> 8);
        ASSERT(memcmp(written, payload.base + at, sizeof written) == 0);
    }
    ASSERT(rest.length == 0);
}

static void check_goaway(const struct http2_frame *frame, struct slice payload) {
    uint32_t last, error;
    struct slice text;
    http2_frame_read_goaway(payload, &last, &error, &text);
    ASSERT(is_inside(text, payload) && text.length + HTTP2_GOAWAY_SIZE == frame->length);
    char *written = malloc(HTTP2_FRAME_HEAD + frame->length);
    char *end = http2_frame_put_goaway(written, last, (enum http2_error)error, text);
    ASSERT(end == written + HTTP2_FRAME_HEAD + frame->length);
    written[HTTP2_FRAME_HEAD] |= payload.base[0] & (char)0x80; /* the reserved bit */
    ASSERT(memcmp(written + HTTP2_FRAME_HEAD, payload.base, payload.length) == 0);
    free(written);
}

static void check_priority_update(struct slice payload) {
    uint32_t stream;
    struct slice value;
    struct http2_priority priority;
    http2_frame_read_priority_update(payload, &stream, &value);
    ASSERT(is_inside(value, payload) && value.length + 4 == payload.length);
    http2_priority_parse(value, &priority);
    ASSERT(priority.urgency <= HTTP2_URGENCY_LEAST);
}

static void check_payload(const struct http2_frame *frame, struct slice payload) {
    uint32_t increment;
    switch (frame->type) {
    case HTTP2_DATA:
    case HTTP2_HEADERS: check_stripped(frame, payload); break;
    case HTTP2_PRIORITY: http2_frame_read_priority(frame, payload.base); break;
    case HTTP2_SETTINGS: check_settings(payload); break;
    case HTTP2_GOAWAY: check_goaway(frame, payload); break;
    case HTTP2_WINDOW_UPDATE:
        http2_frame_read_window_update(frame, payload.base, &increment);
        ASSERT(increment <= HTTP2_WINDOW_MOST);
        break;
    case HTTP2_PRIORITY_UPDATE: check_priority_update(payload); break;
    default: break;
    }
}

static void check_head(const struct http2_frame *frame, const char *bytes) {
    char written[HTTP2_FRAME_HEAD];
    http2_frame_write(written, frame->length, (enum http2_frame_type)frame->type, frame->flags,
                      frame->stream);
    written[5] |= bytes[5] & (char)0x80; /* the reserved bit */
    ASSERT(memcmp(written, bytes, sizeof written) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *)data, *end = at + size;
    while (end - at >= HTTP2_FRAME_HEAD) {
        struct http2_frame frame;
        http2_frame_read(&frame, at);
        check_head(&frame, at);
        at += HTTP2_FRAME_HEAD;
        struct http2_fault fault = http2_frame_check(&frame, HTTP2_FRAME_SIZE_DEFAULT);
        ASSERT((fault.text == NULL) == (fault.error == HTTP2_NO_ERROR));
        if ((size_t)(end - at) < frame.length ||
            (fault.error != HTTP2_NO_ERROR && !fault.of_stream))
            break;
        if (fault.error == HTTP2_NO_ERROR) {
            /* a guard of the sanitizer stands behind the payload */
            char *payload = malloc(frame.length > 0 ? frame.length : 1);
            if (frame.length > 0)
                memcpy(payload, at, frame.length);
            check_payload(&frame, slice_make(payload, frame.length));
            free(payload);
        }
        at += frame.length;
    }
    return 0;
}
