/*
 * Frames of HTTP/2 (RFC 9113 §4, §6): read and written as bytes. What a frame means for a stream or
 * a connection is the session's (http2/session.h).
 *
 *     struct http2_frame frame;
 *     http2_frame_read(&frame, bytes);                           HTTP2_FRAME_HEAD bytes
 *     struct http2_fault fault = http2_frame_check(&frame, 16384);
 *     ...                                                        when frame.length bytes are there:
 *     fault = http2_frame_strip_padding(&frame, &payload);       DATA and HEADERS
 *
 *     at = http2_frame_write(at, length, HTTP2_DATA, HTTP2_END_STREAM, stream);
 *     at = http2_frame_put_window_update(at, 0, 65536);          a whole frame
 *
 * A frame of an unknown type passes http2_frame_check: "Implementations MUST ignore and discard
 * frames of unknown types" (§5.5).
 *
 * Threads: functions without state or allocation. Writers write no more than HTTP2_FRAME_HEAD bytes
 * and the payload that their comment names; they return the end of what is written.
 */
#ifndef RETORT_HTTP2_FRAME_H
#define RETORT_HTTP2_FRAME_H

#include "base/slice.h"

/*
 * The errors of HTTP/2 (RFC 9113 §7), and what a peer did wrong: a code, whether only one stream
 * ends for it, and a sentence for the log.
 *
 *     struct http2_fault fault = http2_frame_check(&frame, 16384);
 *     if (fault.error != HTTP2_NO_ERROR && fault.of_stream) ...    RST_STREAM with fault.error
 *     if (fault.error != HTTP2_NO_ERROR) ...                       GOAWAY with fault.error
 *     log_info("%s: %.*s", fault.text, SLICE_PRINT(http2_error_name(fault.error)));
 *
 * Threads: values and constants.
 */

enum http2_error {
    HTTP2_NO_ERROR,
    HTTP2_PROTOCOL_ERROR,
    HTTP2_INTERNAL_ERROR,
    HTTP2_FLOW_CONTROL_ERROR,
    HTTP2_SETTINGS_TIMEOUT,
    HTTP2_STREAM_CLOSED,
    HTTP2_FRAME_SIZE_ERROR,
    HTTP2_REFUSED_STREAM,
    HTTP2_CANCEL,
    HTTP2_COMPRESSION_ERROR,
    HTTP2_CONNECT_ERROR,
    HTTP2_ENHANCE_YOUR_CALM,
    HTTP2_INADEQUATE_SECURITY,
    HTTP2_HTTP_1_1_REQUIRED,
    HTTP2_ERRORS
};

/* "PROTOCOL_ERROR"; "unknown" for a number that RFC 9113 does not name. */
struct slice http2_error_name(uint32_t error);

struct http2_fault {
    enum http2_error error; /* HTTP2_NO_ERROR: nothing is wrong */
    bool of_stream;         /* only the stream ends; false: the connection does */
    const char *text;       /* a sentence without a full stop; NULL: nothing is wrong */
};

static inline struct http2_fault http2_no_fault(void) {
    return (struct http2_fault){HTTP2_NO_ERROR, false, NULL};
}

static inline struct http2_fault http2_connection_fault(enum http2_error error, const char *text) {
    return (struct http2_fault){error, false, text};
}

static inline struct http2_fault http2_stream_fault(enum http2_error error, const char *text) {
    return (struct http2_fault){error, true, text};
}

enum http2_frame_type {
    HTTP2_DATA = 0,
    HTTP2_HEADERS = 1,
    HTTP2_PRIORITY = 2,
    HTTP2_RST_STREAM = 3,
    HTTP2_SETTINGS = 4,
    HTTP2_PUSH_PROMISE = 5,
    HTTP2_PING = 6,
    HTTP2_GOAWAY = 7,
    HTTP2_WINDOW_UPDATE = 8,
    HTTP2_CONTINUATION = 9,
    HTTP2_ALTSVC = 10,          /* RFC 7838 §4 */
    HTTP2_ORIGIN = 12,          /* RFC 8336 */
    HTTP2_PRIORITY_UPDATE = 16, /* RFC 9218 §7.1 */
};

enum http2_flag {
    HTTP2_END_STREAM = 0x1,   /* DATA, HEADERS */
    HTTP2_ACK = 0x1,          /* SETTINGS, PING */
    HTTP2_END_HEADERS = 0x4,  /* HEADERS, CONTINUATION */
    HTTP2_PADDED = 0x8,       /* DATA, HEADERS */
    HTTP2_HAS_PRIORITY = 0x20 /* HEADERS: the flag PRIORITY */
};

enum http2_setting {
    HTTP2_SETTING_HEADER_TABLE_SIZE = 1,
    HTTP2_SETTING_ENABLE_PUSH = 2,
    HTTP2_SETTING_MAX_CONCURRENT_STREAMS = 3,
    HTTP2_SETTING_INITIAL_WINDOW_SIZE = 4,
    HTTP2_SETTING_MAX_FRAME_SIZE = 5,
    HTTP2_SETTING_MAX_HEADER_LIST_SIZE = 6,
    HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL = 8, /* RFC 8441 §3 */
    HTTP2_SETTING_NO_RFC7540_PRIORITIES = 9,   /* RFC 9218 §2.1 */
};

enum {
    HTTP2_FRAME_HEAD = 9,
    HTTP2_SETTING_SIZE = 6,                /* of one entry of SETTINGS */
    HTTP2_PRIORITY_SIZE = 5,               /* of the priority in PRIORITY and HEADERS */
    HTTP2_PING_SIZE = 8,                   /* of the payload of PING */
    HTTP2_GOAWAY_SIZE = 8,                 /* of the payload of GOAWAY without its text */
    HTTP2_FRAME_SIZE_DEFAULT = 16384,      /* SETTINGS_MAX_FRAME_SIZE, and its least value */
    HTTP2_FRAME_SIZE_MOST = (1 << 24) - 1, /* its largest */
    HTTP2_WINDOW_DEFAULT = 65535,
    HTTP2_WINDOW_MOST = INT32_MAX,
    HTTP2_STREAM_MOST = INT32_MAX,
};

/* What a client sends first (§3.4). */
#define HTTP2_PREFACE SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

struct http2_frame {
    uint32_t length; /* of the payload */
    uint8_t type, flags;
    uint32_t stream; /* without the reserved bit */
};

/* Numbers in network byte order. */
static inline uint32_t http2_get32(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline char *http2_put32(char *at, uint32_t number) {
    at[0] = (char)(number >> 24);
    at[1] = (char)(number >> 16);
    at[2] = (char)(number >> 8);
    at[3] = (char)number;
    return at + 4;
}

/* Reads the head of a frame, HTTP2_FRAME_HEAD bytes. "The value of this bit ... MUST be ignored
 * when receiving" (§4.1, the reserved bit). */
static inline void http2_frame_read(struct http2_frame *frame, const char *bytes) {
    frame->length = http2_get32(bytes) >> 8;
    frame->type = (uint8_t)bytes[3];
    frame->flags = (uint8_t)bytes[4];
    frame->stream = http2_get32(bytes + 5) & HTTP2_STREAM_MOST;
}

/* Writes the head of a frame. */
static inline char *http2_frame_write(char *at, size_t length, enum http2_frame_type type,
                                      unsigned flags, uint32_t stream) {
    at = http2_put32(at, (uint32_t)length << 8 | type);
    *at++ = (char)flags;
    return http2_put32(at, stream);
}

/* Which rule about lengths and stream identifiers does the head of this frame break (§4.2, §6)? It
 * can be asked before the payload is there. `max_frame_size` is the SETTINGS_MAX_FRAME_SIZE that we
 * announced. PUSH_PROMISE is always wrong: a client sends none, and we let no server push (§8.4).
 */
struct http2_fault http2_frame_check(const struct http2_frame *frame, uint32_t max_frame_size);

/* Takes padding, and the priority in HEADERS, off the payload of DATA or HEADERS (§6.1, §6.2).
 * The priority means nothing any more (§5.3.2), but a stream may not depend on itself (RFC 7540
 * §5.3.1): this is a fault of the stream, and *payload is good. */
struct http2_fault http2_frame_strip_padding(const struct http2_frame *frame,
                                             struct slice *payload);

/* The payload of PRIORITY. */
struct http2_fault http2_frame_read_priority(const struct http2_frame *frame, const char *payload);

/* The payload of WINDOW_UPDATE. An increment of 0 is a fault of the stream, or of the connection
 * when the frame is for stream 0 (§6.9). */
struct http2_fault http2_frame_read_window_update(const struct http2_frame *frame,
                                                  const char *payload, uint32_t *increment);

/* The payload of PRIORITY_UPDATE: the stream and its Priority Field Value (RFC 9218 §7.1). */
struct http2_fault http2_frame_read_priority_update(struct slice payload, uint32_t *stream,
                                                    struct slice *value);

/* The payload of GOAWAY; `error` may be any number. */
static inline void http2_frame_read_goaway(struct slice payload, uint32_t *last_stream,
                                           uint32_t *error, struct slice *text) {
    *last_stream = http2_get32(payload.base) & HTTP2_STREAM_MOST;
    *error = http2_get32(payload.base + 4);
    *text = slice_make(payload.base + HTTP2_GOAWAY_SIZE, payload.length - HTTP2_GOAWAY_SIZE);
}

/* Takes the next entry off the payload of SETTINGS. False: there is none. `id` may be any number;
 * one that enum http2_setting does not have is ignored (§6.5.2).
 *
 *     while (http2_frame_next_setting(&payload, &id, &value))
 *         fault = http2_setting_check(id, value);
 */
bool http2_frame_next_setting(struct slice *payload, uint16_t *id, uint32_t *value);
/* Is the value one that the setting may have? */
struct http2_fault http2_setting_check(uint16_t id, uint32_t value);

/* Write an entry of SETTINGS, HTTP2_SETTING_SIZE bytes, behind http2_frame_write. */
static inline char *http2_frame_put_setting(char *at, enum http2_setting id, uint32_t value) {
    *at++ = 0;
    *at++ = (char)id;
    return http2_put32(at, value);
}

/* These write whole frames: HTTP2_FRAME_HEAD bytes and 0, 4, 4, HTTP2_PING_SIZE, and
 * HTTP2_GOAWAY_SIZE with the text. */
static inline char *http2_frame_put_settings_ack(char *at) {
    return http2_frame_write(at, 0, HTTP2_SETTINGS, HTTP2_ACK, 0);
}

static inline char *http2_frame_put_rst_stream(char *at, uint32_t stream, enum http2_error error) {
    return http2_put32(http2_frame_write(at, 4, HTTP2_RST_STREAM, 0, stream), error);
}

static inline char *http2_frame_put_window_update(char *at, uint32_t stream, uint32_t increment) {
    return http2_put32(http2_frame_write(at, 4, HTTP2_WINDOW_UPDATE, 0, stream), increment);
}

static inline char *http2_frame_put_ping(char *at, bool ack, const char bytes[HTTP2_PING_SIZE]) {
    at = http2_frame_write(at, HTTP2_PING_SIZE, HTTP2_PING, ack ? HTTP2_ACK : 0, 0);
    return slice_put(at, slice_make(bytes, HTTP2_PING_SIZE));
}

static inline char *http2_frame_put_goaway(char *at, uint32_t last_stream, enum http2_error error,
                                           struct slice text) {
    at = http2_frame_write(at, HTTP2_GOAWAY_SIZE + text.length, HTTP2_GOAWAY, 0, 0);
    return slice_put(http2_put32(http2_put32(at, last_stream), error), text);
}

#endif
