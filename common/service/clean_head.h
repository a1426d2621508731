/*
 * The check whether a head that a service has made can be written down: nothing in it begins another
 * field or another message.
 *
 *     if (!clean_head(exchange->head, true)) ...             the message fails
 *
 * A value that a service puts into a head may come from the message. Looked at are the start line, the
 * names and the values (RFC 9110 §5.1, §5.5). Threads: values.
 */
#ifndef RETORT_SERVICE_CLEAN_HEAD_H
#define RETORT_SERVICE_CLEAN_HEAD_H

#include "http/head.h"

bool clean_head(const struct http_head *head, bool response);

#endif
