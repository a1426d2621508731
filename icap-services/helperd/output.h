/*
 * Brings what a helper and its programs write to descriptors 1 and 2 into the log. Each line has
 * the name of the pool and the process of the helper in front, and is cut at OUTPUT_LINE bytes:
 *
 *     pool gray: helper 4711: jpeg: unexpected end of data
 *
 * A pool writes at most `log_lines` lines a second, so that a helper can't fill the disk. Lines
 * beyond that are dropped and counted. When OUTPUT_PAUSE milliseconds pass without another dropped
 * line, one line in the log tells how many were dropped. The last line of a helper that ends is
 * always written, since it may say why the helper ended.
 *
 *     output_share_init(&pool->share, loop, &pool->settings);   one for all helpers of a pool
 *     output_init(&worker->output, &pool->share);
 *     int end = output_open(&worker->output);       for the child; -1 with errno
 *     output_begin(&worker->output, pid);           or output_close, when there is no child
 *     output_finish(&worker->output);               the helper has ended: writes what it has left
 *     output_share_release(&pool->share);
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_OUTPUT_H
#define RETORT_HELPERD_OUTPUT_H

#include "event/loop.h"
#include "helperd/settings.h"

#include <sys/types.h>

enum { OUTPUT_LINE = 1000, OUTPUT_PAUSE = 1000 };

/* What all helpers of a pool may write together. */
struct output_share {
    struct loop *loop;
    const struct pool_settings *settings;
    uint64_t second_ends; /* loop's milliseconds */
    unsigned written;     /* in this second */
    uint64_t dropped;     /* lines, ever */
    uint64_t flood;       /* lines that were dropped since the log last told their number */
    struct timer timer;   /* until the log tells their number */
};

struct output {
    struct output_share *share;
    int fd; /* -1: closed */
    struct event event;
    pid_t pid;
    size_t length; /* of the line so far */
    bool ended;    /* the line has its newline: the next byte begins another one */
    bool dropped;  /* the line has ended and was not written */
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
/* Closes the pipe. What was not read is lost. */
void output_close(struct output *output);

#endif
