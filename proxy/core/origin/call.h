/*
 * A call to an origin: one request and its response, as a transaction sees them, whatever protocol
 * carries them. Nobody above origin/ includes a protocol's room. A protocol is a table of functions
 * (struct origin_call_class), which the worker registers (origin/origin_pool.h).
 *
 *     struct origin_request request = {.host = ..., .port = 80, .head = bytes, .body = source};
 *     origin_call_start(&call, net, connections, &request, &response_head, &transaction->task);
 *     ... the task runs ...
 *     switch (call.state) {
 *     case ORIGIN_ANSWERED: response_head is there;
 *                           struct source *body = origin_call_body(&call);   NULL: none
 *     case ORIGIN_FAILED:   call.failure and call.error say why
 *     }
 *     origin_call_close(&call);
 *
 * Interim responses (1xx) are passed to on_interim. A connection that was used before may die
 * before the first byte of the response. The call then repeats the request once on a new
 * connection, if the request may be repeated and nothing of its body has been read (RFC 9112
 * §9.3.1). With `security` the connection speaks TLS, or there is none: no failure leads to clear
 * text. The body of the response may begin while the body of the request is still being sent.
 *
 * The call is split in two. What all protocols share stands in origin/call.c: making the
 * connection, timeouts, repetition, the slot. What carries the request stands in the protocol's
 * room, with its memory in `room`: it sends, receives, and owns the connection.
 *
 * The response head's slices point into the protocol's buffer: copy it before reading the body.
 * Threads: the worker's. The struct is the caller's; so is the request's body (it is only read).
 */
#ifndef RETORT_ORIGIN_CALL_H
#define RETORT_ORIGIN_CALL_H

#include "event/source.h"
#include "http/chunked.h"
#include "http/url.h"
#include "net/dial.h"
#include "net/duplex.h"
#include "origin/origin_pool.h"
#include "origin/security.h"
#include "origin/slot.h"

#include <stdalign.h>
#include <stddef.h>

enum origin_state { ORIGIN_CONNECTING, ORIGIN_WAITING, ORIGIN_ANSWERED, ORIGIN_FAILED };

enum origin_failure {
    ORIGIN_UNREACHABLE, /* no connection: 502 */
    ORIGIN_DENIED,      /* out of the client's reach: 403 */
    ORIGIN_TIMED_OUT,   /* 504 */
    ORIGIN_REFUSED,     /* the parent opens no tunnel to it, or something else is there: 502 */
    ORIGIN_BROKE_OFF,   /* closed or reset before the whole head: 502 */
    ORIGIN_BAD,         /* what it sent is not HTTP as we know it: 502 */
    ORIGIN_NO_REQUEST,  /* the request's body broke off */
};

struct origin_request {
    struct slice host;
    uint16_t port;
    enum egress egress;
    dial_permit_fn *permit; /* is also asked about the address of a pooled connection; NULL: none */
    void *permit_arg;       /* lives as long as the call */
    struct slice pool_key;  /* another one for each reach, `from`, security and `protocols` */
    enum origin_protocols protocols; /* that a connection may come to speak */
    const struct address *from;   /* that the connection comes from; NULL: the system chooses it */
    const struct address *client; /* whose request it is, for the bound on look-ups; NULL: the
                                     proxy's own. Read by origin_call_start only. */
    struct tls_client *security;  /* https (origin/security.h), counted by the call; NULL: http */
    struct dial_proxy proxy;      /* the parent that opens a tunnel to an https origin */
    struct slice preface;         /* sent first on a new connection, TLS included */
    /* The request as HTTP/1.1 writes it, complete, with the empty line. Where another protocol may
     * carry it, `fields` stands in its place: the same request as a head, from which the protocol
     * makes what it sends, with memory of `arena`. Both live as long as the call. */
    struct slice head;
    const struct http_head *fields;
    struct arena *arena;
    enum http_method method;
    struct source *body;      /* NULL: none */
    bool chunked;             /* how to send the body; else as it is */
    bool repeatable;          /* may go over a pooled connection and be sent again */
    bool used_up;             /* its credentials may count for the whole connection, which must
                                 carry no other request after it */
    struct slice upgrade;     /* the protocol that is offered: a 101 that names it is an answer, and
                                 the connection then leaves HTTP; empty: none */
    struct origin_slot *slot; /* at the group's server that this goes to; NULL: it is of none */
    /* An interim response other than 100 has come; NULL: they are left (RFC 9110 §15.2). */
    void (*on_interim)(void *arg, const struct http_head *head);
    void *interim_arg;
    /* The origin demands HTTP/1.1: sets what leads to it once more, with ORIGIN_HTTP1. `security` and
     * `proxy.tls` are counted for the call. NULL: the call fails. */
    void (*on_http1)(void *arg, struct origin_request *request);
    void *http1_arg;
    char *trailer_space; /* CHUNKED_TRAILERS_MAX bytes; NULL: trailers are skipped */
    uint64_t deadline;   /* of the whole, in the loop's time; TIMER_NEVER: none */
    uint64_t connect_timeout, first_byte_timeout, read_timeout, idle_timeout;
    size_t max_head;
    unsigned max_idle;
};

/* The bytes of a protocol's own part of a call. */
enum { ORIGIN_CALL_ROOM = 384 };

/* How often a call is repeated: three times. But a server that ends a connection after a number of
 * requests, while many more wait, sends the same ones on again and again; those repeats cost less. */
enum { ORIGIN_REPEATS_MOST = 24, ORIGIN_REPEAT = 8, ORIGIN_REPEAT_SENT_ON = 1 };

struct origin_call {
    unsigned magic;
#define ORIGIN_CALL_MAGIC 0x0419ca11u
    enum origin_state state;
    enum origin_failure failure;
    const char *error; /* lives as long as the call */
    char *own_error;   /* `error`, if it is not static text */
    struct net_context *net;
    struct origin_pool *connections;
    const struct origin_call_class *class; /* NULL: nothing carries the request yet */
    struct origin_request request;
    struct task *waker;
    struct task dial_task;
    struct task send_task; /* the request's body may have more */
    struct timer timer, total_timer;
    uint64_t patience_ends;   /* with the origin; `timer` may look at its host before */
    unsigned doubts;          /* looks in a row that found the host silent */
    unsigned interim;         /* 1xx responses so far */
    struct origin_site *site; /* counted; NULL: calls share no connections there */
    struct list_link waiting; /* of site->waiting */
    bool waits;               /* it is there */
    bool dial_failed;         /* its own dial, with `failure` */
    bool unprocessed;         /* the origin says that it has done nothing for the request */
    bool wants_http1;         /* the origin demands it for the request */
    bool sent_on;             /* likewise, because it ends the connection in good order (GOAWAY) */
    unsigned repeats;         /* what they cost so far: see ORIGIN_REPEATS_MOST */
    bool unsent;              /* no connection for the request has been there yet */
    bool reached;             /* a dial has made a connection, whether TLS then failed or not */
    bool reused, heard;       /* the connection was used before; it has sent something */
    bool body_begun;          /* bytes of the request's body have been read */
    struct http_head *response;
    struct source body;
    bool no_body;           /* the response has none */
    bool may_have_trailers; /* fields may come behind its body (`trailers`) */
    bool body_open, body_ended, body_failed;
    struct slice trailers;  /* field lines behind the body, those that may pass; at its end */
    struct address address; /* of the origin, or of the parent that leads to it */
    uint64_t started;       /* nanoseconds of the loop's clock */
    /* The protocol's own part; zero when a connection is taken. */
    alignas(max_align_t) unsigned char room[ORIGIN_CALL_ROOM];
    /* dial_start sets the rest: a call over a connection that is there already does not touch it. */
    struct dial dial;
};

/* What differs between protocols. The functions end with the call in a consistent state: each may
 * fail it (origin_call_fail), which calls `drop`. Those that only a protocol has whose connections
 * calls share are NULL for others. */
struct origin_call_class {
    const char *name;    /* as logs and traces show it: "HTTP/1.1" */
    const char *version; /* as Via has it: "1.1" */
    /* Takes a connection that is there already. False: there is none, or none has room. */
    bool (*reuse)(struct origin_call *call);
    /* Takes a new connection (*connectionp becomes NULL). */
    void (*use)(struct origin_call *call, struct connection **connectionp);
    /* May the call open a further connection that calls share? */
    bool (*may_open)(const struct origin_call *call);
    /* Sends the request on the connection taken, and takes what has come already. */
    void (*begin)(struct origin_call *call);
    /* The request's body may have more. */
    void (*send)(struct origin_call *call);
    /* The request's body goes away (request.body is NULL by now). */
    void (*forget_request)(struct origin_call *call);
    /* Received bytes wait until the reader has room for them. */
    bool (*has_unread)(const struct origin_call *call);
    /* For how many milliseconds the origin's host has not acknowledged packets; 0: none is overdue
     * (connection_unanswered). */
    uint64_t (*unanswered)(struct origin_call *call);
    /* The response has no body and was taken: the connection may serve others. */
    void (*finish)(struct origin_call *call);
    /* NULL where bytes of the body are never there before it is read. */
    struct net_buffer *(*take_waiting)(struct origin_call *call);
    /* NULL: no answer opens a tunnel. */
    struct duplex *(*take_tunnel)(struct origin_call *call);
    /* The call holds no connection any more, nor anything of `room`. It may be called again. */
    void (*drop)(struct origin_call *call);
    /* The origin's host is lost: connections that lead there are of no use any more. */
    void (*lose_host)(struct origin_call *call);
    /* Keeps a new connection for the next calls. */
    void (*keep)(struct origin_site *site, struct connection **connectionp);
    void (*close_idle)(struct origin_site *site);
    /* What the protocol keeps for a worker. The end closes all its connections. */
    void *(*open_worker)(struct net_context *net);
    void (*close_worker)(void *own);
};

void origin_call_start(struct origin_call *call, struct net_context *net,
                       struct origin_pool *connections, const struct origin_request *request,
                       struct http_head *response, struct task *waker);
/* The response's body, once; NULL when there is none. */
struct source *origin_call_body(struct origin_call *call);
/* The bytes of the body that came with the head, in the buffer that they came in, where they are
 * the body as it is; NULL: there are none, or they must be read. Before anything is read. */
static inline struct net_buffer *origin_call_take_waiting(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    return call->class->take_waiting == NULL ? NULL : call->class->take_waiting(call);
}
/* After a 101, or a CONNECT that was answered with 2xx: bytes both ways, beginning with what came
 * behind the head. The caller owns it. */
struct duplex *origin_call_take_tunnel(struct origin_call *call);
/* The request's body is about to go away: whatever of it was not sent never will be. */
void origin_call_forget_request(struct origin_call *call);
void origin_call_close(struct origin_call *call);

/* Inside origin/. */
/* Makes a connection for the call. */
void origin_call_dial(struct origin_call *call);
/* Takes a connection of that protocol that is there, and sends the request. False: there is none. */
bool origin_call_reuse(struct origin_call *call, const struct origin_call_class *class);
/* A call to a site (origin/call.c): takes a connection, opens one, or waits for one. */
void origin_call_seek(struct origin_call *call);
/* The calls that wait try again. */
void origin_call_let_try(struct origin_site *site);

/* For protocols. */
/* The connection is not the call's any more, or closed: nothing runs on its account. */
void origin_call_let_go(struct origin_call *call);
/* `error` is static text, or that of origin_call_keep_error. */
void origin_call_fail(struct origin_call *call, enum origin_failure failure, const char *error);
/* Keeps a copy of the text for as long as the call lives. */
const char *origin_call_keep_error(struct origin_call *call, const char *error);
/* Nothing is to be done before more comes from the origin, which has that many milliseconds. A host
 * that is lost meanwhile ends the call sooner. */
void origin_call_await(struct origin_call *call, uint64_t patience);
/* The time of the origin does not run: it waits for us. */
void origin_call_pause(struct origin_call *call);
/* The first byte of an answer has come. */
void origin_call_note_heard(struct origin_call *call);
/* `response` is an interim one. False: the call has failed. */
bool origin_call_take_interim(struct origin_call *call);
/* `response` is the final head, no_body and may_have_trailers are set, and `body` is a source. */
void origin_call_answer(struct origin_call *call);
#define ORIGIN_LOST_HOST "its host does not answer any more"
/* The head of the response is larger than request.max_head. */
void origin_call_refuse_head(struct origin_call *call);

/*
 * The schemes of URLs that Retort fetches from origins.
 *
 *     if (!origin_can_fetch(url.scheme)) ...      501
 *
 * Threads: any.
 */

bool origin_can_fetch(struct slice scheme);

#endif
