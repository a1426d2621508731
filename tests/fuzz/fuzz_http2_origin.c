/*
 * Calls to an origin that speaks HTTP/2, as a whole, through a socketpair: session, carrier, calls and
 * bodies, with an origin that sends what the input says.
 *
 * The input is a byte of flags (enum run_flags) and then steps. A step is a byte below 0x20, which
 * is the type of a frame, and its flags, its stream, its length and its content, a byte each but the
 * last; or another byte of enum step_kind. The origin sends no SETTINGS by itself.
 *
 * What must hold: a good client's frames, which are not too long, and heads that can be decoded;
 * streams in rising order, and nothing for one that has not begun, has ended or was reset; never
 * more data than the windows allow. A call is answered only after its request was sent, and its
 * body ends only if the origin has ended the stream, with no more bytes than the origin sent. Time
 * alone ends every call and the connection, and nothing is left over.
 */
#include "client_lab.h"
#include "endpoint.h"

#include "http2/hpack_encode.h"
#include "http2/origin/call.h"
#include "http2/origin/http2.h"
#include "net/egress.h"
#include "net/resolver.h"
#include "origin/http1/http1.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum run_flags {
    FLAG_STALL = 1, /* bodies of responses are not read at first */
    FLAG_SMALL = 2, /* the socket takes few bytes */
};

enum step_kind {
    DO_RUN = 0x20, /* what was put is sent; so it is after eight steps */
    DO_DEAF,       /* the origin reads nothing from here on, or does again */
    DO_PASS,       /* a byte: so many tenths of a second pass */
    DO_FEED,       /* bodies of requests have more bytes; */
    DO_CUT,        /* they break off */
    DO_STALL,      /* bodies of responses are not read from here on, or are again */
    DO_END,        /* the origin sends nothing more */
    DO_RAW,        /* a length, and bytes that are sent as they are */
    DO_SETTINGS,   /* a window for streams, of so many times 256 bytes */
    DO_ANSWER,     /* a stream: a head without a length; */
    DO_SIZED,      /* a stream and a length: a head with it */
    DO_EMPTY,      /* a stream: a head that ends it */
    DO_LEAVE,      /* a number: the call's user leaves */
    DO_CALL = 0x30 /* with bits of enum call_bits */
};

enum call_bits { CALL_POST = 1, CALL_SIZED = 2, CALL_LARGE = 4, CALL_HEAD = 8 };

enum {
    CALLS = 8,
    STREAMS = ENDPOINT_STREAMS,
    STEPS_AT_ONCE = 8,
    FEED = 3000,
    LARGE = 100000,
    SMALL = 4
};

/* A request's body, of `total` bytes of which some are not there yet. */
struct upload {
    struct source source;
    size_t total, there, read;
    bool cut;
};

struct fuzz_call {
    bool used;
    struct arena arena;
    struct http_head request, response;
    struct upload upload;
    struct task task;
    struct source *body;
    uint32_t stream;
    size_t got;
    struct origin_call call;
};

/* A stream as the origin sees it; `sent` and `end_sent` may be more than was taken. */
struct seen {
    bool opened, ended, reset;
    size_t sent;
    bool end_sent;
};

static struct client_lab *lab;
static struct origin_pool *connections;
static struct fuzz_call calls[CALLS];
static struct seen seen[STREAMS];
static struct endpoint origin;
static char received[1 << 20];
static size_t got;
static int origin_fd = -1;
static bool deaf, stalled, bare, preface_seen;
static uint32_t highest;

/* The bodies of requests */

static enum source_status upload_read(struct source *source, char *buffer, size_t capacity,
                                      size_t *read) {
    struct upload *upload = CONTAINER_OF(source, struct upload, source);
    size_t length = upload->there - upload->read;
    *read = length < capacity ? length : capacity;
    memset(buffer, 'u', *read);
    upload->read += *read;
    if (*read > 0)
        return SOURCE_DATA;
    if (upload->cut)
        return SOURCE_FAILED;
    return upload->read == upload->total ? SOURCE_END : SOURCE_WAIT;
}

static void upload_close(struct source *source) {
    (void)source;
}

static const struct source_class upload_class = {"upload", upload_read, upload_close, NULL};

static void feed(struct upload *upload, size_t bytes, bool cut) {
    size_t left = upload->total - upload->there;
    upload->there += bytes < left ? bytes : left;
    upload->cut |= cut;
    source_wake(&upload->source);
}

static void feed_all(size_t bytes, bool cut) {
    for (unsigned i = 0; i < CALLS; i++)
        if (calls[i].used && calls[i].call.request.body != NULL)
            feed(&calls[i].upload, bytes, cut);
}

/* The calls */

static void leave(struct fuzz_call *one) {
    if (!one->used)
        return;
    if (one->body != NULL)
        source_close(&one->body);
    origin_call_close(&one->call);
    task_cancel(&one->task);
    arena_release(&one->arena);
    one->used = false;
}

/* The head of its request was sent before the answer came, and the origin has sent what it says. */
static void check_answered(struct fuzz_call *one) {
    struct origin_http2 *http2 = origin_http2_of(&one->call);
    ASSERT(http2->head_sent && one->call.response->status >= 200);
    one->stream = http2->stream.id;
}

static void check_ended(const struct fuzz_call *one) {
    if (bare || one->stream >= STREAMS)
        return;
    ASSERT(seen[one->stream].end_sent && one->got <= seen[one->stream].sent);
}

/* True: it is over. */
static bool read_on(struct fuzz_call *one) {
    char bytes[4096];
    size_t count;
    for (;;) {
        switch (source_read(one->body, bytes, sizeof bytes, &count)) {
        case SOURCE_DATA: one->got += count; break;
        case SOURCE_WAIT: return false;
        case SOURCE_END: check_ended(one); return true;
        case SOURCE_FAILED: return true;
        }
    }
}

static void call_on_wake(struct task *task) {
    struct fuzz_call *one = CONTAINER_OF(task, struct fuzz_call, task);
    struct origin_call *call = &one->call;
    if (call->state == ORIGIN_FAILED) {
        ASSERT(call->error != NULL);
        leave(one);
        return;
    }
    if (call->state != ORIGIN_ANSWERED || stalled)
        return;
    if (one->body == NULL) {
        check_answered(one);
        one->body = origin_call_body(call);
        if (one->body != NULL)
            source_set_waker(one->body, &one->task);
    }
    if (one->body == NULL || read_on(one))
        leave(one);
}

static void wake_all(void) {
    for (unsigned i = 0; i < CALLS; i++)
        if (calls[i].used)
            loop_defer(&lab->loop, &calls[i].task);
}

static void make_request(struct fuzz_call *one, unsigned bits) {
    struct http_head *head = &one->request;
    http_head_init(head);
    head->method_id = bits & CALL_POST   ? HTTP_METHOD_POST
                      : bits & CALL_HEAD ? HTTP_METHOD_HEAD
                                         : HTTP_METHOD_GET;
    head->method = bits & CALL_POST   ? SLICE("POST")
                   : bits & CALL_HEAD ? SLICE("HEAD")
                                      : SLICE("GET");
    head->target = SLICE("/a");
    http_head_add(head, SLICE("Host"), SLICE("h"));
    http_head_add(head, SLICE("X-Some"), SLICE("value"));
}

static void start_call(unsigned bits) {
    struct fuzz_call *one = calls;
    while (one < calls + CALLS && one->used)
        one++;
    if (one == calls + CALLS)
        return;
    memset(one, 0, sizeof *one);
    one->used = true;
    arena_init(&one->arena);
    task_init(&one->task, call_on_wake);
    make_request(one, bits);
    one->upload.total = bits & CALL_LARGE ? LARGE : SMALL;
    source_init(&one->upload.source, &upload_class, &lab->loop,
                bits & CALL_SIZED ? (int64_t)one->upload.total : -1);
    const struct origin_request request = {
        .host = SLICE("127.0.0.1"),
        .port = 1, /* where nobody listens: the only connection is the one that we give */
        .pool_key = SLICE("origin"),
        .protocols = ORIGIN_HTTP2,
        .fields = &one->request,
        .arena = &one->arena,
        .method = one->request.method_id,
        .body = bits & CALL_POST ? &one->upload.source : NULL,
        .repeatable = !(bits & CALL_POST),
        .deadline = TIMER_NEVER,
        .connect_timeout = 1000,
        .first_byte_timeout = 5000,
        .read_timeout = 5000,
        .idle_timeout = 5000,
        .max_head = 4096,
        .max_idle = 10,
    };
    origin_call_start(&one->call, &lab->net, connections, &request, &one->response, &one->task);
    if (bits & CALL_POST)
        feed(&one->upload, FEED, false);
}

/* What the origin sees */

static struct seen *seen_of(uint32_t id) {
    ASSERT(id % 2 == 1 && id <= highest);
    return &seen[id < STREAMS ? id : 0];
}

static void see_head(const struct hpack_list *list) {
    ASSERT(list->count >= 4 && list->fields[0].pseudo == HPACK_METHOD);
    /* "The identifier of a newly established stream MUST be numerically greater" (RFC 9113 §5.1.1) */
    ASSERT(origin.block_of.stream % 2 == 1 && origin.block_of.stream > highest);
    highest = origin.block_of.stream;
    struct seen *stream = seen_of(highest);
    stream->opened = true;
    stream->ended = origin.block_of.flags & HTTP2_END_STREAM;
}

static void see_data(const struct http2_frame *frame) {
    struct seen *stream = seen_of(frame->stream);
    ASSERT(frame->stream >= STREAMS || (stream->opened && !stream->ended && !stream->reset));
    stream->ended = frame->flags & HTTP2_END_STREAM;
}

static void see_frame(const struct http2_frame *frame, struct slice payload) {
    const struct hpack_list *list = endpoint_see(&origin, frame, payload);
    if (list != NULL)
        see_head(list);
    switch (frame->type) {
    case HTTP2_DATA: see_data(frame); break;
    case HTTP2_RST_STREAM: seen_of(frame->stream)->reset = true; break;
    case HTTP2_WINDOW_UPDATE: ASSERT(frame->stream <= highest); break;
    default: break;
    }
}

static void see_all(void) {
    struct slice preface = HTTP2_PREFACE, rest = slice_make(received, bare ? 0 : got), payload;
    struct http2_frame frame;
    if (!preface_seen && got < preface.length)
        return;
    if (!preface_seen) {
        ASSERT(memcmp(received, preface.base, preface.length) == 0);
        if (!bare)
            rest = slice_make(rest.base + preface.length, rest.length - preface.length);
        preface_seen = true;
    }
    while (endpoint_next(&rest, &frame, &payload))
        see_frame(&frame, payload);
    memmove(received, rest.base, rest.length);
    got = rest.length;
}

static bool origin_turn(void *arg) {
    (void)arg;
    if (origin_fd < 0 || deaf)
        return false;
    ssize_t count = recv(origin_fd, received + got, sizeof received - got, MSG_DONTWAIT);
    if (count <= 0)
        return false;
    got += (size_t)count;
    see_all();
    return true;
}

/* What the origin does */

static void put_frame(unsigned type, unsigned flags, uint32_t stream, struct slice payload) {
    struct seen *known = &seen[stream < STREAMS ? stream : 0];
    endpoint_put_frame(&origin, type, flags, stream, payload);
    if (type == HTTP2_DATA)
        known->sent += payload.length;
    if (type == HTTP2_DATA || type == HTTP2_HEADERS)
        known->end_sent |= flags & HTTP2_END_STREAM;
}

static void put_answer(uint32_t stream, int64_t length, unsigned flags) {
    char text[100], *at = hpack_put_status(text, 200);
    if (length >= 0)
        at = hpack_put_number(at, HTTP_CONTENT_LENGTH, length);
    put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | flags, stream,
              slice_make(text, (size_t)(at - text)));
}

static void send_put(void) {
    struct slice bytes = endpoint_take_put(&origin);
    while (origin_fd >= 0 && bytes.length > 0) {
        ssize_t put = send(origin_fd, bytes.base, bytes.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put <= 0)
            break; /* what the proxy does not take is lost, and so are frames: it sees broken ones */
        bytes = slice_make(bytes.base + put, bytes.length - (size_t)put);
        client_lab_run(lab);
    }
    client_lab_run(lab);
}

static void pass(uint64_t milliseconds) {
    lab->loop.now += milliseconds;
    lab->loop.now_nanoseconds += milliseconds * 1000000;
    timers_run(&lab->loop.timers, lab->loop.now);
    client_lab_run(lab);
}

static void take_frame(struct steps *steps, unsigned type) {
    unsigned flags = steps_byte(steps);
    uint32_t stream = steps_byte(steps);
    put_frame(type, flags, stream, steps_bytes(steps));
}

/* False: it is none of these. */
static bool take_put(struct steps *steps, unsigned kind) {
    uint32_t stream;
    switch (kind) {
    case DO_RAW:
        endpoint_put(&origin, steps_bytes(steps));
        bare = true;
        return true;
    case DO_SETTINGS:
        endpoint_put_setting(&origin, HTTP2_SETTING_INITIAL_WINDOW_SIZE, 256u * steps_byte(steps));
        return true;
    case DO_ANSWER: put_answer(steps_byte(steps), -1, 0); return true;
    case DO_SIZED:
        stream = steps_byte(steps);
        put_answer(stream, steps_byte(steps), 0);
        return true;
    case DO_EMPTY: put_answer(steps_byte(steps), -1, HTTP2_END_STREAM); return true;
    default:
        if (kind < DO_RUN)
            take_frame(steps, kind);
        return kind < DO_RUN;
    }
}

static void take_step(struct steps *steps) {
    unsigned kind = steps_byte(steps);
    if (take_put(steps, kind))
        return;
    send_put();
    switch (kind) {
    case DO_DEAF: deaf = !deaf; break;
    case DO_PASS: pass(100 * (uint64_t)steps_byte(steps)); break;
    case DO_FEED: feed_all(FEED, false); break;
    case DO_CUT: feed_all(0, true); break;
    case DO_STALL:
        stalled = !stalled;
        wake_all();
        break;
    case DO_END:
        if (origin_fd >= 0)
            shutdown(origin_fd, SHUT_WR);
        break;
    case DO_LEAVE: leave(&calls[steps_byte(steps) % CALLS]); break;
    default:
        if (kind >= DO_CALL && kind < DO_CALL + 16)
            start_call(kind - DO_CALL);
    }
}

static void connect_origin(unsigned flags) {
    int pair[2], small = 1;
    struct address remote;
    ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    if (flags & FLAG_SMALL)
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    origin_fd = pair[0];
    struct connection *connection = connection_new(&lab->net, &pair[1], NULL, NULL);
    ASSERT(connection != NULL && address_parse(&remote, SLICE("127.0.0.1:1"), 0));
    connection_note_remote(connection, &remote);
    origin_pool_give(connections, SLICE("origin"), ORIGIN_HTTP2, &connection, 5000, 10);
}

static void begin(unsigned flags) {
    memset(seen, 0, sizeof seen);
    endpoint_begin(&origin);
    got = 0;
    highest = 0;
    preface_seen = bare = deaf = false;
    stalled = flags & FLAG_STALL;
    connect_origin(flags);
}

static bool any_call(void) {
    bool any = false;
    for (unsigned i = 0; i < CALLS; i++)
        any |= calls[i].used;
    return any;
}

/* Everything ends by itself: calls by their deadlines, the connection by its own or by the origin's
 * end. */
static void finish(void) {
    send_put();
    deaf = stalled = false;
    feed_all(LARGE, false);
    wake_all();
    client_lab_run(lab);
    for (unsigned hour = 0; hour < 50 && any_call(); hour++)
        pass(3600000);
    ASSERT(!any_call());
    pass(3600000);
    close(origin_fd);
    origin_fd = -1;
    for (unsigned i = 0; i < 3; i++)
        pass(3600000);
    ASSERT(lab->net.counters.origin_http2_connections_open == 0 && lab->net.buffer_bytes == 0);
    endpoint_end(&origin);
}

static void start_lab(void) {
    lab = client_lab_open("origin { http2_budget = 300  http2_window = 16KB  http2_streams = 10  "
                          "first_byte_timeout = 5s }\n");
    client_lab_hang_up(lab);
    lab->net.resolver = resolver_new(&lab->net);
    ASSERT(lab->net.resolver != NULL && egress_prepare(&lab->net));
    connections = origin_pool_new(&lab->net, &origin_http1_class, &origin_http2_class);
    lab->peer = origin_turn;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct steps steps = steps_of(data, size);
    unsigned flags = steps_byte(&steps);
    if (lab == NULL)
        start_lab();
    begin(flags);
    for (unsigned count = 1; !steps_end(&steps); count++) {
        take_step(&steps);
        if (count % STEPS_AT_ONCE == 0)
            send_put();
    }
    finish();
    return 0;
}
