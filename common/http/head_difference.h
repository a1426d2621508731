/*
 * Which fields two heads do not have alike: what a service or a rule has made of a head.
 *
 *     struct slice names[HTTP_DIFFERENCE_MAX];
 *     unsigned count = http_head_difference(&before, &after, names);
 *
 * A name is there once, however often its field is. Names are compared without regard to case, values
 * to the byte; the order of fields of different names does not count (RFC 9110 §5.3), that of fields
 * of one name does. The names are slices of the heads.
 *
 * Both heads are sorted, so the work grows with n log n: a head of a hundred names costs its reader
 * little.
 *
 * Threads: pure.
 */
#ifndef RETORT_HTTP_HEAD_DIFFERENCE_H
#define RETORT_HTTP_HEAD_DIFFERENCE_H

#include "http/head.h"

enum { HTTP_DIFFERENCE_MAX = 2 * HTTP_FIELDS_ROOM };

/* Returns how many names there are. */
unsigned http_head_difference(const struct http_head *one, const struct http_head *other,
                              struct slice names[HTTP_DIFFERENCE_MAX]);

#endif
