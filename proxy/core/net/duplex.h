/*
 * A duplex: bytes both ways between us and one other side. It may be a connection of its own, or
 * one of many streams that share a connection.
 *
 *     struct duplex *duplex = connection_duplex_new(&connection, &ahead);
 *     duplex->waker = &task;                       runs when a read or a write may do more
 *     switch (duplex_read(duplex, buffer, sizeof buffer, &got)) ...
 *     duplex_finish(duplex);                       we send no more
 *     duplex_close(&duplex);
 *
 * IO_DONE: some bytes; IO_WAIT: the waker will run; IO_END: the other side has finished; IO_FAILED:
 * the duplex is broken.
 *
 * Threads: the loop's thread only. Ownership: the holder of the pointer owns the duplex.
 */
#ifndef RETORT_NET_DUPLEX_H
#define RETORT_NET_DUPLEX_H

#include "base/assert.h"
#include "net/connection.h"

struct duplex;

struct duplex_class {
    const char *name;
    enum io_status (*read)(struct duplex *duplex, char *buffer, size_t capacity, size_t *got);
    enum io_status (*write)(struct duplex *duplex, struct slice bytes, size_t *put);
    void (*finish)(struct duplex *duplex);
    void (*abort)(struct duplex *duplex);
    void (*close)(struct duplex *duplex);
    bool (*is_lost)(const struct duplex *duplex);
    /* NULL: the duplex is one of many streams on a connection. */
    struct connection *(*take_connection)(struct duplex *duplex, struct net_buffer **aheadp);
};

struct duplex {
    unsigned magic;
#define DUPLEX_MAGIC 0xd0b1e800u
    const struct duplex_class *class;
    struct task *waker; /* of the user; NULL: nobody waits */
};

/* Makes a duplex from a connection and from the bytes that were read from it before (NULL: none).
 * Takes both. */
struct duplex *connection_duplex_new(struct connection **connectionp, struct net_buffer **aheadp);

static inline enum io_status duplex_read(struct duplex *duplex, char *buffer, size_t capacity,
                                         size_t *got) {
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    return duplex->class->read(duplex, buffer, capacity, got);
}

static inline enum io_status duplex_write(struct duplex *duplex, struct slice bytes, size_t *put) {
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    return duplex->class->write(duplex, bytes, put);
}

/* Ends our direction; the other side may go on sending. */
static inline void duplex_finish(struct duplex *duplex) {
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    duplex->class->finish(duplex);
}

/* Breaks both directions, so that the other side sees that it did not get everything. */
static inline void duplex_abort(struct duplex *duplex) {
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    duplex->class->abort(duplex);
}

/* Was the duplex reset, or lost with its connection? Nothing that is written arrives any more, and
 * nothing comes but what waits to be read. Reads that have ended before do not say so. */
static inline bool duplex_is_lost(const struct duplex *duplex) {
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    return duplex->class->is_lost(duplex);
}

static inline void duplex_close(struct duplex **duplexp) {
    struct duplex *duplex = *duplexp;
    *duplexp = NULL;
    if (duplex == NULL)
        return;
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    duplex->class->close(duplex);
}

/* Takes the connection out of a duplex that has one of its own, with the bytes that were read from
 * it and not from the duplex yet (NULL: none). The duplex is gone then (*duplexp becomes NULL), and
 * the caller sets the connection's owner. NULL: the duplex is a stream of a shared connection and
 * stays as it is, or it was aborted and is gone. */
static inline struct connection *duplex_take_connection(struct duplex **duplexp,
                                                        struct net_buffer **aheadp) {
    struct duplex *duplex = *duplexp;
    CHECK_OBJ(duplex, DUPLEX_MAGIC);
    *aheadp = NULL;
    if (duplex->class->take_connection == NULL)
        return NULL;
    *duplexp = NULL;
    return duplex->class->take_connection(duplex, aheadp);
}

#endif
