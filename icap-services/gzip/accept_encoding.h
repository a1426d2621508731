/*
 * Tells whether a client accepts a content coding, by its Accept-Encoding (RFC 9110 §12.5.3): with
 * quality values, "*", and "x-gzip" as another name of gzip.
 *
 *     accept_encoding_quality(SLICE("br;q=1.0, gzip;q=0.8, *;q=0.1"), SLICE("gzip"))     800
 *     accept_encoding_quality(SLICE("*, gzip;q=0"), SLICE("gzip"))                       0
 *
 * A coding that the field names has its own quality. Any other coding has the quality of "*". A
 * coding is not acceptable when neither it nor "*" is named. A quality that breaks the grammar
 * counts as 0. Threads: pure.
 */
#ifndef RETORT_GZIP_ACCEPT_ENCODING_H
#define RETORT_GZIP_ACCEPT_ENCODING_H

#include "base/slice.h"

/* The quality in thousandths, 0..1000; -1 when neither the coding nor "*" is named. */
int accept_encoding_quality(struct slice value, struct slice coding);
/* As accept_encoding_quality, but "*" does not count. */
int accept_encoding_named(struct slice value, struct slice coding);

#endif
