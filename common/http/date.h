/*
 * HTTP dates (RFC 9110 §5.6.7): seconds since 1970 to and from text.
 *
 *     time_t t;
 *     if (!http_date_parse(value, &t)) ...        IMF-fixdate, RFC 850 and asctime forms
 *     char text[HTTP_DATE_LENGTH + 1];
 *     http_date_format(text, now);                "Sun, 06 Nov 1994 08:49:37 GMT"
 *
 * Threads: no shared state.
 */
#ifndef RETORT_HTTP_DATE_H
#define RETORT_HTTP_DATE_H

#include "base/slice.h"

#include <time.h>

enum { HTTP_DATE_LENGTH = 29 };

bool http_date_parse(struct slice text, time_t *seconds);
/* Writes HTTP_DATE_LENGTH bytes and a NUL. */
void http_date_format(char *out, time_t seconds);

#endif
