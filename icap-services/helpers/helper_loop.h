/*
 * The life of a helper process: take a job from descriptor 0, do it, send the result, again, until
 * retort-helperd hangs up. A helper may do its work as slowly and as blocking as it likes; it is
 * one process, does one job at a time, and may crash: only that job fails.
 *
 *     static enum helper_status work(struct helper_work *work) {
 *         work->input              the body, mapped, read-only
 *         work->parameters
 *         helper_work_reply(work, slice);    a small result, or the reason of a failure
 *         work->output = memfd;              a large one: the loop seals and closes it
 *         return HELPER_DONE;
 *     }
 *     return helper_loop_run(work);
 */
#ifndef RETORT_HELPERS_HELPER_LOOP_H
#define RETORT_HELPERS_HELPER_LOOP_H

#include "service/helper_protocol.h"

struct helper_work {
    struct slice parameters;
    struct slice input;
    int input_fd; /* -1: no body */
    int output;   /* -1 at first */
    char *reply;
    size_t reply_length;
};

/* Returns the exit status of the process. */
int helper_loop_run(enum helper_status (*work)(struct helper_work *work));
/* One job by hand: the body from `input` (-1: none), the result to `output`; the body itself where
 * it would stay as it is. Returns the exit status: 1 when it failed, and the log says why. */
int helper_loop_once(struct slice parameters, int input, int output,
                     enum helper_status (*work)(struct helper_work *work));
/* False when it is longer than HELPER_INLINE_MAX. */
bool helper_work_reply(struct helper_work *work, struct slice text);

/* Limits of this process: 0 is no limit. A job may use `cpu_seconds` from now on. */
void helper_limit_memory(uint64_t bytes);
void helper_limit_file(uint64_t bytes);
void helper_limit_cpu(unsigned cpu_seconds);

#endif
