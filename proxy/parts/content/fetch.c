#include "content/fetch.h"

#include "base/assert.h"
#include "client/clients.h"
#include "client/identity.h"
#include "http/head_parser.h"
#include "http/url.h"

#include <stdlib.h>

/* Seen from the worker. It is freed when its exchange is over and no message is on its way. */
struct content_fetch {
    unsigned magic;
#define CONTENT_FETCH_MAGIC 0xc04700feu
    struct message begin, cancel;
    struct content_operation *operation; /* NULL: it has its answer */
    struct content_executor *room;
    struct clients *clients;
    bool asked; /* for somebody; else by the service itself */
    struct address client, listener;
    struct identity *identity; /* referenced; NULL: nobody is proved */
    bool again;
    bool cancelled, cancel_seen; /* under the room's lock; the message has come */
    bool begun, over;
    struct exchange exchange;
    struct exchange_ends ends;
    struct exchange_told told;
    char *request_bytes; /* what exchange.request points to */
    struct body_reader reader;
    bool reads;
    struct task task;
    struct timer timer;
    bool timed_out;
};

static struct content_fetch *fetch_of(struct exchange *exchange) {
    struct content_fetch *fetch = CONTAINER_OF(exchange, struct content_fetch, exchange);
    CHECK_OBJ(fetch, CONTENT_FETCH_MAGIC);
    return fetch;
}

static void fetch_free(struct content_fetch *fetch) {
    identity_release(&fetch->identity);
    free(fetch->request_bytes);
    FREE_OBJ(fetch);
}

/* The exchange is over, or never began. */
static void fetch_leave(struct content_fetch *fetch, enum service_content_status status,
                        const char *why) {
    struct content_executor *room = fetch->room;
    struct content_operation *operation = fetch->operation;
    pthread_mutex_lock(&room->lock);
    operation->fetch = NULL;
    fetch->operation = NULL;
    fetch->over = true;
    bool comes = fetch->cancelled && !fetch->cancel_seen;
    pthread_mutex_unlock(&room->lock);
    content_operation_end(operation, status, why);
    if (!comes)
        fetch_free(fetch);
}

/* The reply. */

static void fetch_stop_reading(struct content_fetch *fetch) {
    task_cancel(&fetch->task);
    if (!fetch->reads)
        return;
    fetch->reads = false;
    body_reader_close(&fetch->reader);
    if (fetch->exchange.paces[PACE_DOWN] != NULL)
        pace_end(fetch->exchange.paces[PACE_DOWN]);
}

static void fetch_end(struct content_fetch *fetch, enum exchange_state state) {
    struct exchange *exchange = &fetch->exchange;
    fetch_stop_reading(fetch);
    exchange->state = state;
    if (exchange->waker != NULL)
        loop_defer(exchange->clients->net->loop, exchange->waker);
}

/* How many of so many bytes may be taken now; less than 0: never, the reply is too large. */
static ssize_t fetch_may_take(struct content_fetch *fetch, size_t bytes) {
    struct pace *pace = fetch->exchange.paces[PACE_DOWN];
    if (pace == NULL)
        return (ssize_t)bytes;
    if (pace->most > 0 && fetch->exchange.bytes_sent + bytes > pace->most) {
        fetch->exchange.reply_too_large = true;
        return -1;
    }
    return (ssize_t)pace_ask(pace, bytes);
}

static void fetch_read(struct content_fetch *fetch) {
    enum { PIECES = 8 };
    struct exchange *exchange = &fetch->exchange;
    struct iovec pieces[PIECES];
    size_t bytes;
    do {
        while (body_reader_pieces(&fetch->reader, pieces, PIECES, &bytes) > 0) {
            ssize_t now = fetch_may_take(fetch, bytes);
            if (now < 0)
                fetch_end(fetch, EXCHANGE_ABORTED);
            if (now <= 0)
                return;
            body_reader_advance(&fetch->reader, (size_t)now);
            exchange->bytes_sent += (uint64_t)now;
            if (exchange->paces[PACE_DOWN] != NULL)
                pace_used(exchange->paces[PACE_DOWN], (size_t)now);
        }
        if (body_reader_done(&fetch->reader)) {
            fetch_end(fetch, EXCHANGE_SENT);
            return;
        }
        if (body_reader_failed(&fetch->reader)) {
            fetch_end(fetch, EXCHANGE_ABORTED);
            return;
        }
    } while (!body_reader_wait(&fetch->reader));
}

static void fetch_on_body(struct task *task) {
    struct content_fetch *fetch = CONTAINER_OF(task, struct content_fetch, task);
    CHECK_OBJ(fetch, CONTENT_FETCH_MAGIC);
    fetch_read(fetch);
}

static void fetch_on_pace(void *arg) {
    struct content_fetch *fetch;
    CAST_OBJ(fetch, arg, CONTENT_FETCH_MAGIC);
    fetch_read(fetch);
}

static void fetch_reply(struct exchange *exchange, const struct reply *reply) {
    struct content_fetch *fetch = fetch_of(exchange);
    struct pace *pace = exchange->paces[PACE_DOWN];
    fetch->operation->result.http_status = reply->status;
    if (reply->body == NULL || body_state(reply->body) == BODY_COMPLETE ||
        reply_has_no_content(reply)) {
        exchange->state = EXCHANGE_SENT;
        return;
    }
    if (pace != NULL) {
        pace->on_ready = fetch_on_pace;
        pace->arg = fetch;
    }
    exchange->state = EXCHANGE_SENDING;
    fetch->reads = true;
    body_reader_open(&fetch->reader, reply->body, &fetch->task, exchange->clients->mailbox);
    fetch_read(fetch);
}

static void fetch_interim(struct exchange *exchange, const struct http_head *head) {
    (void)exchange;
    (void)head;
}

static struct duplex *fetch_open_tunnel(struct exchange *exchange, struct http_head *head,
                                        struct slice protocol) {
    (void)head;
    (void)protocol;
    exchange_abort(exchange);
    return NULL;
}

static void fetch_abort(struct exchange *exchange) {
    struct content_fetch *fetch = fetch_of(exchange);
    if (exchange->state == EXCHANGE_REQUEST || exchange->state == EXCHANGE_SENDING)
        fetch_end(fetch, EXCHANGE_ABORTED);
}

/* What the service is told. */
static void fetch_answer(struct content_fetch *fetch) {
    struct content_operation *operation = fetch->operation;
    const struct exchange_told *told = &fetch->told;
    bool whole = fetch->exchange.state == EXCHANGE_SENT;
    enum service_content_status status = SERVICE_CONTENT_DONE;
    const char *why = "";
    operation->result.result = told->result;
    operation->result.size = fetch->exchange.bytes_sent;
    if (told->url.length > 0)
        operation->result.url = arena_slice(&operation->arena, told->url);
    if (fetch->timed_out || !whole || told->failed) {
        status = SERVICE_CONTENT_FAILED;
        why = fetch->timed_out      ? "it took longer than service.content_timeout allows"
              : told->error != NULL ? told->error
                                    : "the response did not come whole";
    } else if (told->denied) {
        status = SERVICE_CONTENT_REFUSED;
        why = told->error != NULL ? told->error : "a rule of the proxy refuses it";
        atomic_fetch_add(&operation->account->numbers->refused, 1);
    } else {
        operation->result.objects = told->stored;
        atomic_fetch_add(&operation->account->numbers->fetched, 1);
    }
    fetch_leave(fetch, status, why);
}

static void fetch_finish(struct exchange *exchange) {
    struct content_fetch *fetch = fetch_of(exchange);
    fetch_stop_reading(fetch);
    timer_cancel(&exchange->clients->net->loop->timers, &fetch->timer);
    exchange_release(exchange);
    fetch_answer(fetch);
}

static const struct exchange_class fetch_class = {
    .name = "fetch",
    .reply = fetch_reply,
    .interim = fetch_interim,
    .open_tunnel = fetch_open_tunnel,
    .abort = fetch_abort,
    .finish = fetch_finish,
};

/* In the worker. */

static void fetch_on_timeout(struct timer *timer) {
    struct content_fetch *fetch = CONTAINER_OF(timer, struct content_fetch, timer);
    CHECK_OBJ(fetch, CONTENT_FETCH_MAGIC);
    fetch->timed_out = fetch->exchange.state != EXCHANGE_SENT; /* then it only has to be told */
    exchange_abort(&fetch->exchange);
}

/* False: it is no request. */
static bool fetch_write_request(struct content_fetch *fetch) {
    static const enum http_name foreign[] = {
        HTTP_CONTENT_LENGTH, HTTP_TRANSFER_ENCODING, HTTP_EXPECT,           HTTP_RANGE,
        HTTP_IF_RANGE,       HTTP_IF_NONE_MATCH,     HTTP_IF_MODIFIED_SINCE};
    struct content_operation *operation = fetch->operation;
    struct url url;
    if (!url_parse(&url, operation->url))
        return false;
    const char *begin = url.scheme.base + url.scheme.length + strlen("://");
    struct slice authority =
        slice_make(begin, operation->url.length - (size_t)(begin - operation->url.base) -
                              url.path_query.length);
    struct slice text = arena_concat(
        &operation->arena, SLICE("GET "), operation->url, SLICE(" HTTP/1.1\r\nHost: "), authority,
        SLICE("\r\n"), fetch->again ? SLICE("Cache-Control: no-cache\r\n") : SLICE(""),
        operation->head_text, SLICE("\r\n"));
    struct http_head *request = &fetch->exchange.request;
    ssize_t used = http_head_parse_request(request, text.base, text.length, 0);
    const struct http_field *host = http_head_find(request, HTTP_HOST);
    if (used <= 0 || (size_t)used != text.length ||
        http_head_find_next(request, HTTP_HOST, host) != NULL)
        return false;
    http_head_remove_hop_by_hop(request);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        http_head_remove(request, foreign[i]);
    fetch->request_bytes = xmalloc(http_head_size(request));
    http_head_copy(request, request, fetch->request_bytes);
    return true;
}

/* A transparent listener says by the client's connection where a request goes, and there is none. */
static const struct listen_settings *fetch_listener(const struct content_fetch *fetch) {
    const struct listen_set *set = fetch->clients->listen_set;
    const struct settings *settings = set->settings;
    const struct listen_settings *listen = NULL;
    if (fetch->listener.length > 0)
        listen = listen_set_find(set, &fetch->listener);
    for (size_t i = 0; fetch->listener.length == 0 && listen == NULL && i < settings->listen_count;
         i++)
        if (settings->listens[i].mode != LISTEN_TRANSPARENT)
            listen = &settings->listens[i];
    return listen == NULL || listen->mode == LISTEN_TRANSPARENT ? NULL : listen;
}

static void fetch_begin_exchange(struct content_fetch *fetch,
                                 const struct listen_settings *listen) {
    struct exchange *exchange = &fetch->exchange;
    struct clients *clients = fetch->clients;
    fetch->begun = true;
    fetch->ends.client = fetch->client;
    fetch->listener = listen->address;
    fetch->ends.destination = &fetch->listener;
    exchange_init(exchange, &fetch_class, clients, &fetch->ends, listen);
    exchange->owned = true;
    exchange->of_service = true;
    exchange->told_of = &fetch->told;
    exchange->identity = fetch->identity;
    exchange->version = SLICE("1.1");
    exchange->scheme = &url_schemes[URL_HTTP];
    exchange->authority = http_head_value(&exchange->request, HTTP_HOST);
    task_init(&fetch->task, fetch_on_body);
    timer_init(&fetch->timer, fetch_on_timeout);
    loop_timer_after(clients->net->loop, &fetch->timer, fetch->operation->account->limits.timeout);
    clients->on_request(exchange, clients->arg);
}

/* The worker may have ended when the message comes: nothing begins then. */
static void on_begin(struct message *message) {
    struct content_fetch *fetch = CONTAINER_OF(message, struct content_fetch, begin);
    CHECK_OBJ(fetch, CONTENT_FETCH_MAGIC);
    pthread_mutex_lock(&fetch->room->lock);
    bool cancelled = fetch->cancelled, stopping = fetch->room->stopping;
    pthread_mutex_unlock(&fetch->room->lock);
    const struct listen_settings *listen = cancelled || stopping ? NULL : fetch_listener(fetch);
    if (cancelled || stopping)
        fetch_leave(fetch, SERVICE_CONTENT_FAILED, "this process is about to end");
    else if (listen == NULL)
        fetch_leave(fetch, SERVICE_CONTENT_REFUSED,
                    "there is no such listener, or it is transparent: set service.fetch_via");
    else if (clients_lack_memory(fetch->clients))
        fetch_leave(fetch, SERVICE_CONTENT_FAILED,
                    "there is not enough memory now: try again later");
    else if (!fetch_write_request(fetch))
        fetch_leave(fetch, SERVICE_CONTENT_REFUSED,
                    "the fields are no field lines, each with its CRLF, or name a host");
    else
        fetch_begin_exchange(fetch, listen);
}

static void on_cancel(struct message *message) {
    struct content_fetch *fetch = CONTAINER_OF(message, struct content_fetch, cancel);
    CHECK_OBJ(fetch, CONTENT_FETCH_MAGIC);
    pthread_mutex_lock(&fetch->room->lock);
    fetch->cancel_seen = true;
    bool over = fetch->over;
    pthread_mutex_unlock(&fetch->room->lock);
    if (over)
        fetch_free(fetch);
    else if (fetch->begun)
        exchange_abort(&fetch->exchange);
}

/* From any thread, under the lock. */

static struct clients *fetch_next_place(struct content_executor *room) {
    return room->places[room->next_place++ % room->place_count];
}

const char *content_fetch_begin(struct content_operation *operation,
                                const struct requester *requester, bool again) {
    struct content_account *account = operation->account;
    struct content_executor *room = account->room;
    struct content_fetch *fetch;
    if (room->ending || room->place_count == 0)
        return "this process is about to end";
    if (requester != NULL && requester->of_service)
        return "this exchange is a service's own request, and services fetch nothing for those";
    ALLOC_OBJ(fetch, CONTENT_FETCH_MAGIC);
    fetch->operation = operation;
    fetch->room = room;
    fetch->again = again;
    fetch->clients = requester != NULL ? requester->clients : fetch_next_place(room);
    fetch->client = requester != NULL ? requester->client : account->limits.as;
    fetch->listener = requester != NULL ? requester->listener : account->limits.via;
    if (requester != NULL && requester->identity != NULL)
        fetch->identity = identity_reference(requester->identity);
    fetch->begin.deliver = on_begin;
    operation->fetch = fetch;
    operation->stage = CONTENT_BUSY;
    mailbox_post(fetch->clients->mailbox, &fetch->begin);
    return NULL;
}

void content_fetch_cancel(struct content_fetch *fetch) {
    if (fetch->cancelled)
        return;
    fetch->cancelled = true;
    fetch->cancel.deliver = on_cancel;
    mailbox_post(fetch->clients->mailbox, &fetch->cancel);
}
