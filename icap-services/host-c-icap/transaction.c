#include "host-c-icap/transaction.h"

#include "base/arena.h"
#include "base/assert.h"
#include "host-c-icap/cicap.h"
#include "http/head.h"
#include "http/head_parser.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/*
 * Converts between c-icap's header lists and struct http_head.
 *
 * c-icap has no call that rewrites a request line, and it can't change a field in place. So
 * head_list_write always writes the whole list.
 */

/* The longest head that is handed to c-icap. */
enum { HEAD_MAX = 256 * 1024 };

/* The lines lie one behind another, each with a NUL where CR was; headers[] points at them. */
static size_t list_size(const struct ci_headers_list *list) {
    size_t size = 2;
    for (int i = 0; i < list->used; i++)
        size += strlen(list->headers[i]) + 2;
    return size;
}

static bool head_list_read(struct http_head *head, struct ci_headers_list *list, bool is_request,
                           struct arena *arena) {
    if (list == NULL || list->used == 0)
        return false;
    size_t size = list_size(list);
    if (size > HEAD_MAX)
        return false;
    char *bytes = arena_alloc(arena, size), *at = bytes;
    for (int i = 0; i < list->used; i++) {
        size_t length = strlen(list->headers[i]);
        memcpy(at, list->headers[i], length);
        memcpy(at + length, "\r\n", 2);
        at += length + 2;
    }
    memcpy(at, "\r\n", 2);
    ssize_t used = is_request ? http_head_parse_request(head, bytes, size, 0)
                              : http_head_parse_response(head, bytes, size, 0);
    return used == (ssize_t)size;
}

static bool add_first_line(struct ci_headers_list *list, const struct http_head *head,
                           bool is_request) {
    char *line;
    int version = head->version == 10 ? 0 : 1;
    int length = is_request ? asprintf(&line, "%.*s %.*s HTTP/1.%d", SLICE_PRINT(head->method),
                                       SLICE_PRINT(head->target), version)
                            : asprintf(&line, "HTTP/1.%d %u %.*s", version, head->status,
                                       SLICE_PRINT(head->reason));
    if (length < 0)
        return false;
    bool added = ci_headers_add(list, line) != NULL;
    free(line);
    return added;
}

/* False when memory is exhausted; the list is unusable then. */
static bool head_list_write(struct ci_headers_list *list, const struct http_head *head,
                            bool is_request) {
    ci_headers_reset(list);
    if (!add_first_line(list, head, is_request))
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        char *line;
        if (asprintf(&line, "%.*s: %.*s", SLICE_PRINT(field->name), SLICE_PRINT(field->value)) < 0)
            return false;
        bool added = ci_headers_add(list, line) != NULL;
        free(line);
        if (!added)
            return false;
    }
    return true;
}

struct transaction {
    unsigned magic;
#define TRANSACTION_MAGIC 0x54726e73u
    const struct transaction_owner *owner;
    struct arena arena;
    struct http_head request, response;
    struct driver driver;   /* its `in` is what is still to be used of the preview */
    struct slice previewed; /* c-icap's preview buffer */
    uint64_t stated;        /* the length in the head that went out, else SERVICE_LENGTH_UNKNOWN */
    uint64_t given;         /* bytes of the body that went out */
    enum transaction_outcome outcome;
    bool taken; /* bytes, since the service was last told of a pause */
};

struct transaction *transaction_create(const struct transaction_owner *owner) {
    struct transaction *transaction;
    ALLOC_OBJ(transaction, TRANSACTION_MAGIC);
    transaction->owner = owner;
    transaction->outcome = TRANSACTION_SKIPPED;
    transaction->stated = SERVICE_LENGTH_UNKNOWN;
    arena_init(&transaction->arena);
    driver_init(&transaction->driver, owner->ops, NULL, &transaction->arena, &owner->host);
    return transaction;
}

void transaction_destroy(struct transaction *transaction) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    if (transaction->driver.exchange.failed)
        transaction->outcome = TRANSACTION_FAILED;
    if (transaction->driver.exchange.head != NULL)
        transaction->owner->count_outcome(transaction->owner->host.context, transaction->outcome);
    driver_end(&transaction->driver);
    arena_release(&transaction->arena);
    FREE_OBJ(transaction);
}

/* The service has a bug. Always false. */
static bool hosted_abort(struct transaction *transaction, const char *error) {
    service_log(&transaction->owner->host, LOG_LEVEL_ERROR, error);
    transaction->outcome = TRANSACTION_FAILED;
    return false;
}

/* The driver knows why, or it was said before. */
static int failed(struct transaction *transaction) {
    enum driver_failure failure = transaction->driver.failure;
    if (failure != DRIVER_NO_FAILURE && failure != DRIVER_ABORTED)
        hosted_abort(transaction, driver_failure_text(failure));
    return CI_ERROR;
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
    struct service_exchange *exchange = &transaction->driver.exchange;
    bool on_request = ci_req_type(request) == ICAP_REQMOD;
    exchange->point = on_request ? SERVICE_REQUEST : SERVICE_RESPONSE;
    exchange->request = &transaction->request;
    exchange->head = on_request ? &transaction->request : &transaction->response;
    exchange->has_body = ci_req_hasbody(request);
    exchange->client_ip = icap_field(transaction, request, "X-Client-IP");
    exchange->client_user = icap_field(transaction, request, "X-Client-Username");
    exchange->arguments = slice_from(request->args);
    exchange->transaction_id = transaction_id_of(transaction, request);
}

/* Replaces c-icap's head by the service's head. */
static bool hosted_write_head(struct transaction *transaction, struct ci_request *request) {
    const struct service_exchange *exchange = &transaction->driver.exchange;
    bool on_request = exchange->point == SERVICE_REQUEST;
    if (transaction->driver.mode == DRIVER_ADAPTED)
        transaction->stated = exchange->body_length;
    struct ci_headers_list *list =
        on_request ? ci_http_request_headers(request) : ci_http_response_headers(request);
    return head_list_write(list, exchange->head, on_request);
}

/* ---- verdicts ----------------------------------------------------------------------------- */

/* The field stands in the ICAP head, which is not out yet, since it is about the verdict. The ISTag
 * would be the right place for clients that know no other (RFC 3507 §4.7), but c-icap writes the
 * ISTag itself. */
static void tell_failed(const struct transaction *transaction, struct ci_request *request) {
    char field[64];
    const struct service_exchange *exchange = &transaction->driver.exchange;
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
    transaction->driver.mode = DRIVER_PASSED;
    ci_req_unlock_data(request);
    return CI_MOD_CONTINUE;
}

static bool hosted_is_answered(const struct transaction *transaction) {
    const struct driver *driver = &transaction->driver;
    return driver->verdict == SERVICE_ADAPT && driver->exchange.answer != NULL;
}

/* A response in place of the request (RFC 3507 §3.1). If the request has a body, the response has
 * one too, even an empty one. Without it c-icap would leave the rest of the request's body unread
 * and take it for the next request. */
static bool hosted_answer(struct transaction *transaction, struct ci_request *request) {
    const struct service_exchange *exchange = &transaction->driver.exchange;
    bool has_body = exchange->body_length != 0 || exchange->has_body;
    transaction->stated = exchange->body_length;
    transaction->outcome = TRANSACTION_ADAPTED;
    ci_req_unlock_data(request);
    return ci_http_response_create(request, 1, has_body) &&
           head_list_write(ci_http_response_headers(request), exchange->answer, false);
}

/* The service leaves the body alone. What it has taken of it is still in the preview; c-icap has no
 * copy of what came behind that. */
static bool hosted_keep_body(struct transaction *transaction) {
    struct driver *driver = &transaction->driver;
    if (driver->taken > transaction->previewed.length)
        return hosted_abort(transaction,
                            "the service set keeps_body after it had taken a part of the body: the "
                            "transaction is aborted; please report this");
    driver->in = transaction->previewed;
    return true;
}

/* The verdict is there, and the service has an interest in the body. After SKIP the bytes that it holds
 * come back through pull; at the end of data a 204 may save that. False when it can't go on. */
static bool follow(struct transaction *transaction, struct ci_request *request, bool all_taken) {
    const struct driver *driver = &transaction->driver;
    if (driver->failure != DRIVER_NO_FAILURE)
        return false;
    tell_failed(transaction, request);
    if (driver->verdict == SERVICE_SKIP) {
        if (!all_taken)
            ci_req_unlock_data(request);
        return true;
    }
    if (hosted_is_answered(transaction))
        return hosted_answer(transaction, request);
    if (driver->exchange.keeps_body && !hosted_keep_body(transaction))
        return false;
    transaction->outcome = TRANSACTION_ADAPTED;
    ci_req_unlock_data(request);
    return hosted_write_head(transaction, request);
}

/* Only the head is new. Inside the preview a client that knows 206 need not send the body then
 * (draft-icap-ext-partial-content-07). Behind the preview c-icap sends a wrong 206. */
static bool can_leave_body(const struct transaction *transaction, struct ci_request *request) {
    const struct driver *driver = &transaction->driver;
    return driver->verdict == SERVICE_ADAPT && driver->mode == DRIVER_PASSED &&
           ci_req_hasbody(request) && ci_req_preview_size(request) >= 0 && ci_req_allow206(request);
}

static int leave_body(struct transaction *transaction, struct ci_request *request) {
    ci_request_206_origin_body(request, 0);
    transaction->driver.mode = DRIVER_COMPLETE;
    return CI_MOD_ALLOW206;
}

/* Tells the proxy that it need not ask again for a while. The field stands in the ICAP head, since
 * it is about the verdict. */
static void permit(const struct transaction *transaction, struct ci_request *request) {
    char field[64];
    const struct service_exchange *exchange = &transaction->driver.exchange;
    if (exchange->point != SERVICE_REQUEST || exchange->lifetime == 0 || exchange->failed)
        return;
    snprintf(field, sizeof field, "Cache-Control: max-age=%llu",
             (unsigned long long)exchange->lifetime);
    ci_icap_add_xheader(request, field);
}

static void begin(struct transaction *transaction, struct ci_request *request) {
    struct driver *driver = &transaction->driver;
    bool complete = !ci_req_hasbody(request) || ci_req_hasalldata(request);
    fill_exchange(transaction, request);
    driver_begin(driver, transaction->owner->service);
    if (driver->mode == DRIVER_PREVIEW)
        driver_preview(driver, transaction->previewed, complete);
    permit(transaction, request);
}

/* c-icap wants all taken that it brings as long as no head has gone out, so what was in the preview goes
 * to a service that holds the message back. False: the transaction fails. */
static bool hold(struct transaction *transaction, struct ci_request *request) {
    size_t got;
    driver_run(&transaction->driver, NULL, 0, &got);
    return transaction->driver.mode == DRIVER_HELD ||
           follow(transaction, request, ci_req_hasalldata(request));
}

int transaction_preview(struct transaction *transaction, const char *bytes, int length,
                        struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    struct driver *driver = &transaction->driver;
    transaction->previewed = length > 0 ? slice_make(bytes, (size_t)length) : SLICE("");
    driver->in = transaction->previewed;
    if (!read_heads(transaction, request))
        return skip_before_body(transaction, request);
    begin(transaction, request);
    if (driver->verdict == SERVICE_SKIP)
        return skip_before_body(transaction, request);
    bool goes_on = driver->mode == DRIVER_HELD ? hold(transaction, request)
                                               : follow(transaction, request, true);
    if (!goes_on)
        return failed(transaction);
    return can_leave_body(transaction, request) ? leave_body(transaction, request)
                                                : CI_MOD_CONTINUE;
}

/* ---- the body ----------------------------------------------------------------------------- */

/* What one call of `io` does. */
struct round {
    struct slice in; /* what c-icap has brought behind the preview */
    char *out;
    size_t capacity, put, offered;
    bool at_end, failed;
    bool decides; /* the service has to decide now */
};

static void take(struct round *round, size_t got) {
    if (got == 0)
        return;
    round->put += got;
    round->out += got;
    round->capacity -= got;
}

/* The rest of the preview goes first. */
static enum driver_status hosted_go_on(struct transaction *transaction, struct round *round) {
    struct driver *driver = &transaction->driver;
    size_t got;
    if (driver->in.length > 0 && (driver->mode == DRIVER_HELD || driver->mode == DRIVER_ADAPTED))
        driver_push(driver);
    bool behind = driver->in.length == 0;
    if (behind)
        driver->in = round->in;
    driver->in_ended = round->at_end && (behind || round->in.length == 0);
    enum driver_status status = driver_run(driver, round->out, round->capacity, &got);
    take(round, got);
    if (behind) {
        round->in = driver->in;
        driver->in = SLICE("");
    }
    return status;
}

/* May `io` return with nothing done? Then c-icap must have something else to wait for. While the body
 * still comes in, bytes that were formatted earlier wait in c-icap's buffer: as long as there are any, it
 * calls again. */
static bool may_return(const struct transaction *transaction, const struct round *round,
                       bool bytes_pending) {
    size_t left = round->in.length;
    /* As long as no head has gone out, c-icap wants all taken that it brings. */
    if (transaction->driver.mode == DRIVER_HELD && (left > 0 || round->decides))
        return false;
    if (left < round->offered || round->put > 0 || bytes_pending || round->capacity == 0)
        return true;
    return !round->at_end && left == 0;
}

/* Blocks until what the service waits for has come. False when the service waits for nothing, or
 * goes on waiting past its own deadline: that can only be a bug, and must not block a thread for
 * ever. */
static bool wait_for_service(struct transaction *transaction) {
    struct driver *driver = &transaction->driver;
    if (driver_rest(driver) != DRIVER_WAITS) {
        driver_fail(driver, DRIVER_STUCK);
        return false;
    }
    if (driver_wait(driver, -1))
        driver_ready(driver);
    return true;
}

static bool goes_on_passing(const struct transaction *transaction, const struct round *round) {
    const struct driver *driver = &transaction->driver;
    return driver->mode == DRIVER_PASSED && round->capacity > 0 &&
           (driver->in.length > 0 || round->in.length > 0);
}

/* False: the transaction fails. */
static bool move(struct transaction *transaction, struct round *round, bool bytes_pending,
                 struct ci_request *request) {
    for (;;)
        switch (hosted_go_on(transaction, round)) {
        case DRIVER_GAVE:
            if (!goes_on_passing(transaction, round))
                return true;
            break;
        case DRIVER_ENDED: return true;
        case DRIVER_DECIDED:
            if (!follow(transaction, request, round->at_end && round->in.length == 0))
                return false;
            break;
        case DRIVER_TURN: break;
        case DRIVER_RESTS:
            if (may_return(transaction, round, bytes_pending))
                return true;
            if (!wait_for_service(transaction))
                return false;
            break;
        case DRIVER_FAILED: return false;
        }
}

/* An answer in place of a request with a body is held back until the body is in: c-icap does not
 * reliably read on once it has sent the end of a response. */
static bool holds_answer_back(const struct transaction *transaction, const struct round *round) {
    return hosted_is_answered(transaction) && transaction->driver.exchange.has_body &&
           !round->at_end;
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
    const struct service_wait *wait = &transaction->driver.exchange.wait;
    int64_t left = wait->deadline - service_now();
    struct pollfd polls[] = {{.fd = request->connection->fd, .events = POLLIN},
                             {.fd = wait->fd, .events = wait->events}};
    int ready = -1;
    if (wait->fd >= 0)
        while ((ready = poll(polls, 2, left < 0 ? 0 : (int)left)) < 0 && errno == EINTR)
            continue;
    return ready >= 0 && polls[0].revents == 0;
}

static void pull(struct transaction *transaction, struct round *round) {
    size_t got = 0;
    if (round->capacity > 0)
        driver_pull(&transaction->driver, round->out, round->capacity, &got);
    take(round, got);
}

/* A service may put off what it gives at a pause: nobody calls again before there is more. */
static void await_idle(struct transaction *transaction, struct round *round,
                       struct ci_request *request) {
    struct driver *driver = &transaction->driver;
    if (round->put > 0 || driver->mode != DRIVER_ADAPTED || driver->ops->ready == NULL ||
        request->remain_send_block_bytes > 0 || !ready_before_more(transaction, request))
        return;
    driver_ready(driver);
    pull(transaction, round);
}

/* c-icap calls without bytes too: when it has sent what it had, or when only the end of a chunk has come. A pause may have begun
 * by then that had not when the last bytes were brought. */
static void tell_idle(struct transaction *transaction, struct round *round,
                      struct ci_request *request) {
    struct driver *driver = &transaction->driver;
    transaction->taken |= round->offered > round->in.length;
    if (driver->ops->idle == NULL || round->at_end || driver->mode != DRIVER_ADAPTED ||
        round->in.length > 0)
        return;
    if (transaction->taken && nothing_at_hand(request, round->offered)) {
        transaction->taken = false;
        driver_idle(driver);
        pull(transaction, round);
    }
    if (!transaction->taken)
        await_idle(transaction, round, request);
}

/* RFC 9112 §8: "A message body that uses a valid Content-Length is incomplete if the size of the
 * message body received (in octets) is less than the value given by Content-Length." So a body of
 * another length than the head states must not come to its end. */
static void check_length(struct transaction *transaction, struct round *round) {
    bool complete = transaction->driver.mode == DRIVER_COMPLETE;
    transaction->given += round->put;
    if (round->failed || transaction->stated == SERVICE_LENGTH_UNKNOWN ||
        (transaction->given <= transaction->stated &&
         (transaction->given == transaction->stated || !complete)))
        return;
    round->failed = true;
    hosted_abort(transaction, "the body has another length than the service set: the transaction "
                              "is aborted; please report this");
}

/* What c-icap hears of it. */
static int round_result(const struct transaction *transaction, const struct round *round) {
    if (round->failed)
        return CI_ERROR;
    if (round->put == 0 && transaction->driver.mode == DRIVER_COMPLETE && round->capacity > 0)
        return CI_EOF;
    return (int)round->put;
}

int transaction_io(struct transaction *transaction, char *out, int *out_length, const char *in,
                   int *in_length, bool at_end, struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    struct driver *driver = &transaction->driver;
    struct round round = {
        .out = out,
        .capacity = out != NULL && out_length != NULL && *out_length > 0 ? (size_t)*out_length : 0,
        .offered = in != NULL && in_length != NULL && *in_length > 0 ? (size_t)*in_length : 0,
        .at_end = at_end,
    };
    bool bytes_pending = in_length != NULL && request->remain_send_block_bytes > 0;
    if (driver->mode == DRIVER_COMPLETE || hosted_is_answered(transaction))
        driver->in = SLICE("");
    else
        round.in = slice_make(in, round.offered);
    if (holds_answer_back(transaction, &round))
        round.capacity = 0;
    else
        round.failed = !move(transaction, &round, bytes_pending, request);
    tell_idle(transaction, &round, request);
    round.failed |= driver->mode == DRIVER_OVER;
    if (round.failed)
        failed(transaction);
    check_length(transaction, &round);
    if (in_length != NULL)
        *in_length = (int)(round.offered - round.in.length);
    if (out_length != NULL)
        *out_length = round_result(transaction, &round);
    return round.failed ? CI_ERROR : CI_OK;
}

/* The whole body is in. A service that held it decides now. */
int transaction_finish(struct transaction *transaction, struct ci_request *request) {
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    const struct driver *driver = &transaction->driver;
    struct round round = {.in = SLICE(""), .at_end = true, .decides = true};
    bool good = driver->mode != DRIVER_HELD || move(transaction, &round, false, request);
    if (!good || driver->mode == DRIVER_OVER)
        return failed(transaction);
    if (transaction->outcome == TRANSACTION_SKIPPED && driver->state != NULL &&
        ci_req_allow204(request) && !ci_req_sent_data(request))
        return CI_MOD_ALLOW204;
    return CI_MOD_DONE;
}
