/*
 * A source: a body whose receiver reads the bytes when it has room for them. Every body in Retort
 * is a source: the body of a client's request, of an origin's response, of an ICAP server's answer.
 * The receiver is the owner of a socket or of a cache object. So a slow receiver slows the sender
 * down, without further rules.
 *
 *     char buffer[16384];
 *     size_t got;
 *     switch (source_read(source, buffer, sizeof buffer, &got)) {
 *     case SOURCE_DATA:   got > 0 bytes are in buffer
 *     case SOURCE_WAIT:   nothing now; the waker will be run when it is worth another try
 *     case SOURCE_END:    the body is complete
 *     case SOURCE_FAILED: the body broke off: abort the receiving side, never complete it
 *     }
 *     source_close(&source);       at any time; drops what is left, leaves NULL
 *
 * END and FAILED are final: reading again gives the same. The waker is a task of the reader,
 * deferred on the loop; it may run without cause. Before the reader frees its own memory, it
 * removes the waker with source_close or source_set_waker.
 *
 * Threads: a source, its reader and the loop share one thread.
 */
#ifndef RETORT_EVENT_SOURCE_H
#define RETORT_EVENT_SOURCE_H

#include "base/assert.h"
#include "base/slice.h"
#include "event/loop.h"

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum source_status { SOURCE_DATA, SOURCE_WAIT, SOURCE_END, SOURCE_FAILED };

struct source;

struct source_class {
    const char *name;
    enum source_status (*read)(struct source *source, char *buffer, size_t capacity, size_t *got);
    void (*close)(struct source *source);
    /* Fills several buffers with one read; NULL: `read` is used instead. */
    enum source_status (*read_pieces)(struct source *source, const struct iovec *pieces, int count,
                                      size_t *got);
};

struct source {
    unsigned magic;
#define SOURCE_MAGIC 0x5372634du
    const struct source_class *class;
    struct loop *loop;
    struct task *waker; /* of the reader; NULL: nobody waits */
    int64_t length;     /* bytes of the whole body if known beforehand, else -1 */
    /* Takes back the bytes that were read last; NULL: not possible. Set after source_init. */
    bool (*unread)(struct source *source, uint64_t count);
};

static inline void source_init(struct source *source, const struct source_class *class,
                               struct loop *loop, int64_t length) {
    source->magic = SOURCE_MAGIC;
    source->class = class;
    source->loop = loop;
    source->waker = NULL;
    source->length = length;
    source->unread = NULL;
}

static inline enum source_status source_read(struct source *source, void *buffer, size_t capacity,
                                             size_t *got) {
    CHECK_OBJ(source, SOURCE_MAGIC);
    return source->class->read(source, buffer, capacity, got);
}

/* Like source_read, into several buffers, which are filled in their order. It is for large bodies.
 */
static inline enum source_status
source_read_pieces(struct source *source, const struct iovec *pieces, int count, size_t *got) {
    CHECK_OBJ(source, SOURCE_MAGIC);
    if (count == 1 || source->class->read_pieces == NULL)
        return source->class->read(source, pieces->iov_base, pieces->iov_len, got);
    return source->class->read_pieces(source, pieces, count, got);
}

/* Gives the last `count` bytes back to the source, so that the reader need not copy them. The next
 * read returns them again. False: the source can't take them back. Not after END or FAILED. */
static inline bool source_unread(struct source *source, uint64_t count) {
    CHECK_OBJ(source, SOURCE_MAGIC);
    return source->unread != NULL && source->unread(source, count);
}

static inline void source_set_waker(struct source *source, struct task *waker) {
    CHECK_OBJ(source, SOURCE_MAGIC);
    source->waker = waker;
}

/* For implementations: says that another read may give more now. */
static inline void source_wake(struct source *source) {
    if (source->waker != NULL)
        loop_defer(source->loop, source->waker);
}

static inline void source_close(struct source **sourcep) {
    struct source *source = *sourcep;
    *sourcep = NULL;
    if (source == NULL)
        return;
    CHECK_OBJ(source, SOURCE_MAGIC);
    source->waker = NULL;
    source->class->close(source);
}

/*
 * Bytes in memory as a source.
 *
 *     struct bytes_source *source = arena_alloc(arena, sizeof *source);
 *     message->body = bytes_source_start(source, bytes, loop);
 *
 * The bytes and the struct belong to the caller, and must live until the source is closed. Threads:
 * those of a source.
 */

struct bytes_source {
    struct source source;
    struct slice left;
};

struct source *bytes_source_start(struct bytes_source *bytes, struct slice all, struct loop *loop);

#endif
