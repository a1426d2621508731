#include "http2/frame.h"

static struct http2_fault wrong_length(void) {
    return http2_connection_fault(HTTP2_FRAME_SIZE_ERROR,
                                  "a frame has a wrong length for its type");
}

/* The frames of streams: DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION. */
static struct http2_fault check_of_stream(const struct http2_frame *frame) {
    if (frame->stream == 0)
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR,
                                      "a frame that belongs to a stream is for stream 0");
    if (frame->type == HTTP2_RST_STREAM && frame->length != 4)
        return wrong_length();
    if (frame->type == HTTP2_PRIORITY && frame->length != HTTP2_PRIORITY_SIZE)
        return http2_stream_fault(HTTP2_FRAME_SIZE_ERROR, "a PRIORITY frame does not have 5 bytes");
    return http2_no_fault();
}

static bool has_good_length(const struct http2_frame *frame) {
    switch (frame->type) {
    case HTTP2_SETTINGS:
        return frame->flags & HTTP2_ACK ? frame->length == 0
                                        : frame->length % HTTP2_SETTING_SIZE == 0;
    case HTTP2_PING: return frame->length == HTTP2_PING_SIZE;
    case HTTP2_GOAWAY: return frame->length >= HTTP2_GOAWAY_SIZE;
    default: return frame->length >= 4; /* PRIORITY_UPDATE */
    }
}

/* The frames of the connection: SETTINGS, PING, GOAWAY, PRIORITY_UPDATE. */
static struct http2_fault check_of_connection(const struct http2_frame *frame) {
    if (frame->stream != 0)
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR,
                                      "a frame that belongs to the connection is for a stream");
    return has_good_length(frame) ? http2_no_fault() : wrong_length();
}

struct http2_fault http2_frame_check(const struct http2_frame *frame, uint32_t max_frame_size) {
    if (frame->length > max_frame_size)
        return http2_connection_fault(HTTP2_FRAME_SIZE_ERROR,
                                      "a frame is longer than SETTINGS_MAX_FRAME_SIZE");
    switch (frame->type) {
    case HTTP2_DATA:
    case HTTP2_HEADERS:
    case HTTP2_PRIORITY:
    case HTTP2_RST_STREAM:
    case HTTP2_CONTINUATION: return check_of_stream(frame);
    case HTTP2_SETTINGS:
    case HTTP2_PING:
    case HTTP2_GOAWAY:
    case HTTP2_PRIORITY_UPDATE: return check_of_connection(frame);
    case HTTP2_WINDOW_UPDATE: return frame->length == 4 ? http2_no_fault() : wrong_length();
    case HTTP2_PUSH_PROMISE:
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR, "a PUSH_PROMISE where push is off");
    default: return http2_no_fault();
    }
}

static bool depends_on_itself(const struct http2_frame *frame, const char *priority) {
    return (http2_get32(priority) & HTTP2_STREAM_MOST) == frame->stream;
}

struct http2_fault http2_frame_read_priority(const struct http2_frame *frame, const char *payload) {
    if (depends_on_itself(frame, payload))
        return http2_stream_fault(HTTP2_PROTOCOL_ERROR, "a stream depends on itself");
    return http2_no_fault();
}

/* RFC 9113 §6.1: "If the length of the padding is the length of the frame payload or greater, the
 * recipient MUST treat this as a connection error of type PROTOCOL_ERROR." */
struct http2_fault http2_frame_strip_padding(const struct http2_frame *frame,
                                             struct slice *payload) {
    struct http2_fault fault = http2_no_fault();
    size_t padding = 0;
    if (frame->flags & HTTP2_PADDED) {
        if (payload->length == 0)
            return wrong_length();
        padding = (unsigned char)payload->base[0];
        *payload = slice_make(payload->base + 1, payload->length - 1);
    }
    if (frame->type == HTTP2_HEADERS && frame->flags & HTTP2_HAS_PRIORITY) {
        if (payload->length < HTTP2_PRIORITY_SIZE)
            return wrong_length();
        fault = http2_frame_read_priority(frame, payload->base);
        *payload =
            slice_make(payload->base + HTTP2_PRIORITY_SIZE, payload->length - HTTP2_PRIORITY_SIZE);
    }
    if (padding > payload->length)
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR,
                                      "the padding of a frame is longer than the frame");
    payload->length -= padding;
    return fault;
}

struct http2_fault http2_frame_read_window_update(const struct http2_frame *frame,
                                                  const char *payload, uint32_t *increment) {
    *increment = http2_get32(payload) & HTTP2_WINDOW_MOST;
    if (*increment > 0)
        return http2_no_fault();
    return (struct http2_fault){HTTP2_PROTOCOL_ERROR, frame->stream != 0,
                                "a WINDOW_UPDATE has the increment 0"};
}

struct http2_fault http2_frame_read_priority_update(struct slice payload, uint32_t *stream,
                                                    struct slice *value) {
    *stream = http2_get32(payload.base) & HTTP2_STREAM_MOST;
    *value = slice_make(payload.base + 4, payload.length - 4);
    if (*stream == 0)
        return http2_connection_fault(HTTP2_PROTOCOL_ERROR, "a PRIORITY_UPDATE is about stream 0");
    return http2_no_fault();
}

bool http2_frame_next_setting(struct slice *payload, uint16_t *id, uint32_t *value) {
    if (payload->length < HTTP2_SETTING_SIZE)
        return false;
    const unsigned char *at = (const unsigned char *)payload->base;
    *id = (uint16_t)(at[0] << 8 | at[1]);
    *value = http2_get32(payload->base + 2);
    *payload = slice_make(payload->base + HTTP2_SETTING_SIZE, payload->length - HTTP2_SETTING_SIZE);
    return true;
}

struct http2_fault http2_setting_check(uint16_t id, uint32_t value) {
    switch (id) {
    case HTTP2_SETTING_ENABLE_PUSH:
    case HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL:
    case HTTP2_SETTING_NO_RFC7540_PRIORITIES:
        if (value > 1)
            return http2_connection_fault(HTTP2_PROTOCOL_ERROR,
                                          "a setting that is 0 or 1 has another value");
        break;
    case HTTP2_SETTING_INITIAL_WINDOW_SIZE:
        if (value > HTTP2_WINDOW_MOST)
            return http2_connection_fault(HTTP2_FLOW_CONTROL_ERROR,
                                          "SETTINGS_INITIAL_WINDOW_SIZE is larger than 2^31-1");
        break;
    case HTTP2_SETTING_MAX_FRAME_SIZE:
        if (value < HTTP2_FRAME_SIZE_DEFAULT || value > HTTP2_FRAME_SIZE_MOST)
            return http2_connection_fault(HTTP2_PROTOCOL_ERROR,
                                          "SETTINGS_MAX_FRAME_SIZE is not in 16384..16777215");
        break;
    default: break;
    }
    return http2_no_fault();
}

static const char *const error_names[HTTP2_ERRORS] = {
    [HTTP2_NO_ERROR] = "NO_ERROR",
    [HTTP2_PROTOCOL_ERROR] = "PROTOCOL_ERROR",
    [HTTP2_INTERNAL_ERROR] = "INTERNAL_ERROR",
    [HTTP2_FLOW_CONTROL_ERROR] = "FLOW_CONTROL_ERROR",
    [HTTP2_SETTINGS_TIMEOUT] = "SETTINGS_TIMEOUT",
    [HTTP2_STREAM_CLOSED] = "STREAM_CLOSED",
    [HTTP2_FRAME_SIZE_ERROR] = "FRAME_SIZE_ERROR",
    [HTTP2_REFUSED_STREAM] = "REFUSED_STREAM",
    [HTTP2_CANCEL] = "CANCEL",
    [HTTP2_COMPRESSION_ERROR] = "COMPRESSION_ERROR",
    [HTTP2_CONNECT_ERROR] = "CONNECT_ERROR",
    [HTTP2_ENHANCE_YOUR_CALM] = "ENHANCE_YOUR_CALM",
    [HTTP2_INADEQUATE_SECURITY] = "INADEQUATE_SECURITY",
    [HTTP2_HTTP_1_1_REQUIRED] = "HTTP_1_1_REQUIRED",
};

struct slice http2_error_name(uint32_t error) {
    return error < HTTP2_ERRORS ? slice_from(error_names[error]) : SLICE("unknown");
}
