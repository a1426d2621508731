/*
 * What a helper and the programs it runs write to descriptors 1 and 2, on its way into the log: a
 * line each, with the pool's name and the helper's process in front,
 *
 *     pool gray: helper 4711: jpeg: unexpected end of data
 *
 * cut at OUTPUT_LINE bytes. One that has gone mad does not fill the disk: a pool writes at most
 * `log_lines` lines a second. The others are counted, and when OUTPUT_PAUSE milliseconds went by
 * without one more, a line tells how many they were. The last line of a helper that ends is
 * written in any case, since it may say why.
 *
 *     output_share_init(&pool->share, loop, &pool->settings);   one for all helpers of a pool
 *     output_init(&worker->output, &pool->share);
 *     int end = output_open(&worker->output);       for the child; -1 with errno
 *     output_begin(&worker->output, pid);           or output_close, when there is no child
 *     output_finish(&worker->output);               it was waited for: what it has left is written
 *     output_share_release(&pool->share);
 */
#ifndef RETORT_HELPERD_OUTPUT_H
#define RETORT_HELPERD_OUTPUT_H

#include "event/loop.h"
#include "helperd/settings.h"

#include <sys/types.h>

enum { OUTPUT_LINE = 1000, OUTPUT_PAUSE = 1000 };

/* What a pool may write. */
struct output_share {
    struct loop *loop;
    const struct pool_settings *settings;
    uint64_t second_ends; /* loop's milliseconds */
    unsigned written;     /* in this second */
    uint64_t dropped;     /* lines, ever */
    uint64_t flood;       /* of them since the log told of it */
    struct timer timer;   /* until the flood is over */
};

struct output {
    struct output_share *share;
    int fd; /* -1: closed */
    struct event event;
    pid_t pid;
    size_t length; /* of the line so far */
    bool ended;    /* by its newline: the next byte begins another */
    bool dropped;  /* it has ended, and nobody has seen it */
    char line[OUTPUT_LINE];
};

void output_share_init(struct output_share *share, struct loop *loop,
                       const struct pool_settings *settings);
void output_share_release(struct output_share *share);

void output_init(struct output *output, struct output_share *share);
/* Makes the pipe; returns the end to write to, which is the caller's. */
int output_open(struct output *output);
void output_begin(struct output *output, pid_t pid);
void output_finish(struct output *output);
/* What was not read is lost. */
void output_close(struct output *output);

#endif
