/*
 * Bytes in memory as a source.
 *
 *     struct bytes_source *source = arena_alloc(arena, sizeof *source);
 *     message->body = bytes_source_start(source, bytes, loop);
 *
 * The bytes and the struct belong to the caller, and must live until the source is closed. Threads:
 * those of a source.
 */
#ifndef RETORT_EVENT_BYTES_SOURCE_H
#define RETORT_EVENT_BYTES_SOURCE_H

#include "base/slice.h"
#include "event/source.h"

struct bytes_source {
    struct source source;
    struct slice left;
};

struct source *bytes_source_start(struct bytes_source *bytes, struct slice all, struct loop *loop);

#endif
