/*
 * Trailer fields: field lines after the last chunk (RFC 9110 §6.5, RFC 9112 §7.1.2).
 *
 *     length = trailer_filter(bytes, length);      removes the fields that may not pass
 *
 * These fields may not pass (§6.5.1): fields for framing and routing, request modifiers,
 * authentication, control of caches, fields about the processing of content, and hop-by-hop fields.
 * The receiver has already acted on the head when trailers arrive. A receiver that does not expect
 * trailers may treat them as fields of the head.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_HTTP_TRAILER_H
#define RETORT_HTTP_TRAILER_H

#include "base/slice.h"

/* May a field of that name be a trailer? */
bool trailer_may_pass(struct slice name);
/* `bytes` are the lines that the chunked decoder accepted, with the empty line. Returns the length
 * of the lines that are left, without an empty line. That is 0 when there are more fields than a
 * head may have, or when a line is not a field. */
size_t trailer_filter(char *bytes, size_t length);

#endif
