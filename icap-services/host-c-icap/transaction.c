#include "host-c-icap/transaction.h"

#include "base/assert.h"
#include "host-c-icap/cicap.h"
#include "host-c-icap/head_list.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* What happens to the body. */
enum body_mode {
    BODY_UNDECIDED,
    BODY_HELD,     /* goes to the service; nothing comes out yet */
    BODY_ADAPTED,  /* goes to the service and comes from it */
    BODY_PASSED,   /* is copied through; the service has nothing inside any more */
    BODY_ANSWERED, /* is thrown away; another comes from the service */
};

struct transaction {
    unsigned magic;
#define TRANSACTION_MAGIC 0x54726e73u
    const struct transaction_owner *owner;
    struct arena arena;
    struct http_head request, response;
    struct service_exchange exchange;
    void *state; /* NULL: the service is not interested */
    enum body_mode mode;
    struct slice preview; /* of c-icap's preview buffer: what is still to be used of it */
    bool finished;        /* the service knows that the body has ended */
    bool complete;        /* everything has been given out */
    bool overdue;         /* `ready` was called after the deadline of the present wait */
    enum transaction_outcome outcome;
};

struct transaction *transaction_create(const struct transaction_owner *owner) {
    struct transaction *transaction;
    ALLOC_OBJ(transaction, TRANSACTION_MAGIC);
    transaction->owner = owner;
    transaction->outcome = TRANSACTION_SKIPPED;
    arena_init(&transaction->arena);
    return transaction;
}

void transaction_destroy(struct transaction *transaction) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    if (transaction->exchange.failed)
        transaction->outcome = TRANSACTION_FAILED;
    if (transaction->exchange.magic != 0)
        transaction->owner->count_outcome(transaction->owner->host.context, transaction->outcome);
    if (transaction->state != NULL)
        transaction->owner->ops->end(transaction->state);
    arena_release(&transaction->arena);
    FREE_OBJ(transaction);
}

/* ---- the heads ---------------------------------------------------------------------------- */

static struct slice icap_field(struct transaction *transaction, struct ci_request *request,
                               const char *name) {
    const char *text = ci_headers_value(request->request_header, name);
    if (text == NULL)
        return slice_make("", 0);
    return arena_slice(&transaction->arena, slice_trim(slice_from(text)));
}

/* Whoever asks has made it. Others make log lines of it, so it has to be a word. */
static struct slice transaction_id_of(struct transaction *transaction, struct ci_request *request) {
    enum { LONGEST = 64 };
    struct slice id = icap_field(transaction, request, "X-Transaction-ID");
    bool word = id.length <= LONGEST;
    for (size_t i = 0; word && i < id.length; i++)
        word = id.base[i] > ' ' && id.base[i] <= '~';
    return word ? id : slice_make("", 0);
}

static bool read_heads(struct transaction *transaction, struct ci_request *request) {
    struct arena *arena = &transaction->arena;
    struct ci_headers_list *list = ci_http_request_headers(request);
    bool request_known = head_list_read(&transaction->request, list, true, arena);
    if (ci_req_type(request) == ICAP_REQMOD)
        return request_known;
    /* RFC 3507 §4.8.3 lets a client leave the request's head out. */
    if (!request_known)
        http_head_init(&transaction->request);
    return head_list_read(&transaction->response, ci_http_response_headers(request), false, arena);
}

static void fill_exchange(struct transaction *transaction, struct ci_request *request) {
    struct service_exchange *exchange = &transaction->exchange;
    bool on_request = ci_req_type(request) == ICAP_REQMOD;
    INIT_OBJ(exchange, SERVICE_EXCHANGE_MAGIC);
    exchange->point = on_request ? SERVICE_REQUEST : SERVICE_RESPONSE;
    exchange->request = &transaction->request;
    exchange->head = on_request ? &transaction->request : &transaction->response;
    exchange->has_body = ci_req_hasbody(request);
    exchange->client_ip = icap_field(transaction, request, "X-Client-IP");
    exchange->client_user = icap_field(transaction, request, "X-Client-Username");
    exchange->arguments = slice_from(request->args);
    exchange->transaction_id = transaction_id_of(transaction, request);
    exchange->arena = &transaction->arena;
    exchange->host = &transaction->owner->host;
    exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(exchange);
}

/* Replaces c-icap's head by the service's head, with the right Content-Length. */
static bool hosted_write_head(struct transaction *transaction, struct ci_request *request) {
    struct service_exchange *exchange = &transaction->exchange;
    bool on_request = exchange->point == SERVICE_REQUEST;
    if (exchange->has_body && !exchange->keeps_body) {
        http_head_remove(exchange->head, HTTP_CONTENT_LENGTH);
        if (exchange->body_length != SERVICE_LENGTH_UNKNOWN)
            http_head_add(exchange->head, SLICE("Content-Length"),
                          arena_printf(&transaction->arena, "%llu",
                                       (unsigned long long)exchange->body_length));
    }
    struct ci_headers_list *list =
        on_request ? ci_http_request_headers(request) : ci_http_response_headers(request);
    return head_list_write(list, exchange->head, on_request);
}

/* ---- verdicts ----------------------------------------------------------------------------- */

static void hosted_push(struct transaction *transaction, struct slice *bytes) {
    if (bytes->length == 0)
        return;
    size_t took = transaction->owner->ops->push(transaction->state, *bytes);
    ASSERT(took <= bytes->length);
    bytes->base += took;
    bytes->length -= took;
}

/* The field stands in the ICAP head, which is not out yet, since it is about the verdict. The ISTag
 * would be the right place for clients that know no other (RFC 3507 §4.7), but c-icap writes the
 * ISTag itself. */
static void tell_failed(const struct transaction *transaction, struct ci_request *request) {
    char field[64];
    const struct service_exchange *exchange = &transaction->exchange;
    if (!exchange->failed)
        return;
    snprintf(field, sizeof field, "X-Retort-Failed: %s",
             exchange->failed_because != NULL ? exchange->failed_because : "failed");
    ci_icap_add_xheader(request, field);
    ci_icap_add_xheader(request, "Cache-Control: no-store");
}

/* The message goes on as it came: by a 204 if that is allowed, or by giving it back. */
static int skip_before_body(struct transaction *transaction, struct ci_request *request) {
    tell_failed(transaction, request);
    if (ci_req_preview_size(request) >= 0 || ci_req_allow204(request))
        return CI_MOD_ALLOW204;
    transaction->mode = BODY_PASSED;
    ci_req_unlock_data(request);
    return CI_MOD_CONTINUE;
}

/* A response in place of the request (RFC 3507 §3.1). If the request has a body, the response has
 * one too, even an empty one. Without it c-icap would leave the rest of the request's body unread
 * and take it for the next request. */
static bool hosted_answer(struct transaction *transaction, struct ci_request *request) {
    const struct service_exchange *exchange = &transaction->exchange;
    ASSERT(exchange->point == SERVICE_REQUEST);
    transaction->mode = BODY_ANSWERED;
    transaction->outcome = TRANSACTION_ADAPTED;
    transaction->complete = exchange->body_length == 0 && !exchange->has_body;
    ci_req_unlock_data(request);
    return ci_http_response_create(request, 1, !transaction->complete) &&
           head_list_write(ci_http_response_headers(request), exchange->answer, false);
}

static bool adapt(struct transaction *transaction, struct ci_request *request) {
    tell_failed(transaction, request);
    if (transaction->exchange.answer != NULL)
        return hosted_answer(transaction, request);
    transaction->mode = transaction->exchange.keeps_body ? BODY_PASSED : BODY_ADAPTED;
    transaction->outcome = TRANSACTION_ADAPTED;
    ci_req_unlock_data(request);
    return hosted_write_head(transaction, request);
}

/* Asks the service again after it has seen more of the body. False when it can't go on. */
static bool ask_verdict(struct transaction *transaction, struct ci_request *request,
                        bool all_taken) {
    if (transaction->mode != BODY_HELD)
        return true;
    switch (transaction->owner->ops->verdict(transaction->state)) {
    case SERVICE_HOLD: return true;
    case SERVICE_ADAPT: return adapt(transaction, request);
    default:
        /* The bytes that it holds come back through pull. At the end of data a 204 may save
         * that. */
        tell_failed(transaction, request);
        transaction->mode = BODY_ADAPTED;
        transaction->outcome = TRANSACTION_SKIPPED;
        if (!all_taken)
            ci_req_unlock_data(request);
        return true;
    }
}

/* Only the head is new. Inside the preview a client that knows 206 need not send the body then
 * (draft-icap-ext-partial-content-07). Behind the preview c-icap sends a wrong 206. */
static bool can_leave_body(const struct transaction *transaction, struct ci_request *request) {
    return transaction->mode == BODY_PASSED && ci_req_hasbody(request) &&
           ci_req_preview_size(request) >= 0 && ci_req_allow206(request);
}

static int leave_body(struct transaction *transaction, struct ci_request *request) {
    ci_request_206_origin_body(request, 0);
    transaction->complete = true;
    return CI_MOD_ALLOW206;
}

/* Tells the proxy that it need not ask again for a while. The field stands in the ICAP head, since
 * it is about the verdict. */
static void permit(const struct transaction *transaction, struct ci_request *request) {
    char field[64];
    const struct service_exchange *exchange = &transaction->exchange;
    if (exchange->point != SERVICE_REQUEST || exchange->lifetime == 0 || exchange->failed)
        return;
    snprintf(field, sizeof field, "Cache-Control: max-age=%llu",
             (unsigned long long)exchange->lifetime);
    ci_icap_add_xheader(request, field);
}

static enum service_verdict first_verdict(struct transaction *transaction,
                                          struct ci_request *request) {
    const struct service_ops *ops = transaction->owner->ops;
    enum service_verdict verdict = SERVICE_SKIP;
    bool complete = !ci_req_hasbody(request) || ci_req_hasalldata(request);
    fill_exchange(transaction, request);
    transaction->state = ops->begin(transaction->owner->service, &transaction->exchange);
    if (transaction->state != NULL)
        verdict = ops->preview(transaction->state, transaction->preview, complete);
    permit(transaction, request);
    return verdict;
}

int transaction_preview(struct transaction *transaction, const char *bytes, int length,
                        struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    transaction->preview = length > 0 ? slice_make(bytes, (size_t)length) : SLICE("");
    enum service_verdict verdict = SERVICE_SKIP;
    if (read_heads(transaction, request))
        verdict = first_verdict(transaction, request);
    switch (verdict) {
    case SERVICE_SKIP: return skip_before_body(transaction, request);
    case SERVICE_ADAPT:
        if (!adapt(transaction, request))
            return CI_ERROR;
        if (can_leave_body(transaction, request))
            return leave_body(transaction, request);
        break;
    case SERVICE_HOLD: transaction->mode = BODY_HELD; break;
    }
    if (transaction->mode == BODY_HELD) {
        hosted_push(transaction, &transaction->preview);
        if (!ask_verdict(transaction, request, ci_req_hasalldata(request)))
            return CI_ERROR;
    }
    return CI_MOD_CONTINUE;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Blocks until what the service waits for has come. False when the service waits for nothing, or
 * goes on waiting past its own deadline: that can only be a bug, and must not block a thread for
 * ever. */
static bool wait_for_service(struct transaction *transaction) {
    struct service_wait wait = transaction->exchange.wait;
    if (wait.fd < 0 || transaction->overdue) {
        service_log(&transaction->owner->host, LOG_LEVEL_ERROR,
                    "the service neither goes on nor waits for anything: "
                    "the transaction is aborted; please report this");
        return false;
    }
    const struct service_wait *also = &transaction->exchange.also;
    int64_t left = wait.deadline - service_now();
    struct pollfd poll_fds[] = {{.fd = wait.fd, .events = wait.events},
                                {.fd = also->fd, .events = also->events}};
    int count = poll(poll_fds, 2, left < 0 ? 0 : (int)left);
    if (count < 0 && errno != EINTR)
        return false;
    transaction->owner->ops->ready(transaction->state);
    const struct service_wait *next = &transaction->exchange.wait;
    transaction->overdue =
        next->fd == wait.fd && next->deadline == wait.deadline && service_now() >= wait.deadline;
    return true;
}

/* ---- the body ----------------------------------------------------------------------------- */

/* What one round of `io` did. */
struct round {
    struct slice in;
    char *out;
    size_t capacity, put;
    bool failed;
};

static void copy_through(struct round *round, struct slice *from) {
    size_t room = round->capacity - round->put;
    size_t length = from->length < room ? from->length : room;
    if (length == 0)
        return;
    memcpy(round->out + round->put, from->base, length);
    round->put += length;
    from->base += length;
    from->length -= length;
}

static void hosted_pull(struct transaction *transaction, struct round *round) {
    size_t room = round->capacity - round->put, got = 0;
    if (room == 0 || transaction->complete ||
        (transaction->mode != BODY_ADAPTED && transaction->mode != BODY_ANSWERED))
        return;
    enum service_flow flow =
        transaction->owner->ops->pull(transaction->state, round->out + round->put, room, &got);
    ASSERT(got <= room);
    round->put += got;
    switch (flow) {
    case SERVICE_FLOW: break;
    case SERVICE_DONE: transaction->complete = true; break;
    case SERVICE_PASS: transaction->mode = BODY_PASSED; break;
    case SERVICE_ABORT: round->failed = true; break;
    }
}

/* An answer in place of a request with a body is held back until the body is in: c-icap does not
 * reliably read on once it has sent the end of a response. */
static void pull_answer(struct transaction *transaction, struct round *round, bool at_end) {
    if (transaction->exchange.has_body && !at_end)
        return;
    if (transaction->exchange.body_length == 0)
        transaction->complete = true;
    else
        hosted_pull(transaction, round);
}

/* Moves bytes: the rest of the preview first, then what c-icap brought. */
static void move(struct transaction *transaction, struct round *round, bool at_end) {
    struct slice *sources[] = {&transaction->preview, &round->in};
    for (int i = 0; i < 2; i++) {
        if (transaction->complete || transaction->mode == BODY_ANSWERED)
            *sources[i] = slice_make(NULL, 0);
        else if (transaction->mode == BODY_PASSED)
            copy_through(round, sources[i]);
        else
            hosted_push(transaction, sources[i]);
        if (sources[i]->length > 0)
            break;
    }
    bool all_in = at_end && transaction->preview.length == 0 && round->in.length == 0;
    if (all_in && !transaction->finished && transaction->state != NULL) {
        transaction->finished = true;
        if (transaction->mode != BODY_PASSED && transaction->mode != BODY_ANSWERED)
            transaction->owner->ops->finish(transaction->state);
    }
    if (transaction->mode == BODY_ANSWERED)
        pull_answer(transaction, round, at_end);
    else
        hosted_pull(transaction, round);
    if (transaction->mode == BODY_PASSED) {
        copy_through(round, &transaction->preview);
        if (transaction->preview.length == 0)
            copy_through(round, &round->in);
        if (at_end && transaction->preview.length == 0 && round->in.length == 0)
            transaction->complete = true;
    }
}

/* May `io` return with nothing done? Then c-icap must have something else to wait for. */
static bool may_return(const struct transaction *transaction, const struct round *round,
                       bool at_end, bool bytes_pending) {
    if (round->put > 0 || transaction->complete || bytes_pending)
        return true;
    if (round->capacity == 0)
        return transaction->mode != BODY_HELD || round->in.length == 0;
    return !at_end && round->in.length == 0;
}

/* Has c-icap nothing more for us, neither in its buffer nor in its socket? At least the end of
 * their chunk stands behind the bytes that it brought. */
static bool nothing_at_hand(struct ci_request *request, size_t offered) {
    enum { CHUNK_END = 2 };
    struct pollfd socket = {.fd = request->connection->fd, .events = POLLIN};
    return request->pstrblock_read_len <= (int)offered + CHUNK_END && poll(&socket, 1, 0) == 0;
}

/* What the service waits for has come, and nothing more of the body before. */
static bool ready_before_more(const struct transaction *transaction, struct ci_request *request) {
    const struct service_wait *wait = &transaction->exchange.wait;
    int64_t left = wait->deadline - service_now();
    struct pollfd polls[] = {{.fd = request->connection->fd, .events = POLLIN},
                             {.fd = wait->fd, .events = wait->events}};
    return wait->fd >= 0 && poll(polls, 2, left < 0 ? 0 : (int)left) >= 0 && polls[0].revents == 0;
}

/* A service may put off what it gives at a pause: nobody calls again before there is more. */
static void await_idle(struct transaction *transaction, struct round *round,
                       struct ci_request *request) {
    if (round->put > 0 || round->failed || transaction->complete ||
        transaction->owner->ops->ready == NULL || request->remain_send_block_bytes > 0 ||
        !ready_before_more(transaction, request))
        return;
    transaction->owner->ops->ready(transaction->state);
    hosted_pull(transaction, round);
}

static void tell_idle(struct transaction *transaction, struct round *round, bool at_end,
                      size_t offered, struct ci_request *request) {
    const struct service_ops *ops = transaction->owner->ops;
    if (ops->idle == NULL || at_end || transaction->mode != BODY_ADAPTED || offered == 0 ||
        round->in.length > 0 || round->failed || !nothing_at_hand(request, offered))
        return;
    ops->idle(transaction->state);
    hosted_pull(transaction, round);
    await_idle(transaction, round, request);
}

int transaction_io(struct transaction *transaction, char *out, int *out_length, const char *in,
                   int *in_length, bool at_end, struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    size_t offered = in != NULL && in_length != NULL && *in_length > 0 ? (size_t)*in_length : 0;
    struct round round = {
        .in = slice_make(in, offered),
        .out = out,
        .capacity = out != NULL && out_length != NULL && *out_length > 0 ? (size_t)*out_length : 0,
    };
    /* While the body still comes in, bytes that were formatted earlier wait in c-icap's buffer. As
     * long as there are any, c-icap calls again, so there is no need to block. */
    bool bytes_pending = in_length != NULL && request->remain_send_block_bytes > 0;
    for (;;) {
        size_t before = round.in.length;
        move(transaction, &round, at_end);
        if (!ask_verdict(transaction, request, at_end && round.in.length == 0))
            round.failed = true;
        /* As long as no head has gone out, c-icap wants all taken that it brings. */
        bool must_take = transaction->mode == BODY_HELD && round.in.length > 0;
        bool moved = round.in.length < before;
        if (round.failed ||
            (!must_take && (moved || may_return(transaction, &round, at_end, bytes_pending))))
            break;
        if (!moved && !wait_for_service(transaction)) {
            round.failed = true;
            break;
        }
    }
    tell_idle(transaction, &round, at_end, offered, request);
    if (in_length != NULL)
        *in_length = (int)(offered - round.in.length);
    if (out_length != NULL) {
        *out_length = (int)round.put;
        if (round.failed)
            *out_length = CI_ERROR;
        else if (round.put == 0 && transaction->complete && round.capacity > 0)
            *out_length = CI_EOF;
    }
    return round.failed ? CI_ERROR : CI_OK;
}

/* The whole body is in. A service that held it decides now. */
int transaction_finish(struct transaction *transaction, struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    struct round nothing = {.in = {NULL, 0}};
    while (transaction->mode == BODY_HELD) {
        move(transaction, &nothing, true);
        if (!ask_verdict(transaction, request, true))
            return CI_ERROR;
        if (transaction->mode == BODY_HELD && !wait_for_service(transaction))
            return CI_ERROR;
    }
    if (transaction->outcome == TRANSACTION_SKIPPED && transaction->state != NULL &&
        ci_req_allow204(request) && !ci_req_sent_data(request))
        return CI_MOD_ALLOW204;
    return CI_MOD_DONE;
}
