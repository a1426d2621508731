/*
 * Trailer fields: field lines behind the last chunk (RFC 9110 §6.5, RFC 9112 §7.1.2).
 *
 *     length = trailer_filter(bytes, length);
 *
 * leaves of the lines those that may pass: not those that say where a message ends or where it
 * goes, that modify a request, authenticate, control caches, say how content is to be processed
 * (§6.5.1), or end at this hop. Whoever read the head has acted by the time they come, and who does
 * not expect them may put them among the head's fields.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_HTTP_TRAILER_H
#define RETORT_HTTP_TRAILER_H

#include "base/slice.h"

/* May a field of that name come as a trailer? */
bool trailer_may_pass(struct slice name);
/* `bytes` are lines as the chunked decoder accepts them, and the empty one. Returns what is left,
 * without an empty line: nothing of more fields than a head may have, or of what is no field. */
size_t trailer_filter(char *bytes, size_t length);

#endif
