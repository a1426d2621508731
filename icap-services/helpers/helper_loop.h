/*
 * The main loop of a helper process. It takes a job from descriptor 0, does it and sends the
 * result, until retort-helperd hangs up. A helper does one job at a time. Its work may be slow and
 * may block. If it crashes, only its one job fails.
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
/* Does one job without retort-helperd: reads the body from `input` (-1: none) and writes the result
 * to `output`. If the job leaves the body unchanged, it writes the body. Returns the exit status: 1
 * when the job failed, and the log says why. */
int helper_loop_once(struct slice parameters, int input, int output,
                     enum helper_status (*work)(struct helper_work *work));
/* False when the text is longer than HELPER_INLINE_MAX. */
bool helper_work_reply(struct helper_work *work, struct slice text);

/* Set limits of this process; 0: no limit. From now on a job may use `cpu_seconds`. */
void helper_limit_memory(uint64_t bytes);
void helper_limit_file(uint64_t bytes);
void helper_limit_cpu(unsigned cpu_seconds);

#endif
