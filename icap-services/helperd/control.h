/*
 * Commands to retort-helperd, and its answers, in JSON, one line each:
 *
 *     {"call":"helpers"}                               pools, their processes and counts
 *     {"call":"renice","pool":"gray","nice":19}
 *     {"call":"resize","pool":"gray","processes":4}
 *     {"call":"reload"}                                as SIGHUP
 *
 * Of each lane of a pool, "waiting" and "working" are histograms (base/times.h): {"first_us": 64,
 * "sum_us": N, "counts": [...]}. The proxy shows them in /metrics (proxy/admin/helper_numbers.h).
 *
 * An answer is {"ok":true, ...} or {"ok":false,"error":"a sentence that says what to do"}.
 * Everybody who may connect to the socket may look. Only root and the user that retort-helperd runs
 * as may change something.
 */
#ifndef RETORT_HELPERD_CONTROL_H
#define RETORT_HELPERD_CONTROL_H

#include "base/slice.h"
#include "helperd/supervisor.h"

enum { CONTROL_PACKET = 16384 };

/* Runs the command and returns the answer. The answer is never NULL; the caller frees it. */
char *control_answer(struct supervisor *supervisor, struct slice command, bool may_change);

#endif
