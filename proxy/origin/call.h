/*
 * A call to an origin: one HTTP/1.1 request on a pooled or new connection, and its response.
 *
 *     struct origin_request request = {.host = ..., .port = 80, .head = bytes, .body = source};
 *     origin_call_start(&call, net, pool, &request, &response_head, &transaction->task);
 *     ... the task runs ...
 *     switch (call.state) {
 *     case ORIGIN_ANSWERED: response_head and call.framing are there;
 *                           struct source *body = origin_call_body(&call);   NULL: none
 *     case ORIGIN_FAILED:   call.failure and call.error say why
 *     }
 *     origin_call_close(&call);
 *
 * Interim responses (1xx) are passed to on_interim. A pooled connection may die before the first
 * byte of the response. The call then repeats the request once on a new connection, if the request
 * may be repeated and nothing of its body has been read (RFC 9112 §9.3.1). With `security` the
 * connection speaks TLS, or there is none: no failure leads to clear text. The body of the response
 * may begin while the body of the request is still being sent. After a complete response the
 * connection returns to the pool.
 *
 * The response head's slices point into the call's buffer: copy it before reading the body.
 * Threads: the worker's. The struct is the caller's; so is the request's body (it is only read).
 */
#ifndef RETORT_ORIGIN_CALL_H
#define RETORT_ORIGIN_CALL_H

#include "event/source.h"
#include "http/chunked.h"
#include "http/framing.h"
#include "net/dial.h"
#include "net/pool.h"
#include "net/sender.h"
#include "origin/slot.h"

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
    enum reach reach;
    dial_permit_fn *permit; /* is also asked about the address of a pooled connection; NULL: none */
    void *permit_arg;       /* lives as long as the call */
    struct slice pool_key;  /* another one for each reach, `from` and security */
    const struct address *from;   /* that the connection comes from; NULL: the system chooses it */
    const struct address *client; /* whose request it is, for the bound on look-ups; NULL: the
                                     proxy's own. Read by origin_call_start only. */
    struct tls_client *security;  /* https (origin/security.h), counted by the call; NULL: http */
    struct dial_proxy proxy;      /* the parent that opens a tunnel to an https origin */
    struct slice preface;         /* sent first on a new connection, TLS included */
    struct slice head;            /* complete, with the empty line */
    enum http_method method;
    struct source *body;      /* NULL: none */
    bool chunked;             /* how to send the body; else as it is */
    bool repeatable;          /* may go over a pooled connection and be sent again */
    bool used_up;             /* its credentials may count for the whole connection, which must
                                 carry no other request after it */
    bool upgrade;             /* 101 is an answer: the connection then leaves HTTP */
    struct origin_slot *slot; /* at the group's server that this goes to; NULL: it is of none */
    /* An interim response other than 100 has come; NULL: they are left (RFC 9110 §15.2). */
    void (*on_interim)(void *arg, const struct http_head *head);
    void *interim_arg;
    char *trailer_space; /* CHUNKED_TRAILERS_MAX bytes; NULL: trailers are skipped */
    uint64_t deadline;   /* of the whole, in the loop's time; TIMER_NEVER: none */
    uint64_t connect_timeout, first_byte_timeout, read_timeout, idle_timeout;
    size_t max_head;
    unsigned max_idle;
};

struct origin_call {
    unsigned magic;
#define ORIGIN_CALL_MAGIC 0x0419ca11u
    enum origin_state state;
    enum origin_failure failure;
    const char *error; /* lives as long as the call */
    char *own_error;   /* `error`, if it is not static text */
    struct net_context *net;
    struct pool *pool;
    struct origin_request request;
    struct task *waker;
    struct task dial_task;
    struct connection *connection;
    struct timer timer, total_timer;
    uint64_t patience_ends; /* with the origin; `timer` may look at its host before */
    unsigned doubts;        /* looks in a row that found the host silent */
    bool kept_alive;        /* connection_keep_alive */
    bool unsent;            /* no connection for the request has been there yet */
    bool reused, heard;     /* the connection came from the pool; it has sent something */
    bool deaf;              /* a write failed: it may still be read, not used again */
    /* sending */
    struct sender sender;
    struct task send_task;
    /* receiving */
    struct net_buffer *in;
    size_t head_checked;
    unsigned interim; /* 1xx responses so far */
    struct http_head *response;
    struct framing framing;
    bool keeps_alive; /* the origin does, by its head as it came */
    struct source body;
    bool body_open, body_ended, body_failed;
    uint64_t body_left;
    size_t body_at; /* where in `in` it began */
    struct chunked_decoder chunked;
    struct slice trailers;  /* field lines behind the body, those that may pass; at its end */
    struct address address; /* of the origin, or of the parent that leads to it */
    uint64_t started;       /* nanoseconds of the loop's clock */
    /* dial_start sets the rest: a call over a connection from the pool does not touch it. */
    struct dial dial;
};

void origin_call_start(struct origin_call *call, struct net_context *net, struct pool *pool,
                       const struct origin_request *request, struct http_head *response,
                       struct task *waker);
/* Fields may come behind the response's body (call->trailers). */
static inline bool origin_call_may_have_trailers(const struct origin_call *call) {
    return call->framing.kind == FRAMING_CHUNKED;
}
/* The response's body, once; NULL when there is none. */
struct source *origin_call_body(struct origin_call *call);
/* The bytes of the body that came with the head, in the buffer that they came in, where they are
 * the body as it is; NULL: there are none, or they must be read. Before anything is read. */
struct net_buffer *origin_call_take_waiting(struct origin_call *call);
/* After a 101, or a CONNECT that was answered with 2xx: the connection, and what came behind the
 * head. */
struct connection *origin_call_take_connection(struct origin_call *call,
                                               struct net_buffer **leftover);
/* The request's body is about to go away: whatever of it was not sent never will be. */
void origin_call_forget_request(struct origin_call *call);
void origin_call_close(struct origin_call *call);

/* Inside origin/. */
/* The connection is not the call's any more, or closed: nothing runs on its account. */
void origin_call_let_go(struct origin_call *call);
/* `error` is static text, or that of origin_call_error. */
void origin_call_fail(struct origin_call *call, enum origin_failure failure, const char *error);
/* Why the last read or write failed. */
const char *origin_call_error(struct origin_call *call);
void origin_call_send(struct origin_call *call);
/* Nothing is to be done before more comes from the origin, which has that many milliseconds. A host
 * that is lost meanwhile ends the call sooner. */
void origin_call_await(struct origin_call *call, uint64_t patience);
void origin_call_receive(struct origin_call *call);
void origin_call_body_init(struct origin_call *call);

#endif
