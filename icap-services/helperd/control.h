/*
 * Commands to retort-helperd, and its answers, in JSON, one line each:
 *
 *     {"call":"helpers"}                               pools, their processes and counts
 *     {"call":"renice","pool":"gray","nice":19}
 *     {"call":"resize","pool":"gray","processes":4}
 *     {"call":"reload"}                                as SIGHUP
 *
 * An answer is {"ok":true, ...} or {"ok":false,"error":"a sentence that says what to do"}.
 * Looking is for all who may connect; changing for root and the user retort-helperd runs as.
 */
#ifndef RETORT_HELPERD_CONTROL_H
#define RETORT_HELPERD_CONTROL_H

#include "base/slice.h"
#include "helperd/supervisor.h"

enum { CONTROL_PACKET = 16384 };

/* Never NULL; the caller frees it. */
char *control_answer(struct supervisor *supervisor, struct slice command, bool may_change);

#endif
