/*
 * Basic credentials (RFC 7617) that Retort sends to other programs: a parent proxy, an ICAP server.
 *
 *     char value[HTTP_CREDENTIALS_VALUE];
 *     struct slice basic = http_credentials_write("user:password", value);
 *     http_head_set(head, HTTP_PROXY_AUTHORIZATION, basic);
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP_CREDENTIALS_H
#define RETORT_HTTP_CREDENTIALS_H

#include "base/slice.h"

enum { HTTP_CREDENTIALS_MAX = 200, HTTP_CREDENTIALS_VALUE = 300 };

/* Are the credentials "user:password", with at most HTTP_CREDENTIALS_MAX bytes? False: `error` says
 * why not, and does not contain the credentials. */
bool http_credentials_check(const char *credentials, char *error, size_t error_size);
/* Writes "Basic ..." into `value` and returns it as a slice. */
struct slice http_credentials_write(const char *credentials, char value[HTTP_CREDENTIALS_VALUE]);

#endif
