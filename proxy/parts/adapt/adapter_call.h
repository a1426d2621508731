/*
 * A call of an adapter: one message is given to one service, and its verdict comes back.
 *
 *     const struct adapter_request request = {.request = head, .body = &source, .arena = arena};
 *     struct adapter_call *call =
 *         adapter_call_start(adapter, &request, &adapted_head, &transaction->task);
 *     ... the task runs until call->verdict is no longer ADAPTER_PENDING ...
 *     ADAPTER_UNMODIFIED  the message as it was; its body: adapter_call_body
 *     ADAPTER_MODIFIED    adapted_head (if call->result.head_given) and adapter_call_body
 *     ADAPTER_SATISFIED   the service answered a request: adapted_head and adapter_call_body
 *     ADAPTER_FAILED      call->error says why; adapter_call_recover gives the body that the
 *                         service got, if all of it is still there
 *     adapter_call_commit(call);     the adapted message is on its way: no turning back
 *     adapter_call_end(call);
 *
 * The service reads the body as the source gives it, and may answer before the end of the body. The
 * call keeps what may be wanted again (adapt/virgin_body.h) until the verdict; if the service has
 * bypass, until adapter_call_commit. A body that breaks off is never completed.
 *
 * With request.hold, the verdict waits for the first byte of the adapted body. Until then the
 * message can be recovered if the service dies.
 *
 * Threads: the worker's. The source is taken over. adapted_head's slices live until
 * adapter_call_end. Memory: the request's arena.
 */
#ifndef RETORT_ADAPT_ADAPTER_CALL_H
#define RETORT_ADAPT_ADAPTER_CALL_H

#include "adapt/adapter.h"
#include "adapt/client_fields.h"
#include "adapt/opt_outs.h"
#include "adapt/stated_length.h"
#include "adapt/virgin_body.h"
#include "http/head.h"
#include "transaction/asked.h"

enum adapter_verdict {
    ADAPTER_PENDING,
    ADAPTER_UNMODIFIED,
    ADAPTER_MODIFIED,
    ADAPTER_SATISFIED,
    ADAPTER_FAILED,
};

struct recording;

/* The heads are read before the verdict, and may be changed after it. */
struct adapter_request {
    const struct http_head *request;
    const struct http_head *response; /* NULL: the service is asked about the request */
    struct source **body;             /* *body NULL: there is none; taken over */
    struct slice path;                /* of the URL, without the query */
    struct adapt_client client;
    struct slice transaction_id;
    struct adapt_opt_out **opt_outs;  /* of the transaction, for who opts out; NULL: nobody does */
    const struct trace_fields *trace; /* NULL: the service learns of none by its protocol */
    bool hold;
    bool trickle;                /* whoever asks reads what is kept meanwhile: adapter_call_peek */
    struct recording *recording; /* set by adapter_call_start; NULL: nobody records it */
    struct arena *arena;
};

/* What came with the verdict. */
struct adapter_result {
    uint64_t tag;           /* the service's tag that it is of; 0: not known */
    int64_t lifetime;       /* seconds that the verdict may be used for equal requests; 0: not */
    unsigned client_fields; /* enum client_field: what the service knew of the client */
    bool head_given;        /* the adapted head is another */
    bool head_lasts;        /* its bytes live as long as the arena of the request */
    bool has_body;          /* it goes with a body that the service made */
    bool partial;           /* that body begins as the service made it and ends as the original */
    struct slice head_text; /* the adapted head as it came; empty: it is to be written */
    char *next_services;    /* the services that shall follow, a list of names; NULL: not said */
    char *unable;           /* why it could not adapt the message, as it says; NULL: it could */
};

struct adapter_call {
    unsigned magic;
#define ADAPTER_CALL_MAGIC 0xada9ca11u
    enum adapter_verdict verdict;
    const char *error; /* after a failure */
    bool has_body;     /* the message that it was given had one */
    bool broken;       /* the service failed after its verdict: its body breaks off */
    bool body_ended;   /* what the service made of the body has been read to its end */
    struct adapter *adapter;
    struct task *waker;          /* NULL: nobody waits any more */
    struct http_head *adapted;   /* the head that comes back; before the verdict, where it is put */
    uint64_t started;            /* microseconds */
    uint64_t settled;            /* likewise; 0: not yet */
    struct virgin_body virgin;   /* what the service is given */
    struct stated_length stated; /* of the body that the service makes */
    struct adapter_result result;
    struct asked_figures figures; /* for the account of the service and the access log */
    struct recording *recording;  /* adapt/recording.h; NULL: nobody records it */
};

struct adapter_call *adapter_call_start(struct adapter *adapter,
                                        const struct adapter_request *request,
                                        struct http_head *adapted, struct task *waker);
/* The body, after UNMODIFIED, MODIFIED or SATISFIED; NULL: there is none. Called once. */
struct source *adapter_call_body(struct adapter_call *call);
/* Called after FAILED, or when the body broke off before adapter_call_commit (call->broken). True:
 * the message may be used as it was, and *body is its body (NULL: it has none). */
bool adapter_call_recover(struct adapter_call *call, struct source **body);
/* Has the body broken off that the service was given? That is no fault of the service. */
static inline bool adapter_call_lost_body(const struct adapter_call *call) {
    return call->virgin.failed;
}
/* The reader of a body that the service left alone is gone: until the body is read again, nobody
 * waits for more of it. */
void adapter_call_forget_reader(struct adapter_call *call);
/* While there is no verdict: how much of the body is kept, 0 if not all that was given, and bytes
 * of it from a cursor on, which begins as {0}; 0: there are none now. */
uint64_t adapter_call_kept(const struct adapter_call *call);
size_t adapter_call_peek(const struct adapter_call *call, struct spill_file_cursor *cursor,
                         char *buffer, size_t capacity);
/* Releases what was kept for the case of a failure. */
void adapter_call_commit(struct adapter_call *call);
void adapter_call_end(struct adapter_call *call);

/* For classes: first in `start`, in a call that is zero but for the memory of the class. Takes the
 * body over and keeps it within the limits of the settings. `given`: the head that the service is to
 * adapt. `recording`: the request's. */
void adapter_call_init(struct adapter_call *call, struct adapter *adapter,
                       const struct http_head *given, struct source **body,
                       struct recording *recording, struct http_head *adapted, struct task *waker);
/* The verdict is there: counts it and wakes the task that waits. Called once. */
void adapter_call_settle(struct adapter_call *call, enum adapter_verdict verdict);
/* The service has sent its whole answer. */
void adapter_call_has_all(struct adapter_call *call);
/* Last in `end`. */
void adapter_call_release(struct adapter_call *call);

#endif
