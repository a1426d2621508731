/*
 * The static table of HPACK (RFC 7541 §2.3.1, Appendix A; hpack_static.def), and how to find a name
 * in it.
 *
 *     hpack_static[2]                                        ":method" "GET"
 *     hpack_static_index(SLICE("Content-Type"))              31
 *
 * Threads: constant after main() has begun.
 */
#ifndef RETORT_HTTP2_HPACK_STATIC_H
#define RETORT_HTTP2_HPACK_STATIC_H

#include "http/names.h"
#include "http2/hpack.h"

/* Entry 0 is empty. */
extern const struct hpack_field hpack_static[HPACK_STATIC_COUNT + 1];

enum { HPACK_NOT_SENT = 255 };

/* The first entry of that name, in upper or lower case; 0: there is none. HPACK_NOT_SENT: the field
 * belongs to a connection of HTTP/1.1 and is none of HTTP/2 (RFC 9113 §8.2.2). */
unsigned hpack_static_index(struct slice name);
/* The same for a name that is known. HTTP_OTHER: 0. */
unsigned hpack_static_index_of(enum http_name id);

#endif
