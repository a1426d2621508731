/*
 * The check whether a head that a service has made can be written down: nothing in it begins another field
 * or another message. A service is trusted code, but a value that it puts into a head may come from the
 * message.
 *
 *     if (!clean_head(exchange->head, NULL, true)) ...       the message fails
 *
 * Looked at are the start line, the names and the values (RFC 9110 §5.1, §5.5). Those that stand where
 * they stood in `before` are not looked at again: they came through a parser.
 *
 * Threads: values.
 */
#ifndef RETORT_SERVICE_CLEAN_HEAD_H
#define RETORT_SERVICE_CLEAN_HEAD_H

#include "http/head.h"

/* `before`: the head that the service was given, whose bytes it can't change; NULL: it made this one
 * from nothing. */
bool clean_head(const struct http_head *head, const struct http_head *before, bool response);

#endif
