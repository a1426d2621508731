/*
 * A call to an ICAP service: one REQMOD or RESPMOD transaction (RFC 3507 §4.8, §4.9). It is an
 * adapter's call (adapt/adapter_call.h), where what comes of it and how its body is read stand.
 *
 *     struct icap_request request = {.request_head = ..., .response_head = ..., .virgin = &source};
 *     icap_call_start(&call, service, &request, &adapted_head, &transaction->task);
 *     ... the task runs until call.base.verdict is no longer ADAPTER_PENDING ...
 *     struct source *body = adapter_call_body(&call.base);
 *     icap_call_close(&call);
 *
 * The virgin body is sent as the source gives it, read and written at the same time; a preview is
 * sent where the service asked for one, with ieof where the body ends within it. A pooled connection
 * that dies before the first byte of an answer is replaced by a fresh one, once, and so is one that
 * ends with 408; another endpoint is tried, once, when one fails before its verdict. A virgin body
 * that breaks off is never completed with a last chunk.
 *
 * Within a preview 206 is offered to services that know it: an adapted beginning, then the virgin
 * body from any place on (draft-icap-ext-partial-content).
 *
 * Called through the class of icap/adapter.c. Times are milliseconds of the loop's clock, lengths bytes.
 *
 * Errors: the verdict says that the call has failed, and call.base.error why; a body that breaks off
 * fails its source.
 *
 * Threads: the worker's. The virgin source is taken over. adapted_head's slices point into the
 * call's own memory and live until icap_call_close.
 */
#ifndef RETORT_ICAP_CALL_H
#define RETORT_ICAP_CALL_H

#include "adapt/adapter_call.h"
#include "http/chunked.h"
#include "icap/service.h"
#include "icap/wire.h"
#include "net/dial.h"
#include "net/sender.h"

struct icap_request {
    const struct http_head
        *given;                 /* the head that is to be adapted; until icap_call_start returns */
    struct slice request_head;  /* complete, with the empty line */
    struct slice response_head; /* empty: REQMOD */
    struct source **virgin;     /* *virgin NULL: no body; taken over */
    struct slice path;          /* for Transfer-Preview and its like */
    struct adapt_client client; /* for fields that the service may want */
    struct slice transaction_id;
    const struct trace_fields *trace; /* for the ICAP head; NULL: none */
    bool hold;                        /* see adapt/adapter_call.h */
    bool trickle;                     /* likewise */
    struct recording *recording;      /* likewise */
};

enum icap_step {
    ICAP_STEP_SERVICE, /* for OPTIONS or a place */
    ICAP_STEP_CONNECT,
    ICAP_STEP_ANSWER, /* sending, and waiting for the head of the answer */
    ICAP_STEP_BODY,   /* the adapted body */
    ICAP_STEP_OVER,
};

struct icap_call {
    struct adapter_call base;
    unsigned magic;
#define ICAP_CALL_MAGIC 0x1ca9ca11u
    enum icap_step step;
    struct icap_service *service;
    struct net_context *net;
    struct icap_request request; /* but for `virgin` */

    /* the connection */
    struct icap_waiter waiter;
    struct icap_endpoint *endpoint;     /* one of its connections is ours; NULL: none */
    struct list_link link;              /* among its calls, meanwhile */
    uint64_t turn;                      /* of its health, when that began */
    uint64_t heard_at;                  /* loop time when it was known to be there last */
    unsigned doubts;                    /* see icap_look_finds_lost */
    const struct icap_endpoint *except; /* has failed already */
    struct task task;
    struct connection *connection;
    struct timer timer;              /* of a pause */
    struct timer total;              /* of the whole */
    struct service_tag_moment asked; /* see adapt/service_tag.h */
    uint64_t shifts;                 /* that its connection has come after */
    bool queued;
    bool final; /* no other try */
    bool reused, heard, repeated;

    /* sending */
    char *head; /* ICAP head and HTTP heads */
    struct sender sender;
    struct task send_task;
    bool may_204, may_206, previewing;
    bool preview_waits; /* for the body: `timer` ends that */

    /* receiving */
    struct net_buffer *in;
    struct icap_encapsulated parts;
    bool parts_known, keep_connection;
    unsigned interims;            /* answers before the final one, but for 100 */
    enum adapter_verdict outcome; /* the verdict, while it is held */
    char *adapted_bytes;          /* the head that came back, as it came */

    /* the adapted body */
    struct source body;
    struct chunked_decoder chunked;
    uint64_t passed_on; /* bytes of it */
    char first;         /* the byte that the verdict waited for */
    bool first_there;
    bool body_failed;
    bool awaited;       /* whoever reads it waits for more */
    bool lingered;      /* for more than has come, since the last bytes came */
    bool original;      /* it is the virgin body from here on */
    uint64_t skip_left; /* virgin bytes before that place */

    /* It is large, and a call over a kept connection never uses it: icap_call_start clears all that
     * stands before it, and of it only the magic number. */
    struct dial dial;
    char said[TLS_ERROR_MAX]; /* by a connection that is closed */
};

void icap_call_start(struct icap_call *call, struct icap_service *service,
                     const struct icap_request *request, struct http_head *adapted,
                     struct task *waker);
/* Does nothing where it was closed, or never started and is zero. */
void icap_call_close(struct icap_call *call);

/* Inside icap/. */
/* Fails if the endpoint's host does not answer any more. */
void icap_call_look(struct icap_call *call);
/* `error` lives as long as the memory of the call. */
void icap_call_fail(struct icap_call *call, enum icap_failure failure, const char *error);
/* Why its connection has failed: a copy, since the call closes it. */
const char *icap_call_connection_error(struct icap_call *call);
void icap_call_settle(struct icap_call *call, enum adapter_verdict verdict);
void icap_call_watch(struct icap_call *call, bool waiting);
void icap_call_send(struct icap_call *call);
/* The preview has waited long enough for the body. false: it does not wait. */
bool icap_call_cut_preview(struct icap_call *call);
bool icap_call_write_head(struct icap_call *call);
void icap_call_receive(struct icap_call *call);
/* So many bytes have come. */
void icap_call_count_in(struct icap_call *call, size_t got);
/* Everything that was to be sent has been: the connection may serve again. */
bool icap_call_sent_all(const struct icap_call *call);
/* The service refers to the virgin body; false: that is not whole any more, and the call has
 * failed. */
bool icap_call_has_original(struct icap_call *call);
/* The virgin body stays as it is from that byte on. */
void icap_call_count_saved(struct icap_call *call, uint64_t from);
void icap_call_body_init(struct icap_call *call);
/* What is to be read of the adapted body. */
struct source *icap_call_adapted_body(struct icap_call *call);
void icap_call_await_body(struct icap_call *call);
void icap_call_leave_connection(struct icap_call *call, bool reusable);

#endif
