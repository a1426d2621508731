/*
 * A whole ICAP transaction against a server that sends whatever it likes, through a socketpair.
 * The first three lines of the input are numbers: what the call is (enum flags), how long its
 * virgin body is, and into how many pieces the rest is cut, which is what the server sends before
 * it closes.
 *
 * What must hold: when the server has closed, there is a verdict. A body after 204, and one that is
 * recovered after a failure, is the virgin one to the byte. Adapted heads are of the grammar. A
 * body that is whole was sent whole: its last chunk is there. Nothing waits for ever.
 */
#include "base/assert.h"
#include "base/log.h"
#include "http/head_parser.h"
#include "icap/adapter.h"
#include "icap/call.h"
#include "lines.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VIRGIN_MAX = 40000, ROUNDS = 6, STALLS = 50 };

enum flags {
    FLAG_REQMOD = 1,
    FLAG_BODY = 2,
    FLAG_PREVIEW = 4,
    FLAG_BYPASS = 8,
    FLAG_HOLD = 16,
    FLAG_206 = 32,
    FLAG_UNKNOWN_LENGTH = 64,
    FLAG_SMALL_KEEP = 128,
    FLAG_NO_204 = 256,
};

struct memory_source {
    struct source source;
    size_t at, length;
};

struct run {
    struct loop loop;
    struct net_context net;
    struct settings settings;
    struct service_settings service_settings;
    struct url uri;
    char *uri_text;
    char *uri_texts[2];
    struct adapter_host host;
    struct icap_quota *quota;
    struct icap_service *service;
    struct icap_call call;
    struct http_head adapted;
    struct memory_source virgin;
    struct source *body;
    int server;
    unsigned flags;
    size_t got; /* bytes of the body */
    bool body_taken, body_ended, body_failed, body_is_virgin;
    struct task keep_awake, waker;
};

static char virgin_byte(size_t at) {
    return (char)('a' + (at * 7 + at / 251) % 26);
}

static enum source_status virgin_read(struct source *source, char *buffer, size_t capacity,
                                      size_t *got) {
    struct memory_source *memory = CONTAINER_OF(source, struct memory_source, source);
    *got = memory->length - memory->at;
    if (*got > capacity)
        *got = capacity;
    if (*got > 700)
        *got = 700;
    for (size_t i = 0; i < *got; i++)
        buffer[i] = virgin_byte(memory->at++);
    return *got > 0 ? SOURCE_DATA : SOURCE_END;
}

static void virgin_close(struct source *source) {
    (void)source;
}

static const struct source_class virgin_class = {"virgin", virgin_read, virgin_close, NULL};

static void nothing(struct task *task) {
    (void)task;
}

static void never(struct connection *connection) {
    (void)connection;
}

static void set_up_settings(struct run *run) {
    struct service_settings *settings = &run->service_settings;
    run->uri_text = xstrdup("icap://127.0.0.1:1344/s");
    ASSERT(url_parse(&run->uri, slice_from(run->uri_text)));
    run->uri_texts[0] = run->uri_text;
    *settings = (struct service_settings){
        .name = run->uri_text,
        .uri_texts = run->uri_texts,
        .endpoints = &run->uri,
        .endpoint_count = 1,
        .point = run->flags & FLAG_REQMOD ? ADAPT_REQMOD_PRECACHE : ADAPT_RESPMOD_PRECACHE,
        .bypass = run->flags & FLAG_BYPASS,
        .timeout = 3600000,
        .connect_timeout = 3600000,
        .idle_timeout = 3600000,
        .max_connections = 4,
        .queue_max = 4,
        .queue_timeout = 3600000,
        .preview = 1024,
        .keep = run->flags & FLAG_SMALL_KEEP ? 1500 : 1 << 20,
        .keep_on_disk = run->flags & FLAG_SMALL_KEEP ? 20000 : 0,
        .temporary_directory = "/dev/shm",
        .failures_down = 1,
        .down_min = 3600000,
        .down_max = 3600000,
        .routing = true,
    };
    run->settings.services = settings;
    run->settings.service_count = 1;
    run->settings.workers = 1;
}

/* An endpoint that is up, with one idle connection: the socketpair. */
static void set_up_service(struct run *run) {
    int ends[2];
    run->quota = icap_quota_new(&icap_adapter_class, &run->settings, 0, NULL);
    run->host.net = &run->net;
    const struct icap_options options = {
        .respmod = true,
        .reqmod = true,
        .ttl = -1,
        .preview_given = run->flags & FLAG_PREVIEW,
        .preview = 1000,
        .allow_204 = !(run->flags & FLAG_NO_204),
        .allow_206 = run->flags & FLAG_206,
    };
    struct icap_health *health = run->quota->health[0];
    ASSERT(icap_health_claim(health, run, 0));
    icap_health_answered(health, run, &options, &run->loop);
    run->service = icap_service_new(run->quota, &run->service_settings, &run->host);
    struct icap_endpoint *endpoint = run->service->endpoints[0];
    ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    run->server = ends[1];
    struct connection *connection = connection_new(&run->net, &ends[0], never, run);
    ASSERT(connection != NULL);
    pool_give(endpoint->pool, icap_endpoint_key(endpoint), &connection, 3600000, 1);
}

static void start_call(struct run *run, size_t length) {
    struct source *virgin = NULL;
    if (run->flags & FLAG_BODY) {
        run->virgin.length = length < VIRGIN_MAX ? length : VIRGIN_MAX;
        source_init(&run->virgin.source, &virgin_class, &run->loop,
                    run->flags & FLAG_UNKNOWN_LENGTH ? -1 : (int64_t)run->virgin.length);
        virgin = &run->virgin.source;
    }
    bool reqmod = run->flags & FLAG_REQMOD;
    const struct slice request_head = SLICE("GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n");
    const struct slice response_head =
        reqmod ? SLICE("") : SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    struct http_head given;
    if (reqmod)
        http_head_parse_request(&given, request_head.base, request_head.length, 0);
    else
        http_head_parse_response(&given, response_head.base, response_head.length, 0);
    struct icap_request request = {
        .request_head = request_head,
        .response_head = response_head,
        .given = &given,
        .virgin = &virgin,
        .path = SLICE("/a"),
        .client.ip = SLICE("127.0.0.1"),
        .transaction_id = SLICE("1"),
        .hold = run->flags & FLAG_HOLD,
    };
    task_init(&run->waker, nothing);
    task_init(&run->keep_awake, nothing);
    icap_call_start(&run->call, run->service, &request, &run->adapted, &run->waker);
    /* A fresh connection would lead out of here. */
    run->call.repeated = true;
}

static void check_head(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice parts[] = {head->fields[i].name, head->fields[i].value};
        for (size_t j = 0; j < 2; j++)
            ASSERT(parts[j].length == 0 || (memchr(parts[j].base, '\r', parts[j].length) == NULL &&
                                            memchr(parts[j].base, '\n', parts[j].length) == NULL &&
                                            memchr(parts[j].base, '\0', parts[j].length) == NULL));
    }
}

static void take_verdict(struct run *run) {
    struct icap_call *call = &run->call;
    if (call->base.verdict == ADAPTER_PENDING || run->body_taken)
        return;
    run->body_taken = true;
    if (call->base.verdict == ADAPTER_FAILED) {
        ASSERT(call->base.error != NULL);
        run->body_is_virgin = adapter_call_recover(&call->base, &run->body);
        run->body_failed = !run->body_is_virgin;
        return;
    }
    run->body_is_virgin = call->base.verdict == ADAPTER_UNMODIFIED;
    ASSERT(call->base.verdict != ADAPTER_SATISFIED || (run->flags & FLAG_REQMOD));
    if (!run->body_is_virgin && call->base.result.head_given)
        check_head(call->base.adapted);
    run->body = adapter_call_body(&call->base);
    adapter_call_commit(&call->base);
    if (run->body != NULL)
        source_set_waker(run->body, &run->waker);
}

static void read_body(struct run *run) {
    char buffer[3000];
    size_t got;
    while (run->body != NULL && !run->body_ended && !run->body_failed) {
        switch (source_read(run->body, buffer, sizeof buffer, &got)) {
        case SOURCE_DATA: break;
        case SOURCE_WAIT: return;
        case SOURCE_END: run->body_ended = true; return;
        case SOURCE_FAILED: run->body_failed = true; return;
        }
        ASSERT(got > 0 && got <= sizeof buffer);
        for (size_t i = 0; run->body_is_virgin && i < got; i++)
            ASSERT(buffer[i] == virgin_byte(run->got + i));
        run->got += got;
    }
}

/* Without sleeping: a task waits all the time. What the client sends is read and forgotten. */
static void turn(struct run *run) {
    char scrap[4096];
    for (unsigned i = 0; i < ROUNDS; i++) {
        loop_defer(&run->loop, &run->keep_awake);
        loop_run_once(&run->loop);
        while (run->server >= 0 && recv(run->server, scrap, sizeof scrap, 0) > 0)
            ;
        take_verdict(run);
        read_body(run);
    }
}

static void serve(struct run *run, struct slice answer, size_t pieces) {
    size_t each = answer.length / (pieces % 8 + 1) + 1;
    unsigned stalls = 0;
    turn(run);
    while (answer.length > 0 && stalls < STALLS) {
        size_t piece = answer.length < each ? answer.length : each;
        ssize_t sent = send(run->server, answer.base, piece, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            break; /* it has had enough */
        stalls += sent < 0;
        answer.base += sent > 0 ? sent : 0;
        answer.length -= sent > 0 ? (size_t)sent : 0;
        turn(run);
    }
    close(run->server);
    run->server = -1;
    turn(run);
}

static void check_end(struct run *run) {
    ASSERT(run->call.base.verdict != ADAPTER_PENDING && run->body_taken);
    ASSERT(run->body == NULL || run->body_ended || run->body_failed);
    if (run->body_is_virgin && run->body != NULL)
        ASSERT(run->body_ended && run->got == run->virgin.length);
    ASSERT(run->call.connection == NULL && run->call.endpoint == NULL);
    ASSERT(run->service->endpoints[0]->busy == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines lines = lines_of(data, size);
    struct run *run = xcalloc(1, sizeof *run);
    log_set_level(LOG_LEVEL_ERROR);
    run->flags = (unsigned)lines_number(&lines);
    size_t length = (size_t)lines_number(&lines), pieces = (size_t)lines_number(&lines);
    struct slice answer = lines_copy(lines.rest);
    ASSERT(loop_init(&run->loop));
    net_context_init(&run->net, &run->loop);
    set_up_settings(run);
    set_up_service(run);
    start_call(run, length);
    serve(run, answer, pieces);
    check_end(run);
    source_close(&run->body);
    icap_call_close(&run->call);
    task_cancel(&run->waker);
    task_cancel(&run->keep_awake);
    icap_service_free(&run->service);
    icap_quota_free(&run->quota);
    net_context_release(&run->net);
    loop_release(&run->loop);
    free(run->uri_text);
    free((void *)answer.base);
    free(run);
    return 0;
}
