/*
 * Priorities (RFC 9218): how urgent a response is, and whether it is of use in pieces.
 *
 *     struct http2_priority priority;
 *     http2_priority_parse(SLICE("u=1, i"), &priority);      urgency 1, incremental
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP2_PRIORITY_H
#define RETORT_HTTP2_PRIORITY_H

#include "base/slice.h"

enum { HTTP2_URGENCY_DEFAULT = 3, HTTP2_URGENCY_LEAST = 7 };

struct http2_priority {
    uint8_t urgency; /* 0..7; 0 is the most urgent */
    bool is_incremental;
};

/* Reads a Priority field, or the value in a PRIORITY_UPDATE frame. What it does not say has its
 * default. Members that are unknown or have another type or range are ignored (§4, §4.1); a value
 * that is no dictionary means the defaults (RFC 8941 §4.2). */
void http2_priority_parse(struct slice value, struct http2_priority *priority);

#endif
