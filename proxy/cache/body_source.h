/*
 * A body as a source: what is stored, or still arriving, read again as if it came from somewhere.
 *
 *     struct body_source stored;
 *     struct source *source = body_source_open(&stored, body, loop, mailbox);
 *     ... source_read(source, ...) ...
 *     source_close(&source);
 *
 * Of a passing body it is the one reader. A body in a file is read where its bytes are known to be
 * in memory, and waited for where they are not.
 *
 * Threads: the reader's. Memory: the caller's, until source_close.
 */
#ifndef RETORT_CACHE_BODY_SOURCE_H
#define RETORT_CACHE_BODY_SOURCE_H

#include "cache/body_reader.h"
#include "event/source.h"

struct body_source {
    struct source source;
    struct body_reader reader;
    struct task task;
};

/* The body is referenced. */
struct source *body_source_open(struct body_source *stored, struct body *body, struct loop *loop,
                                struct mailbox *mailbox);

#endif
