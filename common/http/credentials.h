/*
 * Basic credentials (RFC 7617): those that Retort sends to other programs (a parent proxy, an ICAP
 * server), and the names in those that clients send.
 *
 *     char value[HTTP_CREDENTIALS_VALUE];
 *     struct slice basic = http_credentials_write("user:password", value);
 *     http_head_set(head, HTTP_PROXY_AUTHORIZATION, basic);
 *
 *     char user[HTTP_CREDENTIALS_USER];
 *     name = http_credentials_user(SLICE("Basic am9lOnNlY3JldA=="), user);          "joe"
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP_CREDENTIALS_H
#define RETORT_HTTP_CREDENTIALS_H

#include "base/slice.h"

enum { HTTP_CREDENTIALS_MAX = 200, HTTP_CREDENTIALS_VALUE = 300, HTTP_CREDENTIALS_USER = 256 };

/* Are the credentials "user:password", with at most HTTP_CREDENTIALS_MAX bytes? False: `error` says
 * why not, and does not contain the credentials. */
bool http_credentials_check(const char *credentials, char *error, size_t error_size);
/* Writes "Basic ..." into `value` and returns it as a slice. */
struct slice http_credentials_write(const char *credentials, char value[HTTP_CREDENTIALS_VALUE]);
/* The name in the value of Authorization or Proxy-Authorization; empty if the value has another
 * scheme, is malformed, or if the name has control characters or more than HTTP_CREDENTIALS_USER
 * bytes. Nothing says that the name is true. */
struct slice http_credentials_user(struct slice value, char user[HTTP_CREDENTIALS_USER]);

#endif
