/*
 * The connection of a client that speaks HTTP/2, as a whole, through a socketpair: session,
 * streams, exchanges, bodies and tunnels, with an origin that answers as the path of a request says.
 *
 * The input is a byte of flags (enum run_flags) and then steps. A step is a byte below 0x20, which
 * is the type of a frame, and its flags, its stream, its length and its content, a byte each but the
 * last; or another byte of enum step_kind. So most inputs are frames of the right length, and the
 * fuzzer finds sequences rather than lengths.
 *
 * What must hold: we send SETTINGS first, frames that are not too long, heads that can be decoded,
 * nothing for a stream that the client has not opened or that we have ended, and never more data
 * than the windows allow. A stream ends with END_STREAM only when its client has got each byte of
 * the body. Last streams of GOAWAY never rise. Once all bodies have ended, time alone ends every
 * request and the connection, and nothing is left over.
 */
#include "client_lab.h"
#include "endpoint.h"

#include "http2/client/exchange.h"
#include "http2/hpack_encode.h"

#include <string.h>

enum run_flags {
    FLAG_BARE = 1, /* not even the preface is sent by itself, and nothing of the above is checked */
    FLAG_UNREAD = 2, /* bodies of requests are not read */
    FLAG_NO_ACK = 4, /* our SETTINGS are not acknowledged */
    FLAG_SHUT = 8,   /* windows of streams begin with nothing */
    FLAG_REVERSE = 16,
    FLAG_HANG_UP = 32, /* the client goes away in the end, rather than wait */
};

enum step_kind {
    DO_RUN = 0x20, /* what was put is sent; so it is after eight steps */
    DO_DEAF,       /* the client reads nothing from here on, or does again */
    DO_PASS,       /* a byte: so many tenths of a second pass */
    DO_COMPLETE,   /* open bodies end as they should; */
    DO_CUT,        /* they break off; */
    DO_GROW,       /* or they grow */
    DO_DRAIN,
    DO_END, /* the client sends nothing more */
    DO_ABORT,
    DO_RAW,            /* a length, and bytes that are sent as they are */
    DO_REQUEST = 0x30, /* to 0x37, with bits of enum ask_bits: a stream, and a byte for its path */
};

enum ask_bits { ASK_BODY = 1, ASK_POST = 2, ASK_CONNECT = 4 };

enum { STREAMS = ENDPOINT_STREAMS, LARGE = 40000, GROWTH = 7000, HELD = 4, STEPS_AT_ONCE = 8 };

/* A stream as its client sees it. */
struct seen {
    bool opened, head, ended, reset;
    bool answered, whole; /* `length` bytes make the body; nothing but bytes of a tunnel is sent */
    bool tunnel;
    uint64_t length, got;
};

/* A body that is still being written, and a tunnel that sends back what comes. */
struct held_body {
    struct body *body;
    uint32_t id;
};

struct echo {
    struct duplex *duplex;
    struct asked *asked;
    struct task task;
    char bytes[3000];
    size_t begin, end;
};

static struct client_lab *lab;
static struct seen seen[STREAMS];
static struct held_body bodies[HELD];
static struct echo echoes[HELD];
static struct endpoint client;
static uint32_t highest, last_named;
static bool bare, unanswered;

/* The origin */

static void expect(struct asked *asked, uint64_t length, bool whole) {
    struct exchange *exchange = asked->exchange;
    if (!slice_equal(exchange->version, SLICE("2.0")))
        return;
    uint32_t id = http2_exchange_of(exchange)->stream.id;
    if (id < STREAMS) {
        seen[id].answered = true;
        seen[id].whole = whole;
        seen[id].length = exchange->is_head ? 0 : length;
    }
}

static void reply_bytes(struct asked *asked, size_t length, int64_t announced) {
    char *text = xmalloc(length + 1);
    memset(text, 'x', length);
    asked->reply.status = 200;
    asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\nA: b\r\n");
    asked->reply.body = body_of_bytes(slice_make(text, length));
    asked->reply.length = announced;
    free(text);
    expect(asked, length, true);
    asked_reply_so(asked);
}

static void grow(struct body *body) {
    size_t room, left = GROWTH;
    while (left > 0) {
        char *at = body_room(body, &room);
        room = room < left ? room : left;
        memset(at, 'y', room);
        body_grow(body, room);
        left -= room;
    }
}

static void reply_open(struct asked *asked, struct held_body *held) {
    asked->reply.status = 200;
    asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\n");
    asked->reply.length = -1;
    asked->reply.body = body_new(NULL, BODY_SHARED, -1);
    held->body = body_reference(asked->reply.body);
    held->id = 0;
    if (slice_equal(asked->exchange->version, SLICE("2.0")))
        held->id = http2_exchange_of(asked->exchange)->stream.id;
    grow(held->body);
    expect(asked, GROWTH, false);
    asked_reply_so(asked);
}

static void reply_parts(struct asked *asked) {
    static const struct reply_part parts[] = {{{"--a\r\n\r\n", 7}, 10, 20},
                                              {{"\r\n--a\r\n\r\n", 9}, 1, 1},
                                              {{"\r\n--a\r\n\r\n", 9}, 0, 6000}};
    asked->reply.parts = parts;
    asked->reply.part_count = 3;
    asked->reply.tail = SLICE("\r\n--a--\r\n");
    asked->reply.status = 206;
    asked->reply.stored = SLICE("HTTP/1.1 206 Partial\r\n");
    asked->reply.length = 7 + 20 + 9 + 1 + 9 + 6000 + 9;
    char text[6000];
    memset(text, 'x', sizeof text);
    asked->reply.body = body_of_bytes(slice_make(text, sizeof text));
    expect(asked, (uint64_t)asked->reply.length, true);
    asked_reply_so(asked);
}

static void send_interim(struct asked *asked) {
    struct http_head head;
    http_head_init(&head);
    head.status = 103;
    http_head_add(&head, SLICE("Link"), SLICE("</a>; rel=preload"));
    exchange_interim(asked->exchange, &head);
}

static void echo_close(struct echo *echo) {
    task_cancel(&echo->task);
    duplex_close(&echo->duplex);
    echo->duplex = NULL;
    asked_finish(echo->asked);
}

static void echo_on_wake(struct task *task) {
    struct echo *echo = CONTAINER_OF(task, struct echo, task);
    for (;;) {
        size_t count;
        enum io_status status;
        if (echo->begin < echo->end) {
            struct slice rest = slice_make(echo->bytes + echo->begin, echo->end - echo->begin);
            status = duplex_write(echo->duplex, rest, &count);
            echo->begin += count;
        } else {
            status = duplex_read(echo->duplex, echo->bytes, sizeof echo->bytes, &count);
            echo->begin = 0;
            echo->end = status == IO_DONE ? count : 0;
        }
        if (status == IO_WAIT)
            return;
        if (status == IO_END)
            duplex_finish(echo->duplex);
        if (status != IO_DONE) {
            echo_close(echo);
            return;
        }
    }
}

static void open_echo(struct asked *asked, struct echo *echo) {
    struct http_head head;
    http_head_init(&head);
    head.status = 200;
    if (slice_equal(asked->exchange->version, SLICE("2.0"))) {
        uint32_t id = http2_exchange_of(asked->exchange)->stream.id;
        if (id < STREAMS)
            seen[id].tunnel = true;
    }
    echo->begin = echo->end = 0;
    echo->duplex = exchange_open_tunnel(asked->exchange, &head, asked->exchange->upgrade);
    if (echo->duplex == NULL)
        return;
    task_init(&echo->task, echo_on_wake);
    echo->asked = asked;
    asked->exchange->waker = NULL; /* the tunnel is told what happens */
    echo->duplex->waker = &echo->task;
    loop_defer(&lab->loop, &echo->task);
}

static struct echo *free_echo(void) {
    for (unsigned i = 0; i < HELD; i++)
        if (echoes[i].duplex == NULL)
            return &echoes[i];
    return NULL;
}

static struct held_body *free_body(void) {
    for (unsigned i = 0; i < HELD; i++)
        if (bodies[i].body == NULL)
            return &bodies[i];
    return NULL;
}

static void reply_target(struct asked *asked) {
    struct exchange *exchange = asked->exchange;
    bool wrong = exchange->error_status != 0 || exchange->body_failed;
    expect(asked, wrong ? 2 : exchange->request.target.length, true);
    asked_reply_target(asked);
}

static void answer(struct asked *asked) {
    static const struct slice trailers = {"C: d\r\n", 6};
    struct exchange *exchange = asked->exchange;
    struct slice target = exchange->request.target;
    struct echo *echo = free_echo();
    struct held_body *held = free_body();
    bool tunnel =
        exchange->request.method_id == HTTP_METHOD_CONNECT || exchange->upgrade.length > 0;
    if (exchange->error_status != 0 || target.length == 0) {
        reply_target(asked);
        return;
    }
    if (tunnel && echo != NULL) {
        open_echo(asked, echo);
        return;
    }
    switch (target.base[target.length - 1]) {
    case 'n': unanswered = true; return;
    case 'b': reply_bytes(asked, LARGE, LARGE); return;
    case 'u': reply_bytes(asked, LARGE, -1); return;
    case 'e': reply_bytes(asked, 0, -1); return;
    case 'a': exchange_abort(exchange); return;
    case 'p': reply_parts(asked); return;
    case 't':
        asked->reply.trailers = &trailers;
        reply_bytes(asked, 100, -1);
        return;
    case 'o':
        if (held != NULL) {
            reply_open(asked, held);
            return;
        }
    /* fallthrough */
    case 'i': send_interim(asked);
    /* fallthrough */
    default: reply_target(asked);
    }
}

static void end_bodies(enum body_state how) {
    for (unsigned i = 0; i < HELD; i++) {
        if (bodies[i].body == NULL)
            continue;
        body_finish(bodies[i].body, how);
        if (bodies[i].id < STREAMS)
            seen[bodies[i].id].whole = how == BODY_COMPLETE;
        body_release(&bodies[i].body);
    }
}

static void grow_bodies(void) {
    for (unsigned i = 0; i < HELD; i++) {
        if (bodies[i].body == NULL)
            continue;
        grow(bodies[i].body);
        if (bodies[i].id < STREAMS)
            seen[bodies[i].id].length += GROWTH;
    }
}

/* What the client sees */

static struct seen *seen_of(uint32_t id) {
    ASSERT(id % 2 == 1 && id < STREAMS);
    return &seen[id];
}

static void see_end(struct seen *stream) {
    ASSERT(stream->head);
    stream->ended = true;
    ASSERT(stream->tunnel || !stream->answered || (stream->whole && stream->got == stream->length));
}

static void see_head(const struct hpack_list *list) {
    struct seen *stream = seen_of(client.block_of.stream);
    bool ended = client.block_of.flags & HTTP2_END_STREAM;
    ASSERT(stream->opened && !stream->ended && !stream->reset);
    ASSERT(list->count > 0 && (list->fields[0].pseudo == HPACK_STATUS) == !stream->head);
    for (unsigned i = 1; i < list->count; i++)
        ASSERT(list->fields[i].pseudo == HPACK_NONE);
    bool interim = !stream->head && list->fields[0].value.base[0] == '1';
    ASSERT(ended || !stream->head);
    ASSERT(!interim || !ended);
    stream->head |= !interim;
    if (ended)
        see_end(stream);
}

static void see_data(const struct http2_frame *frame) {
    struct seen *stream = seen_of(frame->stream);
    ASSERT(stream->head && !stream->ended && !stream->reset);
    stream->got += frame->length;
    ASSERT(stream->tunnel || stream->got <= stream->length);
    if (frame->flags & HTTP2_END_STREAM)
        see_end(stream);
}

static void see_frame(const struct http2_frame *frame, struct slice payload) {
    const struct hpack_list *list = endpoint_see(&client, frame, payload);
    if (list != NULL)
        see_head(list);
    switch (frame->type) {
    case HTTP2_DATA: see_data(frame); break;
    case HTTP2_RST_STREAM:
        ASSERT(frame->stream <= highest);
        seen_of(frame->stream)->reset = true;
        break;
    case HTTP2_GOAWAY:
        ASSERT(http2_get32(payload.base) <= last_named);
        last_named = http2_get32(payload.base);
        break;
    case HTTP2_WINDOW_UPDATE: ASSERT(frame->stream <= highest); break;
    default: break;
    }
}

/* Looks at the whole frames that have come. */
static void see_all(void) {
    struct slice received = slice_make(lab->received, bare ? 0 : lab->got), payload;
    struct http2_frame frame;
    while (endpoint_next(&received, &frame, &payload))
        see_frame(&frame, payload);
    memmove(lab->received, received.base, received.length);
    lab->got = received.length;
}

/* What the client does */

static void put_frame(unsigned type, unsigned flags, uint32_t stream, struct slice payload) {
    endpoint_put_frame(&client, type, flags, stream, payload);
    if (type == HTTP2_HEADERS && stream < STREAMS) {
        seen[stream].opened = true;
        highest = stream > highest ? stream : highest;
    }
}

static void put_request(unsigned bits, uint32_t stream, char path) {
    char text[100], target[] = {'/', path};
    char *at = hpack_put_method(text, bits & ASK_CONNECT ? SLICE("CONNECT")
                                      : bits & ASK_POST  ? SLICE("POST")
                                                         : SLICE("GET"));
    if (!(bits & ASK_CONNECT)) {
        at = hpack_put_scheme(at, SLICE("http"));
        at = hpack_put_path(at, slice_make(target, 2));
    }
    at = hpack_put_authority(at, SLICE("h:80"));
    put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | (bits & ASK_BODY ? 0 : HTTP2_END_STREAM), stream,
              slice_make(text, (size_t)(at - text)));
}

static void send_put(void) {
    struct slice bytes = endpoint_take_put(&client);
    if (!client_lab_is_closed(lab) && !lab->ended)
        client_lab_send_bytes(lab, bytes);
    client_lab_run(lab);
    see_all();
}

static void pass(uint64_t milliseconds) {
    lab->loop.now += milliseconds;
    lab->loop.now_nanoseconds += milliseconds * 1000000;
    timers_run(&lab->loop.timers, lab->loop.now);
    client_lab_run(lab);
    see_all();
}

static void take_frame(struct steps *steps, unsigned type) {
    unsigned flags = steps_byte(steps);
    uint32_t stream = steps_byte(steps);
    put_frame(type, flags, stream, steps_bytes(steps));
}

static void take_step(struct steps *steps) {
    unsigned kind = steps_byte(steps);
    if (kind < DO_RUN) {
        take_frame(steps, kind);
        return;
    }
    if (kind >= DO_REQUEST && kind < DO_REQUEST + 8) {
        uint32_t stream = steps_byte(steps);
        put_request(kind - DO_REQUEST, stream, (char)steps_byte(steps));
        return;
    }
    if (kind == DO_RAW) {
        endpoint_put(&client, steps_bytes(steps));
        bare = true;
        return;
    }
    send_put();
    switch (kind) {
    case DO_DEAF: lab->deaf = !lab->deaf; break;
    case DO_PASS: pass(100 * (uint64_t)steps_byte(steps)); break;
    case DO_COMPLETE: end_bodies(BODY_COMPLETE); break;
    case DO_CUT: end_bodies(BODY_FAILED); break;
    case DO_GROW: grow_bodies(); break;
    case DO_DRAIN: clients_drain(&lab->clients); break;
    case DO_END:
        if (!lab->ended)
            client_lab_end(lab);
        break;
    case DO_ABORT: clients_abort(&lab->clients); break;
    }
}

static void begin(unsigned flags) {
    memset(seen, 0, sizeof seen);
    endpoint_begin(&client);
    highest = 0;
    last_named = HTTP2_STREAM_MOST;
    unanswered = false;
    bare = flags & FLAG_BARE;
    lab->wait_for_body = !(flags & FLAG_UNREAD);
    lab->reverse = flags & FLAG_REVERSE;
    lab->deaf = false;
    client_lab_connect(lab);
    if (bare)
        return;
    endpoint_put(&client, HTTP2_PREFACE);
    endpoint_put_setting(&client, HTTP2_SETTING_INITIAL_WINDOW_SIZE,
                         flags & FLAG_SHUT ? 0 : HTTP2_WINDOW_DEFAULT);
    if (!(flags & FLAG_NO_ACK))
        put_frame(HTTP2_SETTINGS, HTTP2_ACK, 0, SLICE(""));
}

static void check_over(void) {
    for (unsigned i = 0; i < HELD; i++)
        ASSERT(echoes[i].duplex == NULL);
    ASSERT(lab->open == 0 && lab->clients.connection_count == 0 && lab->total.count == 0);
    ASSERT(lab->net.buffer_bytes == 0 && lab->net.counters.client_http2_streams_open == 0);
    ASSERT(lab->net.counters.client_http2_connections_open == 0);
}

static bool has_tunnels(void) {
    bool any = false;
    for (unsigned i = 0; i < HELD; i++)
        any |= echoes[i].duplex != NULL;
    return any;
}

/* Everything ends by itself, but for requests that have no answer, and tunnels, which their users
 * end. */
static void finish(unsigned flags) {
    uint64_t hours = 1;
    send_put();
    lab->deaf = false;
    while (!(flags & FLAG_HANG_UP) && hours < 6) {
        end_bodies(BODY_COMPLETE);
        pass(hours++ * 3600000);
    }
    end_bodies(BODY_COMPLETE);
    if (!(flags & FLAG_HANG_UP) && !unanswered && !has_tunnels())
        check_over();
    client_lab_hang_up(lab);
    while (hours < 9)
        pass(hours++ * 3600000);
    check_over();
    endpoint_end(&client);
    lab->logged = 0;
}

static void start_lab(void) {
    lab = client_lab_open("map \"/\" { origin = \"http://h\" }\nclient { http2_streams = 10  "
                          "http2_window = 16KB  http2_budget = 300\n"
                          "    http2_connection_window = 64KB  max_head = 4KB\n"
                          "    header_timeout = 2s  send_timeout = 5s  body_timeout = 3s }\n");
    lab->answer = answer;
    client_lab_hang_up(lab);
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
    finish(flags);
    return 0;
}
