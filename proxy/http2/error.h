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
#ifndef RETORT_HTTP2_ERROR_H
#define RETORT_HTTP2_ERROR_H

#include "base/slice.h"

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

#endif
