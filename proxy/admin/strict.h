/*
 * What libmicrohttpd takes though RFC 9112 does not let a server take it: each of these is a
 * request that means one thing to one reader and another to the next.
 *
 *     char *reason = strict_target(uri);              NULL: it is good
 *     reason = strict_fields(connection, version);
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_STRICT_H
#define RETORT_ADMIN_STRICT_H

#include <microhttpd.h>

/* The request target as it was sent: "%00", and "%" that is no escape, are refused. */
const char *strict_target(const char *uri);
/* Names of fields (§5.1), Host (§3.2), Content-Length and Transfer-Encoding (§6.3). */
const char *strict_fields(struct MHD_Connection *connection, const char *version);

#endif
