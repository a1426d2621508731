/*
 * An exchange: one request and its reply, as a transaction sees them, whatever protocol carries
 * them. A transaction never includes a protocol's room; a new protocol fills in the same struct and
 * a table of functions (struct exchange_class), and nothing in transaction/ changes.
 *
 *     static void on_request(struct exchange *exchange, void *arg) {
 *         exchange->waker = &transaction->task;
 *         if (exchange->error_status != 0) ...                    answer with that status
 *         exchange_own_request(exchange, &transaction->arena);    before anything that may wait
 *         struct source *body = exchange_body(exchange);          NULL: the request has none
 *         if (exchange_reply(exchange, &reply)) ...               all of it has been sent; else the
 *                                                                 waker runs when it has been
 *         exchange_finish(&exchange);
 *     }
 *
 * The state of an exchange changes in one direction only: REQUEST, SENDING, SENT; or ABORTED from
 * REQUEST or SENDING. The waker is deferred on the worker's loop when an exchange becomes SENT or
 * ABORTED by itself.
 *
 * What a protocol owes an exchange:
 * - Everything below `request` is set before on_request is called; `request` holds no fields that
 *   only say how the protocol frames a message or keeps its connection, except those that the
 *   transaction removes anyway (RFC 9110 §7.6.1).
 * - request.target has a form of RFC 9112 §3.2. A protocol that carries scheme, authority and path
 *   apart writes the absolute form for a forward listener, and the origin form for a reverse one.
 * - What `ends` points to lives as long as the exchange. Several exchanges of one connection may
 *   share it.
 * - Timers, flow control and the life of the connection are the protocol's. A request body that
 *   comes too slowly fails with body_timed_out set; a reply that the client does not take is
 *   aborted.
 * - An extended CONNECT (RFC 8441) is shown as a GET with `upgrade`; open_tunnel then answers 200
 *   where HTTP/1.1 answers 101.
 * - A duplex that open_tunnel gave stays usable until it is closed, also when the exchange has been
 *   finished before. If many streams share a connection, the stream goes on without its exchange.
 *
 * Threads: the worker's. Ownership: the exchange is the transaction's from on_request until
 * exchange_finish.
 */
#ifndef RETORT_CLIENT_EXCHANGE_H
#define RETORT_CLIENT_EXCHANGE_H

#include "base/arena.h"
#include "base/assert.h"
#include "cache/body.h"
#include "cache/body_reader.h"
#include "client/pace.h"
#include "event/source.h"
#include "http/head.h"
#include "net/duplex.h"
#include "settings/settings.h"
#include "tls/facts.h"

/*
 * The listeners of one snapshot of the settings, held by the exchanges that began under it.
 *
 *     struct listen_set *set = listen_set_new(net->settings, tickets);
 *     exchange->listen_set = listen_set_reference(set);
 *     listen_set_release(&exchange->listen_set);
 *
 * A set holds a reference on its snapshot, so that a reload takes no listener's settings from under a request.
 * Each worker has sets of its own: their count is a plain integer, and a request writes to no memory that
 * other workers write to as well.
 */

struct listen_set {
    unsigned magic;
#define LISTEN_SET_MAGIC 0x115e5e70u
    unsigned references;
    struct settings *settings;   /* referenced */
    struct tls_server **servers; /* one a listener; NULL: it speaks clear text */
};

/* `tickets`: see tls/ticket_keys.h. */
struct listen_set *listen_set_new(struct settings *settings, struct ticket_keys *tickets);
void listen_set_free(struct listen_set *set);
/* The settings of the listener at that address; NULL: the snapshot has none. */
const struct listen_settings *listen_set_find(const struct listen_set *set,
                                              const struct address *address);

/* The TLS server of a listener of the set; NULL: it speaks clear text, or `listen` is NULL. */
struct tls_server *listen_set_server(const struct listen_set *set,
                                     const struct listen_settings *listen);

static inline struct listen_set *listen_set_reference(struct listen_set *set) {
    set->references++;
    return set;
}

static inline void listen_set_release(struct listen_set **setp) {
    struct listen_set *set = *setp;
    *setp = NULL;
    if (set != NULL && --set->references == 0)
        listen_set_free(set);
}

/*
 * A reply: what a transaction wants sent to the client. It says what is to be sent, not in which
 * form: each protocol writes status, fields and body in its own way.
 *
 *     struct reply reply = {.status = 200, .stored = object_head(object)};
 *     reply.extra = SLICE("Age: 7\r\n");
 *     reply.body = object->body;
 *     reply.length = 512;
 *     exchange_reply(exchange, &reply);
 *
 * The head is either stored or made. A stored one is text in the form of HTTP/1.1, which that
 * protocol sends as it is; another parses it (http/head_parser.h), and the extra lines likewise.
 * Neither has fields that say how the protocol frames a message or what becomes of a connection
 * (Connection, Content-Length, Transfer-Encoding); protocols add those.
 *
 * All that a reply points to lives until the exchange is finished.
 */

/* A part of a multipart body: what stands before it, and its place in the stored body. */
struct reply_part {
    struct slice head;
    uint64_t first, count;
};

struct reply {
    unsigned status;              /* 200..999 */
    const struct http_head *head; /* made for this reply; NULL: it is stored */
    struct slice stored;          /* the status line and field lines of a stored response */
    struct slice extra;           /* more field lines */
    struct arena *arena;          /* with `head`: for what the protocol makes of it */
    struct body *body;            /* NULL: none */
    int64_t length;               /* of what is sent of the body, -1: not known; of a reply to HEAD
                                     and of a 304, what the body would have */
    bool part;                    /* only `length` bytes of the body, from `first` on */
    bool close;                   /* the request may not have been read as its sender meant it: a
                                     protocol whose requests follow one another ends after this */
    uint64_t first;
    const struct reply_part *parts; /* of a multipart body, or NULL; `length` is that of all */
    unsigned part_count;
    struct slice tail;            /* behind the last of them */
    const struct slice *trailers; /* lines behind the body, there when it ends; or NULL */
};

/* Neither a body nor a length of 0 (RFC 9110 §8.6). */
static inline bool reply_has_no_content(const struct reply *reply) {
    return reply->status == 204 || reply->status == 304;
}

struct clients;
struct connection_hold;
struct exchange;
struct identity;
struct intercepted;
struct redirection;

enum exchange_state {
    EXCHANGE_REQUEST, /* no reply yet */
    EXCHANGE_SENDING,
    EXCHANGE_SENT,    /* all of the reply has been handed to the kernel */
    EXCHANGE_ABORTED, /* the client has left, or the reply could not be completed and the client was
                         told so in the way of its protocol */
};

/* What differs between protocols. */
struct exchange_class {
    const char *name;
    bool carries_connection; /* what open_tunnel gives is a connection of its own, which others can
                                take over (duplex_take_connection) */
    struct source *(*body)(struct exchange *exchange);
    void (*reply)(struct exchange *exchange, const struct reply *reply);
    void (*interim)(struct exchange *exchange, const struct http_head *head);
    struct duplex *(*open_tunnel)(struct exchange *exchange, struct http_head *head,
                                  struct slice protocol);
    void (*abort)(struct exchange *exchange);
    void (*finish)(struct exchange *exchange);
    /* How many bytes of the request's body have been read; NULL: no request of it has a body. */
    uint64_t (*received)(const struct exchange *exchange);
};

/* The two ends of the connection that a request came on. */
struct exchange_ends {
    uint8_t ip_length;        /* 0: not written yet */
    char ip[ADDRESS_IP_TEXT]; /* the client's; see exchange_client_ip */
    struct address client;
    const struct address *destination; /* that the client's connection was accepted at: the
                                          listener's, which may stand for any of the machine's */
    struct redirection *redirection; /* of a connection to a transparent listener; NULL: of another
                                          one, or of the inside of an intercepted one */
    bool
        rewritten; /* it is, or is inside of, one that came by REDIRECT: see client/redirection.h */
    struct tls_facts *tls;           /* counted; NULL: the client's connection is clear text */
    struct intercepted *intercepted; /* the connection is the inside of an intercepted one; NULL:
                                          it is not */
    struct connection_hold *holds;   /* what counts the connection for users (clients.h) */
};

/* The client behind a proxy that the listener trusts. */
struct exchange_behind {
    struct address address; /* port 0: not known */
    uint8_t ip_length;
    char ip[ADDRESS_IP_TEXT];
};

/* What a transaction tells whoever has made the exchange, before exchange_finish. */
struct exchange_told {
    struct slice result, url;    /* as in the access log; the name under which the cache knows it */
    const char *error;           /* NULL: there was none */
    bool stored, denied, failed; /* is it in the cache now? */
};

struct exchange {
    unsigned magic;
#define EXCHANGE_MAGIC 0xe0c4a13eu
    const struct exchange_class *class;
    struct http_head request;
    struct clients *clients;
    struct exchange_ends *ends;
    struct listen_set *listen_set;        /* referenced */
    const struct listen_settings *listen; /* of listen_set; NULL: a reload has removed it */
    uint64_t started;                     /* of the loop's clock, nanoseconds */
    struct slice version;                 /* of HTTP, "1.1", as Via and the access log show it */
    const struct url_scheme *scheme;      /* of a target in origin form */
    /* What follows begins as zero. */
    enum exchange_state state;
    bool background;  /* nobody waits for the reply: exchange_repeat_in_background */
    const char *told; /* likewise; NULL: the exchange repeats no other */
    bool of_service;  /* no client has sent the request, but a service: content/fetch.h */
    struct exchange_told *told_of; /* NULL: nobody wants to know */
    bool owned;         /* the request's head has been copied out of the protocol's buffer */
    bool is_connection; /* transparent mode: the client sent no request; the exchange stands for its
                           connection to ends->destination, as a CONNECT would */
    /* What the request means. */
    bool is_head;          /* the reply has no body, whatever its head says */
    bool takes_trailers;   /* the client takes trailers (RFC 9110 §10.1.4) */
    bool expects_unknown;  /* Expect asks for something other than 100-continue (§10.1.1) */
    bool body_failed;      /* the client sent less than the whole body, or a malformed one */
    bool body_timed_out;   /* body_failed, because the body came too slowly */
    unsigned error_status; /* not 0: the request can't be served; error_text is the reason */
    const char *error_text;
    int64_t body_length;    /* 0: no body; -1: known when it has ended. It can be read once. */
    struct slice authority; /* Host, or what stands for it; empty: none was sent */
    struct slice upgrade;   /* what the client would change to (RFC 9110 §7.8); empty: nothing */
    struct exchange_behind *behind; /* see exchange_set_client; NULL: the client's connection ends
                                       here */
    struct identity
        *identity;        /* whose the request is, by its transaction; NULL: nobody is proved */
    bool body_too_large;  /* body_failed, because of paces[PACE_UP]->most */
    bool reply_too_large; /* the reply was broken off because of paces[PACE_DOWN]->most */
    /* How fast the reply and the body may flow, and how long they may be; the transaction's. NULL:
     * that is not limited. */
    struct pace *paces[PACE_WAYS];
    struct task *waker;
    uint64_t bytes_sent; /* to the client, all of the reply and interim responses */
    uint64_t head_bytes; /* of those, what goes before the reply's body */
};

/* For protocols: gives back what exchange_init (client/clients.h) took. */
static inline void exchange_release(struct exchange *exchange) {
    listen_set_release(&exchange->listen_set);
    exchange->magic = 0;
}

/* Did the request come on the inside of an intercepted connection? */
static inline bool exchange_is_intercepted(const struct exchange *exchange) {
    return exchange->ends->intercepted != NULL;
}

/* The client of this request: for rules, limits, logs and services. It differs from that of the
 * connection, `ends->client`, where a trusted proxy in front has said for whom it asks. */
static inline const struct address *exchange_client(const struct exchange *exchange) {
    return exchange->behind == NULL ? &exchange->ends->client : &exchange->behind->address;
}

/* The request is from this client, and the connection is a proxy's. `behind` outlives the
 * exchange. */
void exchange_set_client(struct exchange *exchange, const struct address *client,
                         struct exchange_behind *behind);
/* The client's address as text; lives as long as the exchange does. */
struct slice exchange_client_ip(struct exchange *exchange);
/* Likewise of whoever has opened the connection: the client, or a proxy in front. */
struct slice exchange_peer_ip(struct exchange *exchange);
/* Copies the request's head out of the protocol's buffer, once. */
void exchange_own_request(struct exchange *exchange, struct arena *arena);
/* The bytes of the reply that were sent behind its head, with the protocol's framing. */
static inline uint64_t exchange_body_bytes(const struct exchange *exchange) {
    bool begun = exchange->head_bytes > 0 && exchange->bytes_sent > exchange->head_bytes;
    return begun ? exchange->bytes_sent - exchange->head_bytes : 0;
}

static inline uint64_t exchange_received(const struct exchange *exchange) {
    return exchange->class->received == NULL ? 0 : exchange->class->received(exchange);
}

/* The request's body; NULL: it has none. May be taken once; closing it is optional. */
static inline struct source *exchange_body(struct exchange *exchange) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    return exchange->body_length == 0 ? NULL : exchange->class->body(exchange);
}

/* Starts sending the reply; no effect once the exchange is aborted. True: all of it is sent. */
static inline bool exchange_reply(struct exchange *exchange, const struct reply *reply) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->state == EXCHANGE_ABORTED)
        return false;
    ASSERT(exchange->state == EXCHANGE_REQUEST);
    exchange->class->reply(exchange, reply);
    return exchange->state == EXCHANGE_SENT;
}

/* An interim response (1xx) for the client's information. The protocol leaves it out for a client
 * that knows none, and where it can't be sent at once. */
static inline void exchange_interim(struct exchange *exchange, const struct http_head *head) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->state == EXCHANGE_REQUEST)
        exchange->class->interim(exchange, head);
}

/* Answers a CONNECT (status 200, `protocol` empty) or a request for an upgrade (101, `protocol` is
 * the one agreed on), after which bytes flow both ways and HTTP is over. The caller owns the
 * duplex, which begins with bytes that came behind the request and may outlive the exchange. NULL:
 * the head could not be sent, and the exchange is aborted. The protocol may add fields to the
 * head. */
static inline struct duplex *exchange_open_tunnel(struct exchange *exchange, struct http_head *head,
                                                  struct slice protocol) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    return exchange->state == EXCHANGE_REQUEST
               ? exchange->class->open_tunnel(exchange, head, protocol)
               : NULL;
}

/* Breaks the reply off, so that the client can't take what it got for the whole. Harmless when the
 * client is gone already. */
static inline void exchange_abort(struct exchange *exchange) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    exchange->class->abort(exchange);
}

/* Ends the exchange, and gives the client's connection back to its protocol. */
static inline void exchange_finish(struct exchange **exchangep) {
    struct exchange *exchange = *exchangep;
    *exchangep = NULL;
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    exchange->class->finish(exchange);
}

/* Starts an exchange with the same request for which no client waits. It takes the same way through
 * the steps, and its reply goes nowhere. For refreshing what has just been served stale; the
 * request has no body. `told` names the fields of the request that tell the origin who asks
 * (transaction/disclosed_identity.h); it is copied. False: a reload has removed the listener, and nothing
 * says any more what it may ask for. */
bool exchange_repeat_in_background(const struct exchange *exchange, struct slice told);

#endif
