/*
 * A connection: a stream socket on a loop, non-blocking, edge-triggered. Everything above net/
 * reads and writes through here, and does not know what lies below.
 *
 *     struct connection *connection = connection_new(net, &fd, on_ready, client);
 *     static void on_ready(struct connection *connection) {       readable or writable has changed
 *         while (connection->readable)
 *             switch (connection_read(connection, buffer, sizeof buffer, &got)) ...
 *     }
 *     connection_close(&connection);
 *
 * `readable` and `writable` say that a try is worth a system call. A read or write that took all
 * there was clears its flag, and on_ready follows when the kernel has news.
 *
 * Threads: the loop's. Ownership: whoever holds the pointer; connection_set_owner when it moves on
 * (to a pool and back), without a system call.
 */
#ifndef RETORT_NET_CONNECTION_H
#define RETORT_NET_CONNECTION_H

#include "net/address.h"
#include "net/context.h"
#include "net/tls.h"

#include <sys/uio.h>

struct connection {
    unsigned magic;
#define CONNECTION_MAGIC 0xc0110c7eu
    bool readable, writable;
    bool watched; /* by the loop */
    bool hangup;  /* the other side has finished: reading on tells what is left and then the end */
    bool broken;  /* it was reset: nothing that is written arrives any more */
    void (*on_ready)(struct connection *connection);
    struct tls_stream *tls; /* owned; NULL: bytes go as they are */
    struct net_context *net;
    struct event event; /* its owner is the connection's */
    /* What follows is not looked at when there is something to read or to write. */
    struct timer timer;         /* of connection_await, or of the pool */
    unsigned low_water;         /* so many bytes make it readable */
    struct list_link pool_link; /* while it waits in a pool */
    uint64_t pooled_at;         /* loop->looks */
    struct pool_key *pool_key;
};

typedef void connection_ready_fn(struct connection *connection);

/* Takes the descriptor (*fdp becomes -1). NULL when it can't be watched; then it is closed. */
struct connection *connection_new(struct net_context *net, int *fdp, connection_ready_fn *on_ready,
                                  void *owner);
/* The same for a socket on which a try may be worth it at once: on_ready comes only after
 * connection_watch. One that has done all it is for before there was anything to wait for is never
 * watched, which saves as many system calls as reading and writing takes. */
struct connection *connection_adopt(struct net_context *net, int *fdp,
                                    connection_ready_fn *on_ready, void *owner);
/* From now on, if it is not yet; what is ready already is told as well. False: that can't be. */
bool connection_watch(struct connection *connection);
void connection_set_owner(struct connection *connection, connection_ready_fn *on_ready,
                          void *owner);
void connection_close(struct connection **connectionp);
/* Closes with a reset, so that whoever reads until close sees that the end is not the end. */
void connection_abort(struct connection **connectionp);

/* Speaks TLS from now on: IO_DONE when that stands, IO_WAIT until on_ready, IO_FAILED for the
 * reason that the client has. */
enum io_status connection_secure(struct connection *connection, struct tls_client *client);
/* Why the last read or write has failed; right after it. */
const char *connection_error(const struct connection *connection);
/* IO_DONE: *got > 0. IO_END: the other side has finished. IO_FAILED: errno tells, or
 * connection_error. */
enum io_status connection_read(struct connection *connection, char *buffer, size_t capacity,
                               size_t *got);
/* The same into several places, which are filled in their order. */
enum io_status connection_read_pieces(struct connection *connection, const struct iovec *pieces,
                                      int count, size_t *got);
/* After a read that left nothing: that many bytes are known to be on their way. on_ready follows
 * when they are there, or as many as are worth it, or after a millisecond: what is written in small
 * pieces is not read in as many. To be said after each such read; 1 is to hear of each byte. */
void connection_await(struct connection *connection, size_t bytes);
/* IO_DONE: *put > 0 bytes were taken, maybe fewer than offered. */
enum io_status connection_write(struct connection *connection, const struct iovec *pieces,
                                int count, size_t *put);
/* The same where more is written at once: what fills no packet of its own waits for that. */
enum io_status connection_write_more(struct connection *connection, const struct iovec *pieces,
                                     int count, size_t *put);
/* Bytes of a file, from *offset on, which moves. IO_END: the file ends there. */
enum io_status connection_send_file(struct connection *connection, int fd, off_t *offset,
                                    size_t length, size_t *put);
/* The same by way of our memory, for a file that may change before the client has taken them. */
enum io_status connection_copy_file(struct connection *connection, int fd, off_t offset,
                                    size_t length, size_t *put);
/* Has the other side's kernel asked every second whether it is still there, while nothing else is
 * on its way (SO_KEEPALIVE). After two minutes without an answer the connection breaks. */
void connection_keep_alive(struct connection *connection);
/* For how many milliseconds the other side's kernel has left unanswered what it has to answer; 0:
 * it owes nothing. A program that is slow, or reads nothing for now, does not count: its kernel
 * answers. One look may come a moment after a packet has gone; two in a row tell. */
uint64_t connection_unanswered(const struct connection *connection);
/* Finishes our direction. */
void connection_shutdown(struct connection *connection);

#endif
