/*
 * The check of a head that a service inside the proxy has made. A service is trusted code, but the
 * values that it puts into a head may come from the message: nothing of them may begin another field
 * or another message.
 *
 *     const char *error = inside_head_error(head, before, response, method);
 *     if (error != NULL) ...                           the message fails, for that reason
 *
 * Refused, as from an ICAP server: names, values and start lines with bytes that end a line or are
 * none of HTTP (RFC 9110 §5.1, §5.5); more than HTTP_FIELDS_MAX fields or INSIDE_HEAD_MAX bytes; a
 * response with a 1xx; framing that contradicts itself (RFC 9112 §6.3); a request whose method was
 * changed from or to HEAD or CONNECT.
 *
 * Fields that stand where they stood before are not looked at again: they came through a parser.
 *
 * Threads: values.
 */
#ifndef RETORT_INSIDE_HEAD_H
#define RETORT_INSIDE_HEAD_H

#include "http/head.h"

enum { INSIDE_HEAD_MAX = 128 * 1024 }; /* bytes of start line, names and values */

/* Also of a head that a runner does not send (runner/frame.h). */
extern const char inside_head_too_long[];

/* `before`: the head that the service was given, whose bytes it can't change; NULL: it made this one
 * from nothing. `method`: of the request as it was. Returns NULL, or why the head can't be sent. */
const char *inside_head_error(const struct http_head *head, const struct http_head *before,
                              bool response, enum http_method method);

#endif
