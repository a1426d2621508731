/*
 * Does a client accept a content coding? RFC 9110 §12.5.3: quality values, "*", "x-gzip" as another
 * name of gzip.
 *
 *     accept_encoding_allows(SLICE("br;q=1.0, gzip;q=0.8, *;q=0.1"), SLICE("gzip"))     true
 *     accept_encoding_allows(SLICE("*, gzip;q=0"), SLICE("gzip"))                       false
 *
 * A coding that is named counts by its own quality, one that is not by that of "*", and without
 * either it is not acceptable. A quality that is not of the grammar counts as 0. Threads: pure.
 */
#ifndef RETORT_GZIP_ACCEPT_ENCODING_H
#define RETORT_GZIP_ACCEPT_ENCODING_H

#include "base/slice.h"

bool accept_encoding_allows(struct slice value, struct slice coding);

/* The quality in thousandths, 0..1000; -1 when it is not named, not even by "*". */
int accept_encoding_quality(struct slice value, struct slice coding);
/* The same of the name alone: "*" does not count. */
int accept_encoding_named(struct slice value, struct slice coding);

#endif
