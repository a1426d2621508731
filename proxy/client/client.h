/*
 * The HTTP/1.1 server side: client connections, and on each of them one exchange after the other.
 *
 * An exchange is a request and its response as the transaction sees it; that clients speak HTTP/1.1
 * here is known to this folder alone.
 *
 *     hooks = (struct client_hooks){.on_request = start_transaction, .arg = worker};
 *     client_accept(net, fd, &address, &listen_address, &hooks);
 *
 *     static void start_transaction(struct exchange *exchange, void *arg) {
 *         exchange->waker = &transaction->task;
 *         if (exchange->error_status != 0)  the request was bad: answer with it
 *         exchange_own_request(exchange, &transaction->arena);   before anything that may wait
 *         struct source *body = exchange_body(exchange);         NULL: the request has none
 *         if (exchange_reply(exchange, &reply)) ...              all sent; else the waker runs when
 *                                                                exchange->state says so
 *         exchange_finish(&exchange);                            on to the next request
 *     }
 *
 * Threads: the worker's. Ownership: the exchange belongs to the transaction from on_request until
 * exchange_finish; the client outlives it.
 */
#ifndef RETORT_CLIENT_CLIENT_H
#define RETORT_CLIENT_CLIENT_H

#include "base/arena.h"
#include "cache/body_reader.h"
#include "event/source.h"
#include "http/chunked.h"
#include "http/framing.h"
#include "net/connection.h"
#include "settings/settings.h"

#include <stdalign.h>

struct exchange;
struct client;

enum { CLIENT_OUTBOX = 32 * 1024 };

/* How many connections there are of all workers together, which client.max_connections bounds. It
 * stands alone in its line of memory: only who accepts and closes connections touches it. */
struct client_total {
    alignas(64) _Atomic unsigned count;
};

/* False: there are `most` already. Each that was counted is to be counted off. */
bool client_total_add(struct client_total *total, unsigned most);

struct client_hooks {
    void (*on_request)(struct exchange *exchange, void *arg);
    void *arg;
    struct mailbox *mailbox;
    struct list_link clients; /* all open ones */
    unsigned client_count;
    struct client_total *total; /* those of all workers */
    uint64_t sheds_again;       /* nanoseconds of the loop's clock */
    bool draining;              /* no connection is kept open after its response */
    struct exchange *free_exchanges;
    unsigned free_exchange_count;
    char outbox[CLIENT_OUTBOX]; /* see outbox.c */
};

void client_hooks_init(struct client_hooks *hooks, struct mailbox *mailbox,
                       struct client_total *total,
                       void (*on_request)(struct exchange *exchange, void *arg), void *arg);
void client_hooks_release(struct client_hooks *hooks);
/* net->settings are others now. */
void client_settings_changed(struct client_hooks *hooks);
/* Closes idle connections at once, and the others after their response. */
void client_drain(struct client_hooks *hooks);
/* Resets every connection; transactions learn that their client is gone. */
void client_abort_all(struct client_hooks *hooks);

/* Memory is exhausted, or connections hold as much as they may, so that nothing new is to begin. In
 * the latter case slow readers are cut, one after the other. */
bool client_lacks_memory(struct client_hooks *hooks, struct net_context *net);
/* The connection has been counted in hooks->total. */
void client_accept(struct net_context *net, int fd, const struct address *address,
                   const struct address *listen_address, struct client_hooks *hooks);

/* A part of a multipart body: what stands before it, and its place in the stored body. */
struct reply_part {
    struct slice head;
    uint64_t first, count;
};

/* What the transaction wants sent. Slices, parts and a body that is sent in parts must live until
 * the exchange is finished. */
struct reply {
    struct slice head;  /* "HTTP/1.1 200 OK\r\n" and field lines, without those of framing */
    struct slice extra; /* more field lines */
    struct body *body;  /* NULL: none */
    int64_t length;     /* for Content-Length; -1: not known */
    bool part;          /* only `length` bytes of the body, from `first` on */
    uint64_t first;
    const struct reply_part *parts; /* of a multipart body, or NULL; `length` is that of all */
    unsigned part_count;
    struct slice tail;            /* behind the last of them */
    const struct slice *trailers; /* lines behind a chunked body, there when it ends; or NULL */
    bool no_content;              /* 1xx, 204, 304: not even a Content-Length of 0 */
    bool close;                   /* do not keep the connection */
};

enum exchange_state {
    EXCHANGE_REQUEST, /* no reply yet */
    EXCHANGE_SENDING,
    EXCHANGE_SENT,    /* all of the reply has been handed to the kernel */
    EXCHANGE_ABORTED, /* the client is gone, or the body failed and the client was told so by a
                         broken connection */
};

struct exchange {
    unsigned magic;
#define EXCHANGE_MAGIC 0xe0c4a13eu
    struct exchange *next_free;
    struct client *client;
    struct http_head request;
    struct framing framing;
    unsigned error_status; /* not 0: the request can't be served; the reason is error_text */
    const char *error_text;
    /* Of net->settings at the moment of on_request, and so of the snapshot that the transaction
     * holds: not to be handed on to another exchange. */
    const struct listen_settings *listen;
    struct task *waker;
    enum exchange_state state;
    bool background;        /* nobody waits for the reply: exchange_repeat_in_background */
    char *background_bytes; /* its request head; owned */
    bool owned;             /* the request's bytes have been copied */
    bool head_request;      /* the reply has no body whatever it says */
    bool keep_alive;
    uint64_t started;           /* of the loop's clock, nanoseconds */
    uint64_t bytes_sent, heads; /* of that: what goes before the reply's body */
    /* the request's body */
    struct source body;
    bool body_taken, body_in_use, body_ended, body_failed, body_timed_out, expects_continue;
    uint64_t body_left; /* FRAMING_LENGTH */
    struct chunked_decoder chunked;
    /* the reply */
    struct slice parts[2]; /* head and extra still to be sent */
    unsigned frame_begin, frame_end;
    bool has_reader, use_chunked, first_chunk, end_framed;
    uint64_t chunk_left;
    struct slice last_chunk; /* behind it, once it is known to be the last but that */
    struct task reader_task;
    const struct slice *trailers;
    struct body *parts_body; /* sent in parts; NULL: it is not */
    const struct reply_part *next_part;
    unsigned parts_left;
    struct slice tail;
    /* From here on nothing is set for a new exchange. */
    struct body_reader reader; /* if has_reader */
    char frame[320];           /* made here: framing fields and the empty line, chunk heads */
};

enum client_state { CLIENT_IDLE, CLIENT_HEAD, CLIENT_BUSY, CLIENT_LINGERING };

struct client {
    unsigned magic;
#define CLIENT_MAGIC 0xc11e4700u
    enum client_state state;
    struct net_context *net;
    struct client_hooks *hooks;
    struct connection *connection;
    struct net_buffer *buffer;
    struct exchange *exchange;
    const struct listen_settings *listen; /* of net->settings; NULL: there is none any more */
    char *held_memory;                    /* where what is held stands; NULL: in the outbox */
    struct slice held;   /* answers that leave with those to the requests behind them */
    size_t head_checked; /* bytes of the buffer known to hold no end of head */
    unsigned requests;
    bool reading;  /* client_read is at work further up the stack */
    bool finished; /* no further request will be read */
    struct timer timer;
    struct task turn; /* requests wait that it was not this client's turn to be served any more */
    /* So far a hit comes: the fewer lines of memory that is, the sooner they are at hand. With an
     * access log it comes to the next two as well. */
    uint8_t ip_length;
    char ip[ADDRESS_IP_TEXT]; /* see client_ip */
    struct list_link link;
    size_t lingered;
    struct address address, listen_address;
};

/* The client's address as text; lives as long as the client does. */
struct slice client_ip(struct client *client);
/* Copies the request's head out of the read buffer. */
void exchange_own_request(struct exchange *exchange, struct arena *arena);
/* The request's body; NULL when there is none. May be taken once; closing it is optional. */
struct source *exchange_body(struct exchange *exchange);
/* What was sent of the reply behind its head, framing included. */
static inline uint64_t exchange_body_bytes(const struct exchange *exchange) {
    bool begun = exchange->heads > 0 && exchange->bytes_sent > exchange->heads;
    return begun ? exchange->bytes_sent - exchange->heads : 0;
}
/* Starts sending. True: everything has been sent already. */
bool exchange_reply(struct exchange *exchange, const struct reply *reply);
/* A head that goes out before the reply: an interim response, or the 200 that opens a tunnel.
 * False: it could not be sent whole, and the exchange is aborted. */
bool exchange_interim(struct exchange *exchange, struct slice bytes);
/* An interim response for the client's information: left out where it can't be sent at once. */
void exchange_hint(struct exchange *exchange, struct slice bytes);
/* Starts an exchange with the same request for which no client waits: it takes the same way through
 * the steps, and its reply goes nowhere. For refreshing what has just been served stale. False: a
 * reload has removed the listener, and nothing says any more what it may ask for. */
bool exchange_repeat_in_background(const struct exchange *exchange);
/* Ends the exchange: reads the next request, or closes. */
void exchange_finish(struct exchange **exchangep);
/* Breaks the connection so that the client can't take what it got for whole. */
void exchange_abort(struct exchange *exchange);
/* For tunnels: the connection leaves HTTP. *leftover are bytes that came behind the request. */
struct connection *exchange_take_connection(struct exchange *exchange,
                                            struct net_buffer **leftover);

/* Inside client/. */

/* What one connection is served and sent before others get their turn: 1 MB and its head. */
enum { TURN_REQUESTS = 64, TURN_BYTES = (1024 + 16) * 1024 };

/* True: requests wait behind the one that these bytes answer, and they are held back for a while;
 * *held is how many they are. */
bool client_hold(struct client *client, const struct iovec *pieces, int count, size_t *held);
/* Writes what is held, then pieces[1 .. count], of which *put bytes are taken; pieces[0] is room
 * for the former. more: something else is written at once. */
enum io_status client_write(struct client *client, struct iovec *pieces, int count, bool more,
                            size_t *put);
/* Writes what is held. IO_WAIT: the rest waits in memory of its own. */
enum io_status client_flush(struct client *client);
/* Bytes that nobody has read yet, or may well have come. */
static inline bool client_has_input(const struct client *client) {
    return client->connection->readable ||
           (client->buffer != NULL && client->buffer->begin < client->buffer->end);
}
void client_on_ready(struct connection *connection);
void exchange_send(struct exchange *exchange);
void exchange_on_body(struct task *task);
void exchange_body_init(struct exchange *exchange);
bool exchange_body_skip_rest(struct exchange *exchange);
void client_lost(struct client *client);

#endif
