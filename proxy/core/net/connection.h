/*
 * A connection: a stream socket on a loop, non-blocking, edge-triggered. Everything above net/
 * reads and writes through here, and does not know what lies below.
 *
 *     struct connection *connection = connection_new(net, &fd, on_ready, client);
 *     static void on_ready(struct connection *connection) {      readable or writable has changed
 *         while (connection->readable)
 *             switch (connection_read(connection, buffer, sizeof buffer, &got)) ...
 *     }
 *     connection_close(&connection);
 *
 * `readable` and `writable` say that a read or a write is worth a system call. A read that empties
 * the socket, or a write that fills it, clears its flag. on_ready is called when the kernel reports
 * a change.
 *
 * Threads: the loop's thread only. Ownership: the holder of the pointer owns the connection. When
 * the connection moves to another owner (to a pool and back), connection_set_owner is called; that
 * needs no system call.
 */
#ifndef RETORT_NET_CONNECTION_H
#define RETORT_NET_CONNECTION_H

#include "net/address.h"
#include "net/context.h"
#include "tls/stream.h"

#include <sys/uio.h>

struct connection {
    unsigned magic;
#define CONNECTION_MAGIC 0xc0110c7eu
    bool readable, writable;
    bool watched; /* by the loop */
    bool hangup;  /* the other side has finished: reads give the bytes that are left, then IO_END */
    bool broken;  /* the connection was reset: written bytes do not arrive any more */
    bool ending;  /* our direction ends when TLS has sent what is left */
    void (*on_ready)(struct connection *connection);
    struct tls_stream *tls;   /* owned; NULL: no TLS */
    struct tls_stream *below; /* owned; what the next connection_secure speaks through */
    struct net_context *net;
    struct event event; /* its owner is the connection's */
    /* Events that report bytes or room do not touch the members below. */
    struct timer timer;         /* of connection_await, or of the pool */
    unsigned low_water;         /* SO_RCVLOWAT: bytes that make the socket readable */
    struct list_link pool_link; /* while the connection is in a pool */
    uint64_t pooled_at;         /* loop->looks when it came into the pool */
    struct pool_key *pool_key;
    struct own_connection *own; /* owned, net/own_connections.h; NULL: it is not in that set */
    struct address *remote;     /* owned; see connection_note_remote; NULL: it was not noted */
};

typedef void connection_ready_fn(struct connection *connection);

/* Takes the descriptor (*fdp becomes -1). NULL when the loop can't watch the descriptor, which is
 * closed then. */
struct connection *connection_new(struct net_context *net, int *fdp, connection_ready_fn *on_ready,
                                  void *owner);
/* Like connection_new, for a socket that may be readable or writable at once. The loop does not
 * watch the connection, and on_ready is not called, before connection_watch. A connection that
 * never has to wait is never watched, which saves system calls. */
struct connection *connection_adopt(struct net_context *net, int *fdp,
                                    connection_ready_fn *on_ready, void *owner);
/* Makes the loop watch the connection, unless it does already. on_ready is also called for what is
 * ready now. False: the loop can't watch it. */
bool connection_watch(struct connection *connection);
void connection_set_owner(struct connection *connection, connection_ready_fn *on_ready,
                          void *owner);
/* Keeps the address that the connection leads to, for those who take it from a pool. */
void connection_note_remote(struct connection *connection, const struct address *remote);
void connection_close(struct connection **connectionp);
/* Like connection_close, in the middle of a message: with TLS, no close_notify says that all has
 * been sent. */
void connection_cut(struct connection **connectionp);
/* Closes with a reset, so that a reader who reads until the close sees that bytes are missing. */
void connection_abort(struct connection **connectionp);

/* Starts or continues the TLS handshake with a server. IO_DONE: the connection speaks TLS. IO_WAIT:
 * call again after on_ready. IO_FAILED: tls_client_error says why. */
enum io_status connection_secure(struct connection *connection, struct tls_client *client);
/* The same with a client. `replay`: bytes that were read from the connection before; they are copied
 * by the first call. IO_FAILED: connection_error says why. */
enum io_status connection_accept_secure(struct connection *connection, struct tls_server *server,
                                        struct slice replay);
/* Makes the TLS stream of the next connection_accept_secure, which may be shown a certificate first
 * (tls_stream_show). False: tls_server_error says why. */
bool connection_prepare_secure(struct connection *connection, struct tls_server *server,
                               struct slice replay);
/* NULL: clear text, or the handshake is not complete. They live as long as the connection. */
const struct tls_facts *connection_tls_facts(const struct connection *connection);
/* The TLS that the connection speaks becomes the way for further TLS, which the next
 * connection_secure begins. Without TLS it has no effect. */
void connection_nest(struct connection *connection);
/* Says why the last read or write failed. Call it directly after that read or write. */
const char *connection_error(const struct connection *connection);
/* IO_DONE: *got > 0. IO_END: the other side has finished. IO_FAILED: connection_error says why;
 * without TLS errno does too. */
enum io_status connection_read(struct connection *connection, char *buffer, size_t capacity,
                               size_t *got);
/* Copies the first byte that waits in the socket, and leaves it there. Not for connections with
 * TLS. */
enum io_status connection_peek(struct connection *connection, char *first);
/* Like connection_read, into several buffers, which are filled in their order. */
enum io_status connection_read_pieces(struct connection *connection, const struct iovec *pieces,
                                      int count, size_t *got);
/* Says after a read that emptied the socket how many bytes are still expected. on_ready is called
 * when they are there, or 48 KB of them, or after a millisecond. So bytes that are sent in many
 * small pieces need few reads. Call it after each such read. With 1, on_ready is called for each
 * byte. */
void connection_await(struct connection *connection, size_t bytes);
/* IO_DONE: *put > 0 bytes were taken, maybe fewer than offered. */
enum io_status connection_write(struct connection *connection, const struct iovec *pieces,
                                int count, size_t *put);
/* Like connection_write, when another write follows at once: the kernel keeps bytes that do not
 * fill a packet until then (MSG_MORE), and TLS keeps all. */
enum io_status connection_write_more(struct connection *connection, const struct iovec *pieces,
                                     int count, size_t *put);
/* Sends bytes of a file from *offset, and moves *offset. IO_END: the file ends there. With TLS, the
 * bytes are copied to be encrypted, unless the kernel encrypts. */
enum io_status connection_send_file(struct connection *connection, int fd, off_t *offset,
                                    size_t length, size_t *put);
/* Like connection_send_file, but copies the bytes first. It is for a file that may change before
 * the client has received the bytes. `offset` does not move. */
enum io_status connection_copy_file(struct connection *connection, int fd, off_t offset,
                                    size_t length, size_t *put);
/* Makes our kernel ask the other side's kernel every second whether it is still there, while no
 * other packets are under way (SO_KEEPALIVE). After two minutes without an answer the connection
 * breaks. */
void connection_keep_alive(struct connection *connection);
/* Lets about so many bytes wait in our kernel that are not sent yet. What is written next then leaves
 * soon, which counts where several responses share a connection. */
void connection_limit_unsent(struct connection *connection, int bytes);
/* What the other side's kernel lets us know of itself, in milliseconds. A program there that is slow
 * or does not read does not count, because its kernel still answers. */
struct connection_signs {
    uint64_t
        unanswered; /* for so long it has not acknowledged our packets; 0: no packet is overdue */
    uint64_t heard; /* so long ago a packet came last */
    unsigned asked; /* so often our kernel has asked since: keep-alive probes, data sent again */
};
/* A single result may mislead when a packet has only just been sent; two in a row are reliable. A
 * packet may be lost on its way: silence is what nothing of CONNECTION_SIGNS_ASKED has ended. */
enum { CONNECTION_SIGNS_ASKED = 2 };
struct connection_signs connection_signs(const struct connection *connection);
/* `unanswered`; 0 as well: one packet is overdue, which may have been lost. */
static inline uint64_t connection_unanswered(const struct connection *connection) {
    struct connection_signs signs = connection_signs(connection);
    return signs.asked < CONNECTION_SIGNS_ASKED ? 0 : signs.unanswered;
}
/* Ends our direction, with TLS by a close_notify; the other side may go on sending. */
void connection_shutdown(struct connection *connection);

#endif
