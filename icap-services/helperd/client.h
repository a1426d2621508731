/*
 * A client of retort-helperd: a connection to its socket. A client sends jobs, one at a time
 * (helper_protocol.h), or commands. When it hangs up, its job is cancelled. A packet that begins
 * with "{" is a command; commands and answers are JSON, one line each:
 *
 *     {"call":"helpers"}                               pools, their processes and counts
 *     {"call":"renice","pool":"gray","nice":19}
 *     {"call":"resize","pool":"gray","processes":4}
 *     {"call":"reload"}                                as SIGHUP
 *
 * Of each lane of a pool, "waiting" and "working" are histograms (base/times.h): {"first_us": 64,
 * "sum_us": N, "counts": [...]}. The proxy shows them in /metrics (proxy/parts/admin/helper_numbers.h).
 *
 * An answer is {"ok":true, ...} or {"ok":false,"error":"a sentence that says what to do"}.
 * Everybody who may connect to the socket may look. Only root and the user that retort-helperd runs
 * as may change something.
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_CLIENT_H
#define RETORT_HELPERD_CLIENT_H

#include "helperd/supervisor.h"

struct client;

/* Takes over the descriptor. */
void client_create(struct supervisor *supervisor, int fd);
void client_close_all(struct supervisor *supervisor);

#endif
