/*
 * Reads a body as a source (event/source.h). The body may be stored, or still arriving. Services
 * behind the cache read bodies this way (transaction/postcache.h).
 *
 *     struct body_source stored;
 *     struct source *source = body_source_open(&stored, body, loop, mailbox);
 *     ... source_read(source, ...) ...
 *     source_close(&source);
 *
 * The source is the one reader of a passing body. Bytes of a body in a file are read when they are
 * known to be in memory; the source waits for the others.
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
