#include "client_lab.h"

#include "part.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENER         "127.0.0.1:3128"
#define REVERSE_LISTENER "127.0.0.1:3129"

static void lab_log(struct client_lab *lab, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(lab->log + lab->logged, CLIENT_LAB_LOG - lab->logged, format, arguments);
    va_end(arguments);
    ck_assert(length >= 0 && lab->logged + (size_t)length < CLIENT_LAB_LOG);
    lab->logged += (size_t)length;
}

static void asked_end(struct asked *asked, const char *how) {
    struct client_lab *lab = asked->lab;
    lab_log(lab, "%s\n", how);
    lab->open--;
    if (lab->last == asked)
        lab->last = NULL;
    source_close(&asked->body);
    exchange_finish(&asked->exchange);
    body_release(&asked->reply.body);
    task_cancel(&asked->task);
    arena_release(&asked->arena);
    free(asked->text);
    free(asked);
}

/* True: it has ended, or will not come. */
static bool asked_read(struct asked *asked) {
    size_t got;
    if (asked->body == NULL)
        return true;
    for (;;) {
        asked->text = xrealloc(asked->text, asked->length + 65537);
        switch (source_read(asked->body, asked->text + asked->length, 65536, &got)) {
        case SOURCE_DATA: asked->length += got; break;
        case SOURCE_WAIT: return false;
        case SOURCE_END: asked->text[asked->length] = '\0'; return true;
        case SOURCE_FAILED: asked->text[asked->length] = '\0'; return true;
        }
    }
}

static void asked_log(struct asked *asked) {
    struct exchange *exchange = asked->exchange;
    const struct http_head *request = &exchange->request;
    if (exchange->error_status != 0) {
        lab_log(asked->lab, "%u %s\n", exchange->error_status, exchange->error_text);
        return;
    }
    lab_log(asked->lab, "%.*s %.*s", (int)request->method.length, request->method.base,
            (int)request->target.length, request->target.base);
    if (asked->body != NULL)
        lab_log(asked->lab, " %zu:%s", asked->length,
                asked->length == 0    ? ""
                : asked->length < 200 ? asked->text
                                      : "...");
    if (exchange->body_failed)
        lab_log(asked->lab, exchange->body_timed_out ? " timed out" : " failed");
    lab_log(asked->lab, "\n");
}

static void asked_step(struct asked *asked) {
    struct client_lab *lab = asked->lab;
    if (asked->exchange->state == EXCHANGE_ABORTED) {
        asked_end(asked, "aborted");
        return;
    }
    if (!asked->replied && (!lab->wait_for_body || asked_read(asked))) {
        asked->replied = true;
        asked_log(asked);
        lab->answer(asked);
    }
    if (asked->exchange->state == EXCHANGE_SENT)
        asked_end(asked, "sent");
    else if (asked->exchange->state == EXCHANGE_ABORTED)
        asked_end(asked, "aborted");
}

static void asked_on_wake(struct task *task) {
    asked_step(CONTAINER_OF(task, struct asked, task));
}

static void lab_on_request(struct exchange *exchange, void *arg) {
    struct client_lab *lab = arg;
    if (lab->on_request != NULL) {
        lab->on_request(exchange, lab->arg);
        return;
    }
    struct asked *asked = xcalloc(1, sizeof *asked);
    asked->lab = lab;
    asked->exchange = exchange;
    arena_init(&asked->arena);
    task_init(&asked->task, asked_on_wake);
    exchange->waker = &asked->task;
    exchange_own_request(exchange, &asked->arena);
    asked->body = lab->wait_for_body ? exchange_body(exchange) : NULL;
    if (asked->body != NULL)
        source_set_waker(asked->body, &asked->task);
    lab->last = asked;
    lab->open++;
    asked_step(asked);
}

static void lab_adopt(struct clients *clients, const struct client_arrival *arrival) {
    struct client_lab *lab = clients->arg;
    if (arrival->http2)
        part_table[PART_HTTP2]->protocol.adopt(lab->worker.parts[PART_HTTP2], arrival);
    else
        http1_adopt(lab->host, arrival);
}

void asked_finish(struct asked *asked) {
    asked_end(asked, "finished");
}

void asked_reply_so(struct asked *asked) {
    exchange_reply(asked->exchange, &asked->reply);
}

void asked_reply(struct asked *asked, unsigned status, const char *head, const char *body) {
    asked->reply.status = status;
    asked->reply.stored = slice_from(head);
    asked->reply.body = body_of_bytes(slice_from(body));
    asked->reply.length = (int64_t)strlen(body);
    asked_reply_so(asked);
}

void asked_reply_target(struct asked *asked) {
    struct exchange *exchange = asked->exchange;
    if (exchange->error_status != 0 || exchange->body_failed) {
        asked->reply.close = true;
        asked_reply(asked, 400, "HTTP/1.1 400 Bad Request\r\n", "no");
        return;
    }
    char *target = arena_alloc(&asked->arena, exchange->request.target.length + 1);
    memcpy(target, exchange->request.target.base, exchange->request.target.length);
    target[exchange->request.target.length] = '\0';
    asked_reply(asked, 200, "HTTP/1.1 200 OK\r\n", target);
}

static void lab_on_now(struct timer *timer) {
    (void)timer;
}

/* Reads what has come to the client. True: something has. */
static bool lab_receive(struct client_lab *lab) {
    bool any = false;
    while (lab->fd >= 0 && !lab->ended && !lab->deaf) {
        ssize_t got = recv(lab->fd, lab->received + lab->got, CLIENT_LAB_RECEIVED - 1 - lab->got,
                           MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        any = true;
        if (got <= 0)
            lab->ended = true;
        lab->reset = got < 0;
        lab->got += got > 0 ? (size_t)got : 0;
        ck_assert_uint_lt(lab->got, CLIENT_LAB_RECEIVED - 1);
    }
    return any;
}

void client_lab_run(struct client_lab *lab) {
    for (int quiet = 0; quiet < 2; quiet++) {
        timer_set(&lab->loop.timers, &lab->now, 0);
        loop_run_once(&lab->loop);
        if ((lab->peer != NULL && lab->peer(lab->arg)) || lab_receive(lab) ||
            lab->loop.batch_count > 0 || !list_empty(&lab->loop.tasks))
            quiet = -1;
    }
}

void client_lab_pass(struct client_lab *lab, uint64_t milliseconds) {
    timers_run(&lab->loop.timers, lab->loop.now + milliseconds);
    client_lab_run(lab);
}

void client_lab_connect(struct client_lab *lab) {
    int pair[2];
    struct address client, listener;
    client_lab_hang_up(lab);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    ck_assert(address_parse(&client, SLICE("127.0.0.1:40000"), 0));
    ck_assert(
        address_parse(&listener, lab->reverse ? SLICE(REVERSE_LISTENER) : SLICE(LISTENER), 0));
    lab->fd = pair[0];
    lab->ended = lab->reset = false;
    lab->got = 0;
    ck_assert(client_total_add(&lab->total, 10));
    http1_accept(lab->host, &(struct client_accepted){
                                .fd = pair[1], .client = &client, .listener = &listener});
    client_lab_run(lab);
}

struct client_lab *client_lab_open(const char *settings) {
    char text[4096];
    struct client_lab *lab = xcalloc(1, sizeof *lab);
    snprintf(text, sizeof text,
             "workers = 1\nlisten \"" LISTENER "\" { mode = forward  local_destinations = allow }\n"
             "listen \"" REVERSE_LISTENER "\" { mode = reverse }\n%s",
             settings);
    lab->settings = settings_from(text);
    lab->received = xcalloc(1, CLIENT_LAB_RECEIVED);
    lab->log = xcalloc(1, CLIENT_LAB_LOG);
    lab->fd = -1;
    lab->answer = asked_reply_target;
    lab->wait_for_body = true;
    ck_assert(loop_init(&lab->loop));
    ck_assert(mailbox_init(&lab->mailbox, &lab->loop));
    timer_init(&lab->now, lab_on_now);
    net_context_init(&lab->net, &lab->loop);
    lab->net.settings = lab->settings;
    clients_init(&lab->clients, &lab->net, &lab->mailbox, &lab->total, lab_on_request, lab);
    lab->host = xmalloc(sizeof *lab->host);
    http1_host_init(lab->host, &lab->clients);
    lab->worker.clients = &lab->clients;
    if (part_table[PART_HTTP2] != NULL)
        part_table[PART_HTTP2]->worker.join(&lab->worker, NULL);
    lab->clients.adopt = lab_adopt;
    client_lab_connect(lab);
    return lab;
}

void client_lab_hang_up(struct client_lab *lab) {
    if (lab->fd < 0)
        return;
    close(lab->fd);
    lab->fd = -1;
    client_lab_run(lab);
}

void client_lab_close(struct client_lab *lab) {
    client_lab_hang_up(lab);
    client_lab_pass(lab, 3600000);
    ck_assert_msg(lab->open == 0, "%u requests have not ended:\n%s", lab->open, lab->log);
    ck_assert_uint_eq(lab->clients.connection_count, 0);
    ck_assert_uint_eq(lab->total.count, 0);
    ck_assert_uint_eq(lab->net.counters.client_connections_open, 0);
    ck_assert_uint_eq(lab->net.buffer_bytes, 0);
    ck_assert_uint_eq(lab->net.counters.client_http2_connections_open, 0);
    ck_assert_uint_eq(lab->net.counters.client_http2_streams_open, 0);
    http1_host_release(lab->host);
    if (part_table[PART_HTTP2] != NULL)
        part_table[PART_HTTP2]->worker.leave(&lab->worker);
    clients_release(&lab->clients);
    mailbox_release(&lab->mailbox);
    timer_cancel(&lab->loop.timers, &lab->now);
    net_context_release(&lab->net);
    loop_release(&lab->loop);
    settings_end_use(&lab->settings);
    free(lab->host);
    free(lab->received);
    free(lab->log);
    free(lab);
}

void client_lab_put(struct client_lab *lab, struct slice bytes) {
    while (bytes.length > 0) {
        ssize_t put = send(lab->fd, bytes.base, bytes.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && (errno == EPIPE || errno == ECONNRESET))
            return;
        ck_assert(put > 0 || errno == EAGAIN);
        if (put < 0)
            client_lab_run(lab);
        bytes = put < 0 ? bytes : slice_make(bytes.base + put, bytes.length - (size_t)put);
    }
}

void client_lab_send_bytes(struct client_lab *lab, struct slice bytes) {
    client_lab_put(lab, bytes);
    client_lab_run(lab);
}

void client_lab_send(struct client_lab *lab, const char *text) {
    client_lab_send_bytes(lab, slice_from(text));
}

void client_lab_take(struct client_lab *lab, size_t bytes) {
    char scrap[4096];
    while (bytes > 0) {
        ssize_t got = recv(lab->fd, scrap, bytes < sizeof scrap ? bytes : sizeof scrap, 0);
        ck_assert_int_gt(got, 0);
        bytes -= (size_t)got;
        client_lab_run(lab);
    }
}

void client_lab_end(struct client_lab *lab) {
    ck_assert_int_eq(shutdown(lab->fd, SHUT_WR), 0);
    client_lab_run(lab);
}

const char *client_lab_received(struct client_lab *lab) {
    lab->received[lab->got] = '\0';
    lab->got = 0;
    return lab->received;
}

const char *client_lab_logged(struct client_lab *lab) {
    lab->log[lab->logged] = '\0';
    lab->logged = 0;
    return lab->log;
}

bool client_lab_is_closed(struct client_lab *lab) {
    return lab->ended && lab->clients.connection_count == 0;
}
