/*
 * A call to an ICAP service: one REQMOD or RESPMOD transaction (RFC 3507 §4.8, §4.9).
 *
 *     struct icap_request request = {.request_head = ..., .response_head = ..., .virgin = &source};
 *     icap_call_start(&call, service, &request, &adapted_head, &transaction->task);
 *     ... the task runs until call.verdict is no longer ICAP_PENDING ...
 *     ICAP_UNMODIFIED  the message as it was; its body: icap_call_body
 *     ICAP_MODIFIED    adapted_head (if call.head_given) and icap_call_body
 *     ICAP_SATISFIED   REQMOD answered with a response: adapted_head and icap_call_body
 *     ICAP_FAILED      call.error says why; icap_call_recover gives the virgin body if all of it is
 *                      still there
 *     icap_call_commit(&call);     the adapted message is on its way: no turning back
 *     icap_call_close(&call);
 *
 * The virgin body is sent as the source gives it, read and written at the same time; a preview is
 * sent where the service asked for one, with ieof where the body ends within it. What may be wanted
 * again of it is kept (adapt/virgin_body.h): until the verdict, and where the service has bypass until
 * icap_call_commit. A pooled connection that dies before the first byte of an answer is replaced by
 * a fresh one, once, and so is one that ends with 408; another endpoint is tried, once, when one
 * fails before its verdict. A virgin body that breaks off is never completed with a last chunk.
 *
 * Within a preview 206 is offered to services that know it: an adapted beginning, then the virgin
 * body from any place on (draft-icap-ext-partial-content).
 *
 * With `hold`, the verdict waits for the first byte of the adapted body: up to there a service that
 * dies is a failure which can be recovered from.
 *
 * Threads: the worker's. The virgin source is taken over. adapted_head's slices point into the
 * call's own memory and live until icap_call_close.
 */
#ifndef RETORT_ICAP_CALL_H
#define RETORT_ICAP_CALL_H

#include "adapt/virgin_body.h"
#include "http/chunked.h"
#include "icap/recording.h"
#include "icap/service.h"
#include "icap/wire.h"
#include "net/dial.h"
#include "net/sender.h"

enum icap_verdict { ICAP_PENDING, ICAP_UNMODIFIED, ICAP_MODIFIED, ICAP_SATISFIED, ICAP_FAILED };

struct icap_request {
    struct slice request_head;  /* complete, with the empty line */
    struct slice response_head; /* empty: REQMOD */
    struct source **virgin;     /* *virgin NULL: no body; taken over */
    struct slice path;          /* for Transfer-Preview and its like */
    struct slice client_ip;     /* these four: for fields that the service may want; or empty */
    struct slice server_ip;
    uint16_t client_port;                                 /* 0: unknown */
    struct slice proxy_authorization, proxy_authenticate; /* empty: none */
    struct slice transaction_id;
    bool hold;
    bool trickle; /* whoever asks reads what is kept meanwhile: icap_call_peek */
};

enum icap_step {
    ICAP_STEP_SERVICE, /* for OPTIONS or a place */
    ICAP_STEP_CONNECT,
    ICAP_STEP_ANSWER, /* sending, and waiting for the head of the answer */
    ICAP_STEP_BODY,   /* the adapted body */
    ICAP_STEP_OVER,
};

struct icap_call {
    unsigned magic;
#define ICAP_CALL_MAGIC 0x1ca9ca11u
    enum icap_verdict verdict;
    enum icap_step step;
    const char *error;
    bool head_given;
    struct icap_service *service;
    struct net_context *net;
    struct task *waker;
    struct icap_waiter waiter;
    struct icap_endpoint *endpoint;     /* one of its connections is ours; NULL: none */
    struct list_link link;              /* among its calls, meanwhile */
    uint64_t turn;                      /* of its health, when that began */
    uint64_t heard_at;                  /* loop time when it was known to be there last */
    unsigned doubts;                    /* see icap_endpoint_is_silent */
    const struct icap_endpoint *except; /* has failed already */
    struct task task;
    struct dial dial;
    struct connection *connection;
    struct timer timer; /* of a pause */
    struct timer total; /* of the whole */
    uint64_t started;   /* microseconds */
    /* For the access log: microseconds in the queue and, from `started` on, to the last byte; bytes
     * of all tries; the status of the answer, 0 while there is none. */
    uint64_t in_queue, to_last_byte, bytes_out, bytes_in;
    unsigned status;
    struct service_tag_moment asked; /* see adapt/service_tag.h */
    uint64_t tag;                    /* what the verdict is of; 0: not known */
    uint64_t shifts;                 /* that its connection has come after */
    unsigned told;                   /* enum icap_told: of the client, to whom gave the verdict */
    int64_t permitted; /* icap/permission.h; for the verdict on a request without a body */
    bool queued;
    bool final; /* no other try */
    bool reused, heard, repeated, may_204, may_206, previewing, has_body;
    bool preview_waits; /* for the body: `timer` ends that */
    /* sending */
    char *head; /* ICAP head and HTTP heads */
    struct virgin_body virgin;
    struct sender sender;
    struct task send_task;
    struct icap_request request; /* but for `virgin` */
    /* receiving */
    struct net_buffer *in;
    struct icap_encapsulated parts;
    bool parts_known;
    struct http_head *adapted;
    uint64_t announced; /* length of the adapted body, if its head says one; else 0 */
    uint64_t passed_on; /* of that body */
    struct chunked_decoder chunked;
    struct source body;
    enum icap_verdict outcome; /* the verdict, while it is held */
    char first;                /* byte of the body that the verdict waited for */
    bool first_there;
    /* Of a body whose length it stated (body.length): what was given out, and the last byte, which
     * waits for the end. */
    uint64_t given;
    char last;
    bool last_there, misstated;
    bool broken; /* the service failed after its verdict */
    bool body_failed, body_ended, keep_connection;
    bool awaited;        /* whoever reads the body waits for more */
    bool lingered;       /* for more than has come, since the last bytes came */
    bool partial;        /* 206: the adapted body may go on with the virgin one */
    bool original;       /* it does, from here on */
    uint64_t skip_left;  /* virgin bytes before that place */
    char *adapted_bytes; /* the head that came back, as it came */
    size_t adapted_length;
    char *next_services; /* X-Next-Services as it came; NULL: none */
    char *unable;        /* why it could not adapt the message, as it says; NULL: it could */
    struct icap_recording *recording; /* icap/recording.h; NULL: nobody records it */
};

void icap_call_start(struct icap_call *call, struct icap_service *service,
                     const struct icap_request *request, struct http_head *adapted,
                     struct task *waker);
/* Before icap_call_body: a body that the service made and that is longer or shorter fails in front
 * of its last byte, or at its end. */
static inline void icap_call_expect(struct icap_call *call, int64_t length) {
    call->body.length = length;
}
/* After UNMODIFIED, MODIFIED or SATISFIED; NULL: no body. Once. */
struct source *icap_call_body(struct icap_call *call);
/* After FAILED, or when the body broke off before icap_call_commit (call.broken): may the virgin
 * message be used? Then *body is its body (NULL: it has none). */
bool icap_call_recover(struct icap_call *call, struct source **body);
/* Whoever read the body that it left alone is gone: nobody waits for more of it before somebody
 * reads it again. */
void icap_call_forget_reader(struct icap_call *call);
/* While there is no verdict: how much of the virgin body is kept, 0 if not all that was sent, and
 * bytes of it from a cursor on, which begins as {0}; 0: there are none now. */
uint64_t icap_call_kept(const struct icap_call *call);
size_t icap_call_peek(const struct icap_call *call, struct spill_file_cursor *cursor, char *buffer,
                      size_t capacity);
/* Lets go of what was kept in case of a failure. */
void icap_call_commit(struct icap_call *call);
void icap_call_close(struct icap_call *call);

/* Inside icap/. */
/* Fails if the endpoint's host does not answer any more. */
void icap_call_look(struct icap_call *call);
void icap_call_fail(struct icap_call *call, enum icap_failure failure, const char *error);
void icap_call_settle(struct icap_call *call, enum icap_verdict verdict);
void icap_call_watch(struct icap_call *call, bool waiting);
/* After so many microseconds there was nothing more to come. */
void icap_call_has_all(struct icap_call *call, uint64_t microseconds);
void icap_call_send(struct icap_call *call);
/* The preview has waited long enough for the body. false: it does not wait. */
bool icap_call_cut_preview(struct icap_call *call);
bool icap_call_write_head(struct icap_call *call);
void icap_call_receive(struct icap_call *call);
void icap_call_body_init(struct icap_call *call);
void icap_call_await_body(struct icap_call *call);
void icap_call_leave_connection(struct icap_call *call, bool reusable);

#endif
