/*
 * Checks for requests that libmicrohttpd accepts although RFC 9112 forbids it. Two programs could
 * understand each such request differently.
 *
 *     char *reason = strict_target(uri);              NULL: it is good
 *     reason = strict_fields(connection, method, version);
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_STRICT_H
#define RETORT_ADMIN_STRICT_H

#include <microhttpd.h>

/* Checks the request target as it was sent. "%00" and a "%" that does not begin an escape are
 * refused. */
const char *strict_target(const char *uri);
/* Checks names of fields (§5.1), Host (§3.2), Content-Length and Transfer-Encoding (§6.3), that no field is cut at a
 * zero byte (RFC 9110, 5.5) or goes over several lines (§5.2), and that those by which the caller is judged are there
 * once. `method` and `version` are libmicrohttpd's, in the head as it came. */
const char *strict_fields(struct MHD_Connection *connection, const char *method,
                          const char *version);

#endif
