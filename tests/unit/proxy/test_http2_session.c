/* A session of HTTP/2 and the exchanges that it carries, driven frame by frame from the client's side:
 * what ends, what waits, and what the client may not do. */
#include "client_lab.h"

#include "client/http2/exchange.h"
#include "http2/frame.h"
#include "http2/hpack_encode.h"

#include <stdlib.h>
#include <string.h>

/* What is sent next. */
static char wire[1 << 20], *end;
/* What has come, and where the next frame begins. */
static size_t taken;
static struct http2_frame frame;
static struct slice payload;

static void put_frame(enum http2_frame_type type, unsigned flags, uint32_t stream,
                      struct slice bytes) {
    end = http2_frame_write(end, bytes.length, type, flags, stream);
    end = slice_put(end, bytes);
}

static void put_settings(uint16_t id, uint32_t value) {
    end = http2_frame_write(end, HTTP2_SETTING_SIZE, HTTP2_SETTINGS, 0, 0);
    end = http2_frame_put_setting(end, id, value);
}

static void put_request_of(uint32_t stream, const char *method, const char *path, unsigned flags) {
    char block[1024], *at = hpack_put_method(block, slice_from(method));
    if (strcmp(method, "CONNECT") != 0) {
        at = hpack_put_scheme(at, SLICE("http"));
        at = hpack_put_path(at, slice_from(path));
    }
    at = hpack_put_authority(at, SLICE("h:80"));
    put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | flags, stream,
              slice_make(block, (size_t)(at - block)));
}

static void put_get(uint32_t stream) {
    put_request_of(stream, "GET", "/a", HTTP2_END_STREAM);
}

static void put_update(uint32_t stream, uint32_t bytes) {
    end = http2_frame_put_window_update(end, stream, bytes);
}

static void send_all(struct client_lab *lab) {
    struct slice bytes = slice_make(wire, (size_t)(end - wire));
    end = wire;
    client_lab_send_bytes(lab, bytes);
}

/* A client whose SETTINGS have one entry; ours are acknowledged. */
static struct client_lab *open_with(const char *settings, uint16_t id, uint32_t value) {
    struct client_lab *lab = client_lab_open(settings);
    taken = 0;
    end = slice_put(wire, HTTP2_PREFACE);
    put_settings(id, value);
    put_frame(HTTP2_SETTINGS, HTTP2_ACK, 0, SLICE(""));
    send_all(lab);
    return lab;
}

static struct client_lab *open_plain(const char *settings) {
    return open_with(settings, HTTP2_SETTING_ENABLE_PUSH, 0);
}

/* The next frame that has come; false: there is none. */
static bool next_frame(struct client_lab *lab) {
    if (lab->got - taken < HTTP2_FRAME_HEAD)
        return false;
    http2_frame_read(&frame, lab->received + taken);
    if (lab->got - taken < HTTP2_FRAME_HEAD + frame.length)
        return false;
    payload = slice_make(lab->received + taken + HTTP2_FRAME_HEAD, frame.length);
    taken += HTTP2_FRAME_HEAD + frame.length;
    return true;
}

/* Goes to the next frame of that type and stream; false: none comes. */
static bool find_frame(struct client_lab *lab, enum http2_frame_type type, uint32_t stream) {
    while (next_frame(lab))
        if (frame.type == type && frame.stream == stream)
            return true;
    return false;
}

/* Time passes, and the loop's clock with it. */
static void pass(struct client_lab *lab, uint64_t milliseconds) {
    lab->loop.now += milliseconds;
    lab->loop.now_nanoseconds += milliseconds * 1000000;
    timers_run(&lab->loop.timers, lab->loop.now);
    client_lab_run(lab);
}

static size_t body_size;

/* Replies with a body of body_size bytes, of a length that is not announced. */
static void answer_bytes(struct asked *asked) {
    char *text = xmalloc(body_size + 1);
    memset(text, 'x', body_size);
    asked->reply.status = 200;
    asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\n");
    asked->reply.body = body_of_bytes(slice_make(text, body_size));
    asked->reply.length = -1;
    free(text);
    asked_reply_so(asked);
}

static void answer_nothing(struct asked *asked) {
    (void)asked;
}

static void answer_unless_missing(struct asked *asked) {
    if (!slice_equal(asked->exchange->request.target, SLICE("http://h:80/miss")))
        asked_reply_target(asked);
}

START_TEST(answers) {
    struct client_lab *lab = open_plain("");
    put_get(1);
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_HEADERS, 1));
    ck_assert(find_frame(lab, HTTP2_DATA, 1));
    ck_assert(frame.flags & HTTP2_END_STREAM);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* The smallest max_head is less than the table of HPACK. */
START_TEST(a_small_max_head_is_enough) {
    char block[300], *at = hpack_put_method(block, SLICE("GET"));
    struct client_lab *lab = open_plain("client { max_head = 1KB }\n");
    put_get(1);
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
    /* a block of less than 1 KB, of a list of more: ":method: GET" again and again */
    memset(at, (unsigned char)*block, 200);
    put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | HTTP2_END_STREAM, 3,
              slice_make(block, (size_t)(at - block) + 200));
    put_get(5);
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_HEADERS, 3));
    ck_assert(find_frame(lab, HTTP2_HEADERS, 5));
    client_lab_close(lab);
}
END_TEST

/* A client that reads nothing, when its connection has been there for a while, is given up. */
START_TEST(a_client_that_takes_nothing_is_given_up) {
    struct client_lab *lab =
        open_with("client { header_timeout = 1s  send_timeout = 5s  idle_timeout = 1h }\n",
                  HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = answer_bytes;
    body_size = 4 << 20;
    put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    lab->answer = answer_nothing;
    put_get(1);
    send_all(lab);
    pass(lab, 4000000); /* all that was due before has been looked at */
    lab->deaf = true;
    lab->answer = answer_bytes;
    put_get(3);
    send_all(lab);
    client_lab_logged(lab);
    pass(lab, 5001);
    ck_assert_uint_eq(lab->clients.connection_count, 0);
    ck_assert_str_eq(client_lab_logged(lab), "aborted\naborted\n");
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.8: "Endpoints MUST NOT increase the value they send in the last stream identifier,
 * since the peers might already have retried unprocessed requests on another connection." */
START_TEST(a_drain_names_the_last_request_that_is_answered) {
    static const char pong[HTTP2_PING_SIZE] = "drain";
    struct client_lab *lab = open_plain("");
    lab->answer = answer_nothing;
    put_get(1);
    send_all(lab);
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(payload.base), HTTP2_STREAM_MOST);
    put_get(3); /* it was under way */
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nGET http://h:80/a\n");
    put_frame(HTTP2_PING, HTTP2_ACK, 0, slice_make(pong, sizeof pong));
    put_request_of(5, "POST", "/a", 0); /* too late */
    put_frame(HTTP2_DATA, HTTP2_END_STREAM, 5, SLICE("late"));
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(payload.base), 3);
    ck_assert_str_eq(client_lab_logged(lab), "");
    put_frame(HTTP2_RST_STREAM, 0, 1, slice_make("\0\0\0\10", 4));
    put_frame(HTTP2_RST_STREAM, 0, 3, slice_make("\0\0\0\10", 4));
    send_all(lab);
    while (find_frame(lab, HTTP2_GOAWAY, 0))
        ck_assert_uint_le(http2_get32(payload.base), 3);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.9.1: "Frames with zero length with the END_STREAM flag set (that is, an empty DATA
 * frame) MAY be sent if there is no available space in either flow-control window." */
START_TEST(an_end_needs_no_window) {
    struct client_lab *lab = open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0);
    lab->answer = answer_bytes;
    body_size = 0;
    put_get(1);
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* The window may let through exactly one part of a multipart body. */
static void answer_parts(struct asked *asked) {
    static const struct reply_part parts[] = {{{"--a\r\n\r\n", 7}, 2, 20},
                                              {{"\r\n--a\r\n\r\n", 9}, 0, 10}};
    asked->reply.parts = parts;
    asked->reply.part_count = 2;
    asked->reply.tail = SLICE("\r\n--a--\r\n");
    asked->reply.status = 206;
    asked->reply.stored = SLICE("HTTP/1.1 206 Partial Content\r\n");
    asked->reply.length = 27 + 19 + 9;
    asked->reply.body = body_of_bytes(SLICE("0123456789012345678901234567890"));
    asked_reply_so(asked);
}

START_TEST(parts_of_a_body_may_end_where_the_window_does) {
    for (uint32_t window = 0; window <= 55; window++) {
        uint32_t length = 0;
        struct client_lab *lab = open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, window);
        lab->answer = answer_parts;
        put_get(1);
        send_all(lab);
        put_update(1, 55);
        send_all(lab);
        ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
        while (find_frame(lab, HTTP2_DATA, 1))
            length += frame.length;
        ck_assert_uint_eq(length, 55);
        client_lab_close(lab);
    }
}
END_TEST

/* RFC 7541 §4.2: "a change in the maximum size of the dynamic table ... MUST occur at the beginning of
 * the first header block following the change to the dynamic table size". */
START_TEST(the_first_block_says_that_there_is_no_table) {
    struct client_lab *lab = open_with("", HTTP2_SETTING_HEADER_TABLE_SIZE, 0);
    put_get(1);
    put_get(3);
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_HEADERS, 1));
    ck_assert_int_eq(payload.base[0], 0x20);
    ck_assert(find_frame(lab, HTTP2_HEADERS, 3));
    ck_assert_int_eq((unsigned char)payload.base[0], 0x88);
    client_lab_close(lab);
}
END_TEST

/* A stream that waited for the window of the connection and was given up does not count any more. */
START_TEST(a_window_that_nobody_waits_for_may_stay_shut) {
    struct client_lab *lab = open_plain("client { header_timeout = 1s  send_timeout = 5s }\n");
    lab->answer = answer_bytes;
    body_size = 100000;
    put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, 1000000);
    put_get(1);
    send_all(lab);
    put_frame(HTTP2_RST_STREAM, 0, 1, slice_make("\0\0\0\10", 4));
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\naborted\n");
    pass(lab, 6000);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §5.2.2: an endpoint "MUST read and process HTTP/2 frames from the TCP receive buffer as soon
 * as data is available". Otherwise two ends that wait for one another to read wait for ever. */
START_TEST(frames_are_read_while_a_reply_is_not_taken) {
    struct client_lab *lab = open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = answer_bytes;
    body_size = 4 << 20;
    put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    lab->deaf = true;
    put_get(1);
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\n");
    ck_assert_uint_gt(lab->net.buffer_bytes, 10000); /* what it does not take counts */
    lab->answer = answer_nothing;
    put_get(3);
    send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\n");
    lab->deaf = false;
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "sent\n");
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §5.1: "An endpoint that sends a RST_STREAM frame on a stream ... MUST ignore frames that it
 * receives on closed streams after it has sent a RST_STREAM frame." */
START_TEST(bodies_of_all_refused_uploads_may_be_under_way) {
    enum { UPLOADS = 128 };
    struct client_lab *lab = open_plain("");
    lab->wait_for_body = false;
    for (uint32_t i = 0; i < UPLOADS; i++)
        put_request_of(2 * i + 1, "POST", "/a", 0);
    send_all(lab);
    for (uint32_t i = 0; i < UPLOADS; i++)
        put_frame(HTTP2_DATA, HTTP2_END_STREAM, 2 * i + 1, SLICE("late"));
    send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_protocol_errors, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

/* So much time has passed for the budget of the connection, which the clock of the loop does not know. */
static void age(struct client_lab *lab, uint64_t milliseconds) {
    struct client_connection *client =
        CONTAINER_OF(list_first(&lab->clients.connections), struct client_connection, link);
    CONTAINER_OF(client, struct http2_connection, client)->session.budget_filled -= milliseconds;
}

/* A client that sends so many streams at a time, of which some are answered and some are reset at once;
 * so much time passes after each time. Returns the number of streams that it has opened when the
 * connection ends, or all. */
static unsigned mix(struct client_lab *lab, unsigned all, unsigned answered, unsigned reset,
                    uint64_t milliseconds) {
    uint32_t id = 1;
    lab->answer = answer_unless_missing;
    lab->wait_for_body = false;
    while (id < 2 * all && lab->net.counters.client_http2_calmed == 0) {
        for (unsigned i = 0; i < answered; i++, id += 2)
            put_get(id);
        for (unsigned i = 0; i < reset; i++, id += 2) {
            put_request_of(id, "GET", "/miss", HTTP2_END_STREAM);
            put_frame(HTTP2_RST_STREAM, 0, id, slice_make("\0\0\0\10", 4));
        }
        put_update(0, 16 * answered + 1); /* the bodies */
        send_all(lab);
        if (lab->net.counters.client_http2_calmed == 0)
            age(lab, milliseconds);
        lab->got = taken = 0;
        lab->logged = 0;
    }
    return id / 2;
}

/* Requests that are answered from the cache do not pay for those that are reset (CVE-2023-44487). */
START_TEST(answers_do_not_pay_for_a_flood_of_resets) {
    for (unsigned answered = 1; answered <= 9; answered += 2) {
        struct client_lab *lab = open_plain("client { max_requests = 0 }\n");
        unsigned streams = mix(lab, 20000, answered, 1, 1);
        ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
        ck_assert_uint_lt(streams / (answered + 1), 1000); /* resets, in less than a second */
        client_lab_close(lab);
    }
    struct client_lab *lab = open_plain("client { max_requests = 0 }\n");
    ck_assert_uint_lt(mix(lab, 20000, 1, 1, 0), 2000);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

/* The same after a long time in good order. */
START_TEST(a_good_past_does_not_pay_for_a_flood_of_resets) {
    struct client_lab *lab = open_plain("client { max_requests = 0 }\n");
    mix(lab, 5000, 10, 0, 100);
    age(lab, 600000);
    unsigned resets = 0;
    for (uint32_t id = 10001; lab->net.counters.client_http2_calmed == 0; id += 4, resets++) {
        put_get(id);
        put_request_of(id + 2, "GET", "/miss", HTTP2_END_STREAM);
        put_frame(HTTP2_RST_STREAM, 0, id + 2, slice_make("\0\0\0\10", 4));
        put_update(0, 16);
        send_all(lab);
        lab->got = taken = 0;
    }
    ck_assert_uint_le(resets, 1000);
    client_lab_close(lab);
}
END_TEST

/* A page whose user scrolls: a fifth of 400 requests a second is cancelled, for ten seconds; and a
 * caller that cancels every other of 200 calls a second, for five minutes. */
START_TEST(who_cancels_much_and_uses_more_goes_on) {
    struct client_lab *lab = open_plain("client { max_requests = 0 }\n");
    mix(lab, 4000, 32, 8, 100);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    client_lab_close(lab);
    lab = open_plain("client { max_requests = 0 }\n");
    mix(lab, 60000, 10, 10, 100);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

/* The bytes that were under way when their upload was answered cost nothing, in however many frames. */
START_TEST(what_was_under_way_of_answered_uploads_costs_nothing) {
    enum { UPLOADS = 20, FRAMES = 50 };
    static const char bytes[1000];
    struct client_lab *lab = open_plain("client { http2_budget = 100 }\n");
    lab->wait_for_body = false;
    for (uint32_t i = 0; i < UPLOADS; i++)
        put_request_of(2 * i + 1, "POST", "/a", 0);
    send_all(lab);
    for (uint32_t i = 0; i < UPLOADS * FRAMES; i++)
        put_frame(HTTP2_DATA, 0, 2 * (i / FRAMES) + 1, slice_make(bytes, sizeof bytes));
    send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    /* what can't have been under way does cost */
    for (uint32_t i = 0; i < 3 * UPLOADS * FRAMES; i++) {
        put_frame(HTTP2_DATA, 0, 1, slice_make(bytes, sizeof bytes));
        if (i % FRAMES == 0)
            send_all(lab);
    }
    send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.8: "Receivers of a GOAWAY frame MUST NOT open additional streams on the connection". It
 * says nothing of those that its sender opens: a client may ask on. */
START_TEST(a_client_that_says_goaway_may_ask_on) {
    static const char goaway[HTTP2_GOAWAY_SIZE];
    struct client_lab *lab = open_plain("");
    lab->answer = answer_nothing;
    put_get(1);
    put_frame(HTTP2_GOAWAY, 0, 0, slice_make(goaway, sizeof goaway));
    send_all(lab);
    lab->answer = asked_reply_target;
    put_get(3);
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_DATA, 3));
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(payload.base), HTTP2_STREAM_MOST);
    put_frame(HTTP2_RST_STREAM, 0, 1, slice_make("\0\0\0\10", 4));
    send_all(lab);
    pass(lab, 2000);
    ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(payload.base), 3);
    client_lab_close(lab);
    /* without a request that is under way, the connection ends */
    lab = open_plain("");
    put_frame(HTTP2_GOAWAY, 0, 0, slice_make(goaway, sizeof goaway));
    send_all(lab);
    ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
    client_lab_close(lab);
}
END_TEST

/* A tunnel beside other streams. */
static struct duplex *tunnel;
static struct task tunnel_task;
static unsigned tunnel_wakes;
static size_t tunnel_put;

static void tunnel_on_wake(struct task *task) {
    (void)task;
    size_t put;
    tunnel_wakes++;
    while (tunnel_put < 4 && duplex_write(tunnel, SLICE("t"), &put) == IO_DONE)
        tunnel_put += put;
}

static void answer_tunnel(struct asked *asked) {
    static struct http_head head;
    if (asked->exchange->request.method_id != HTTP_METHOD_CONNECT) {
        answer_bytes(asked);
        return;
    }
    http_head_init(&head);
    head.status = 200;
    tunnel_wakes = 0;
    tunnel_put = 0;
    task_init(&tunnel_task, tunnel_on_wake);
    tunnel = exchange_open_tunnel(asked->exchange, &head, SLICE(""));
    tunnel->waker = &tunnel_task;
    loop_defer(&asked->lab->loop, &tunnel_task);
}

START_TEST(a_tunnel_whose_window_is_shut_sleeps) {
    struct client_lab *lab = open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0);
    lab->answer = answer_tunnel;
    put_request_of(1, "CONNECT", "", 0);
    client_lab_put(lab, slice_make(wire, (size_t)(end - wire)));
    end = wire;
    for (int i = 0; i < 50; i++) {
        timer_set(&lab->loop.timers, &lab->now, 0);
        loop_run_once(&lab->loop);
    }
    ck_assert_uint_gt(tunnel_wakes, 0);
    ck_assert_uint_lt(tunnel_wakes, 10);
    put_update(1, 4);
    send_all(lab);
    ck_assert_uint_eq(tunnel_put, 4);
    duplex_close(&tunnel);
    client_lab_close(lab);
}
END_TEST

START_TEST(a_download_leaves_a_tunnel_its_turns) {
    struct client_lab *lab = open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = answer_tunnel;
    body_size = 6 << 20;
    put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    put_get(1);
    put_request_of(3, "CONNECT", "", 0);
    lab->deaf = true;
    send_all(lab);
    while (tunnel_put < 4 && lab->got < (3 << 20)) {
        client_lab_take(lab, 65536);
        lab->got += 65536;
    }
    ck_assert_uint_eq(tunnel_put, 4);
    lab->got = 0;
    duplex_close(&tunnel);
    client_lab_close(lab);
}
END_TEST

/* A client may answer each frame of data by two updates of windows and a PING, as some do. */
START_TEST(who_takes_what_we_send_may_say_so) {
    struct client_lab *lab = open_plain("client { http2_budget = 100 }\n");
    size_t got = 0;
    lab->answer = answer_bytes;
    body_size = 4 << 20;
    put_get(1);
    send_all(lab);
    while (find_frame(lab, HTTP2_DATA, 1)) {
        got += frame.length;
        if (frame.length > 0) {
            put_update(1, frame.length);
            put_update(0, frame.length);
            put_frame(HTTP2_PING, 0, 0, SLICE("bandwidt"));
        }
        send_all(lab);
    }
    ck_assert_uint_eq(got, body_size);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    client_lab_close(lab);
}
END_TEST

/* A reader that asked once, and then looks after something else. */
static struct source *upload;
static struct task upload_task;

static void upload_on_wake(struct task *task) {
    (void)task;
}

static void answer_later(struct asked *asked) {
    char buffer[16];
    size_t got;
    task_init(&upload_task, upload_on_wake);
    upload = exchange_body(asked->exchange);
    source_set_waker(upload, &upload_task);
    ck_assert_int_eq(source_read(upload, buffer, sizeof buffer, &got), SOURCE_WAIT);
}

START_TEST(a_client_is_not_blamed_for_a_slow_reader) {
    struct client_lab *lab = open_plain("client { body_timeout = 5s  min_rate = 1MB }\n");
    char buffer[16];
    size_t got;
    lab->wait_for_body = false;
    lab->answer = answer_later;
    put_request_of(1, "POST", "/a", 0);
    send_all(lab);
    put_frame(HTTP2_DATA, 0, 1, SLICE("hello"));
    send_all(lab);
    pass(lab, 50000);
    lab->loop.now_nanoseconds += UINT64_C(50000000000);
    ck_assert_int_eq(source_read(upload, buffer, sizeof buffer, &got), SOURCE_DATA);
    ck_assert_int_eq(source_read(upload, buffer, sizeof buffer, &got), SOURCE_WAIT);
    ck_assert(!lab->last->exchange->body_failed);
    put_frame(HTTP2_RST_STREAM, 0, 1, slice_make("\0\0\0\10", 4));
    source_close(&upload);
    send_all(lab);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.9: what is dropped, padding, and what waits in a stream that ends, comes back to the
 * window of the connection. */
static int64_t connection_window;
/* And of the one stream whose window is of interest. */
static uint32_t noted_stream;
static int64_t noted_window;

static void note_updates(struct client_lab *lab) {
    while (next_frame(lab)) {
        if (frame.type != HTTP2_WINDOW_UPDATE)
            continue;
        if (frame.stream == 0)
            connection_window += http2_get32(payload.base);
        else if (frame.stream == noted_stream)
            noted_window += http2_get32(payload.base);
    }
    lab->got = taken = 0;
}

START_TEST(the_window_of_the_connection_comes_back) {
    static const char zeros[16000];
    struct client_lab *lab =
        open_plain("client { http2_connection_window = 128KB  http2_budget = 100000 }\n");
    connection_window = HTTP2_WINDOW_DEFAULT;
    note_updates(lab);
    ck_assert_int_eq(connection_window, 128 << 10);
    lab->wait_for_body = false;
    for (uint32_t id = 1; id < 2000; id += 2) {
        char padded[16001];
        bool refused = id % 3 == 0, read = id % 7 == 0;
        lab->wait_for_body = read;
        lab->answer = id % 5 == 0 ? answer_nothing : asked_reply_target;
        put_request_of(id, "POST", refused ? "a" : "/a", 0);
        put_frame(HTTP2_DATA, 0, id, slice_make(zeros, 16000));
        memset(padded, 0, sizeof padded);
        padded[0] = (char)200;
        put_frame(HTTP2_DATA, HTTP2_PADDED | (read ? HTTP2_END_STREAM : 0), id,
                  slice_make(padded, 201 + id % 11));
        connection_window -= 16000 + 201 + id % 11;
        ck_assert_int_ge(connection_window, 0);
        send_all(lab);
        if (!read && id % 5 == 0)
            put_frame(HTTP2_RST_STREAM, 0, id, slice_make("\0\0\0\10", 4));
        else if (lab->last != NULL)
            asked_finish(lab->last);
        send_all(lab);
        note_updates(lab);
    }
    ck_assert_int_ge(connection_window, 64 << 10);
    ck_assert_int_le(connection_window, 128 << 10);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

enum { UPLOAD_WINDOW = 256 << 10, UPLOADS_WINDOW = 1 << 20 };

/* A client's connection whose uploads may wait up to UPLOAD_WINDOW each. */
static struct client_lab *open_for_uploads(void) {
    struct client_lab *lab =
        open_plain("client { http2_window = 256KB  http2_connection_window = 1MB"
                   "  body_timeout = 5s }\n");
    connection_window = HTTP2_WINDOW_DEFAULT;
    noted_stream = 0;
    note_updates(lab);
    ck_assert_int_eq(connection_window, UPLOADS_WINDOW);
    return lab;
}

static void put_bytes(struct client_lab *lab, uint32_t id, size_t bytes) {
    static const char zeros[HTTP2_FRAME_SIZE_DEFAULT];
    put_frame(HTTP2_DATA, 0, id, slice_make(zeros, bytes));
    send_all(lab);
    connection_window -= (int64_t)bytes;
    noted_window -= id == noted_stream ? (int64_t)bytes : 0;
    note_updates(lab);
}

/* Opens uploads that nobody reads, the first of them `id`, and sends so many bytes in all. */
static void stall_uploads(struct client_lab *lab, uint32_t id, size_t bytes) {
    lab->wait_for_body = false;
    lab->answer = answer_nothing;
    for (; bytes > 0; id += 2) {
        size_t left = bytes < UPLOAD_WINDOW ? bytes : UPLOAD_WINDOW;
        bytes -= left;
        put_request_of(id, "POST", "/stalled", 0);
        for (; left > 0; left -= left < 16384 ? left : 16384)
            put_bytes(lab, id, left < 16384 ? left : 16384);
    }
}

/* Opens an upload that is read at once. */
static void open_read_upload(struct client_lab *lab, uint32_t id) {
    lab->wait_for_body = true;
    noted_stream = id;
    noted_window = UPLOAD_WINDOW;
    put_request_of(id, "POST", "/read", 0);
    send_all(lab);
    note_updates(lab);
}

/* Sends so many bytes of it as the windows let them through, which never stop it. */
static void go_on_uploading(struct client_lab *lab, size_t bytes) {
    while (bytes > 0) {
        int64_t most = connection_window < noted_window ? connection_window : noted_window;
        ck_assert_msg(most > 0, "%zu bytes are left, the windows are %ld and %ld", bytes,
                      (long)connection_window, (long)noted_window);
        size_t piece = bytes < 16384 ? bytes : 16384;
        piece = (int64_t)piece < most ? piece : (size_t)most;
        put_bytes(lab, noted_stream, piece);
        bytes -= piece;
    }
}

static void end_read_upload(struct client_lab *lab) {
    put_frame(HTTP2_DATA, HTTP2_END_STREAM, noted_stream, SLICE(""));
    lab->answer = asked_reply_target;
    client_lab_logged(lab);
    send_all(lab);
    ck_assert(strstr(client_lab_logged(lab), "\nsent\n") != NULL);
}

/* What waits for its reader takes its part of the connection's window. What is left of it, however
 * little, is enough for the others to go on. */
START_TEST(uploads_that_wait_stop_no_others) {
    static const size_t held[] = {0,
                                  300000,
                                  3 * UPLOAD_WINDOW,
                                  UPLOADS_WINDOW - 16384,
                                  UPLOADS_WINDOW - 100,
                                  UPLOADS_WINDOW - 1};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        struct client_lab *lab = open_for_uploads();
        stall_uploads(lab, 1, held[i]);
        open_read_upload(lab, 99);
        go_on_uploading(lab, held[i] > UPLOADS_WINDOW - 1000 ? 1000 : UPLOADS_WINDOW);
        end_read_upload(lab);
        ck_assert_int_le(connection_window, UPLOADS_WINDOW - (int64_t)held[i]);
        client_lab_close(lab);
    }
}
END_TEST

/* Bytes that were read, too few for an update, may be all that the others leave. */
START_TEST(uploads_that_wait_later_stop_no_others) {
    struct client_lab *lab = open_for_uploads();
    open_read_upload(lab, 1);
    go_on_uploading(lab, 200000);
    stall_uploads(lab, 3, UPLOADS_WINDOW - 200000);
    lab->wait_for_body = true;
    go_on_uploading(lab, UPLOADS_WINDOW);
    end_read_upload(lab);
    client_lab_close(lab);
}
END_TEST

/* A client that our window stops is not too slow, also if that takes longer than body_timeout. When the
 * window has grown, its time goes on. */
START_TEST(a_client_is_not_blamed_for_a_shut_window) {
    struct client_lab *lab = open_for_uploads();
    lab->wait_for_body = true;
    lab->answer = asked_reply_target;
    put_request_of(1, "POST", "/patient", 0);
    send_all(lab);
    stall_uploads(lab, 3, UPLOADS_WINDOW);
    ck_assert_int_eq(connection_window, 0);
    lab->wait_for_body = true;
    lab->answer = asked_reply_target;
    client_lab_logged(lab);
    for (uint64_t time = _i ? 6000 : 0; time > 0 && time < 48000; time += 6000)
        pass(lab, time);
    ck_assert_str_eq(client_lab_logged(lab), "");
    put_frame(HTTP2_RST_STREAM, 0, 3, slice_make("\0\0\0\10", 4));
    send_all(lab);
    note_updates(lab);
    ck_assert_int_gt(connection_window, 0);
    client_lab_logged(lab);
    pass(lab, _i ? 45000 : 3000);
    ck_assert_str_eq(client_lab_logged(lab), "");
    pass(lab, _i ? 60000 : 20000);
    ck_assert_str_eq(client_lab_logged(lab), "POST http://h:80/patient 0: timed out\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* Nanoseconds. */
static const uint64_t second = UINT64_C(1000000000);

/* The client's own silence, before a time in which it can't send and behind it, counts. */
START_TEST(a_shut_window_forgives_no_more_than_its_time) {
    struct settings settings = {.client = {.body_timeout = 60000}};
    struct body_clock clock = {0};
    settings.client.min_rate = 1000;
    settings.client.min_rate_after = 10000;
    ck_assert_uint_eq(body_clock_forgive(&clock, &settings, 7 * second, 100 * second), 0);
    ck_assert_uint_eq(body_clock_wait(&clock, &settings, 100 * second), 10000);
    ck_assert_uint_eq(body_clock_forgive(&clock, &settings, 9 * second, 106 * second), 2000);
    ck_assert_uint_eq(body_clock_wait(&clock, &settings, 106 * second), 6000);
    ck_assert_uint_eq(body_clock_forgive(&clock, &settings, 12 * second, 110 * second), 3000);
    body_clock_got(&clock, 110 * second);
    ck_assert_uint_eq(body_clock_forgive(&clock, &settings, 20 * second, 120 * second), 0);
    ck_assert_uint_eq(body_clock_wait(&clock, &settings, 120 * second), 5000);
}
END_TEST

/* Others do not keep a body open for ever. */
START_TEST(a_shut_window_forgives_for_some_time) {
    struct settings settings = {.client = {.body_timeout = 5000}};
    struct body_clock clock = {0};
    uint64_t forgiven = 0;
    body_clock_wait(&clock, &settings, second);
    for (unsigned i = 1; i < 100; i++)
        forgiven += body_clock_forgive(&clock, &settings, i * second, second + i * second);
    ck_assert_uint_eq(forgiven, 50000);
}
END_TEST

/* Empty frames need no window, so that as many as one likes might come. */
START_TEST(empty_ends_of_a_stream_that_was_cut_cost) {
    struct client_lab *lab = open_plain("client { http2_budget = 100 }\n");
    lab->wait_for_body = false;
    put_request_of(1, "POST", "/a", 0);
    send_all(lab);
    for (unsigned i = 0; i < 50; i++)
        put_frame(HTTP2_DATA, HTTP2_END_STREAM, 1, SLICE(""));
    send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    for (unsigned i = 0; i < 200; i++)
        put_frame(HTTP2_DATA, HTTP2_END_STREAM, 1, SLICE(""));
    send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

/* Of a head that does not end, no more is kept than a head may need that is answered with 431, and
 * while memory is short no more than one that is good. */
START_TEST(a_head_that_does_not_end_holds_little) {
    static const char zeros[1000], many[16000];
    for (unsigned full = 0; full < 2; full++) {
        struct client_lab *lab = open_plain("client { max_head = 8KB }\n");
        lab->net.pressure = full ? NET_FULL : NET_EASY;
        put_frame(HTTP2_HEADERS, 0, 1, slice_make(zeros, sizeof zeros));
        for (unsigned i = 1; i < 4; i++)
            put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(zeros, sizeof zeros));
        send_all(lab);
        ck_assert_uint_eq(lab->clients.connection_count, 1);
        ck_assert(!find_frame(lab, HTTP2_GOAWAY, 0));
        put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(many, full ? 4000 : sizeof many));
        send_all(lab);
        ck_assert(!find_frame(lab, HTTP2_GOAWAY, 0));
        put_frame(HTTP2_CONTINUATION, 0, 1, slice_make(many, full ? 1000 : sizeof many));
        send_all(lab);
        ck_assert(find_frame(lab, HTTP2_GOAWAY, 0));
        ck_assert_uint_eq(http2_get32(payload.base + 4), HTTP2_ENHANCE_YOUR_CALM);
        client_lab_close(lab);
    }
}
END_TEST

/* Sequences of frames by chance, most of which are good: nothing is left over, and nobody waits for
 * ever. RETORT_ROUNDS in the environment: so many sequences. */
static unsigned rounds(void) {
    const char *wanted = getenv("RETORT_ROUNDS");
    return wanted != NULL ? (unsigned)atoi(wanted) : 40;
}

static unsigned chance;

static unsigned any(unsigned below) {
    chance = chance * 1103515245u + 12345u;
    return (chance >> 8) % below;
}

static struct body *open_body;

static void answer_by_chance(struct asked *asked) {
    static const struct slice trailers = {"A: b\r\n", 6};
    size_t room;
    switch (any(7)) {
    case 0: return;
    case 1:
        if (tunnel == NULL) {
            answer_tunnel(asked);
            return;
        }
    /* fallthrough */
    case 2:
        body_size = any(300000);
        answer_bytes(asked);
        return;
    case 3:
        asked->reply.trailers = &trailers;
        asked_reply_target(asked);
        return;
    case 4: exchange_abort(asked->exchange); return;
    case 5:
        asked->reply.status = 200;
        asked->reply.stored = SLICE("HTTP/1.1 200 OK\r\n");
        asked->reply.length = -1;
        asked->reply.body = body_new(NULL, BODY_SHARED, -1);
        if (open_body == NULL) {
            char *at = body_room(asked->reply.body, &room);
            memset(at, 'y', room);
            body_grow(asked->reply.body, room);
            open_body = body_reference(asked->reply.body);
        } else {
            body_finish(asked->reply.body, any(2) ? BODY_COMPLETE : BODY_FAILED);
        }
        asked_reply_so(asked);
        return;
    default: asked_reply_target(asked);
    }
}

/* The streams whose direction from the client has not ended. */
static uint32_t alive[32];
static unsigned alive_count;

static void open_by_chance(uint32_t id) {
    bool ended = any(2) || alive_count == 32;
    put_request_of(id,
                   any(3)   ? "POST"
                   : any(4) ? "GET"
                            : "CONNECT",
                   any(20) ? "/a" : "a", ended ? HTTP2_END_STREAM : 0);
    if (!ended)
        alive[alive_count++] = id;
}

static void put_by_chance(uint32_t *next) {
    static const char bytes[5000];
    unsigned at = alive_count > 0 ? any(alive_count) : 0;
    uint32_t id = alive_count > 0 ? alive[at] : 0;
    unsigned what = any(100);
    if (what < 30 || id == 0) {
        open_by_chance(*next);
        *next += 2;
    } else if (what < 70) {
        bool ended = any(4) == 0;
        put_frame(HTTP2_DATA, ended ? HTTP2_END_STREAM : 0, id, slice_make(bytes, any(5000)));
        if (ended)
            alive[at] = alive[--alive_count];
    } else if (what < 75) {
        put_frame(HTTP2_RST_STREAM, 0, id, slice_make("\0\0\0\10", 4));
        alive[at] = alive[--alive_count];
    } else if (what < 85) {
        put_update(any(2) ? 0 : id, 1 + any(100000));
    } else if (what < 92) {
        put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, any(3) * any(70000));
    } else if (what < 95) {
        put_frame(HTTP2_PING, 0, 0, SLICE("12345678"));
    } else if (what < 99) {
        put_frame(HTTP2_PRIORITY_UPDATE, 0, 0, SLICE("\0\0\0\1u=1, i"));
    } else if (any(4) == 0) {
        put_frame((enum http2_frame_type)any(20), any(256), any(*next), slice_make(bytes, any(20)));
    }
}

static void end_open_body(struct client_lab *lab) {
    if (open_body == NULL)
        return;
    body_finish(open_body, any(2) ? BODY_COMPLETE : BODY_FAILED);
    body_release(&open_body);
    client_lab_run(lab);
}

static void close_tunnel(void) {
    if (tunnel == NULL)
        return;
    task_cancel(&tunnel_task);
    duplex_close(&tunnel);
    tunnel = NULL;
}

START_TEST(frames_by_chance_leave_nothing) {
    unsigned last = rounds();
    unsigned steps = 0;
    for (unsigned round = 0; round < last; round++) {
        chance = round * 7919u + 1;
        struct client_lab *lab = open_plain("client { http2_streams = 20  http2_window = 16KB "
                                            "header_timeout = 1s  send_timeout = 5s }\n");
        uint32_t next = 1;
        alive_count = 0;
        lab->answer = answer_by_chance;
        for (unsigned step = 0; step < 60 && lab->clients.connection_count > 0; step++) {
            lab->wait_for_body = any(2);
            lab->deaf = any(4) == 0;
            for (unsigned i = any(6); i > 0; i--)
                put_by_chance(&next);
            send_all(lab);
            if (any(10) == 0)
                end_open_body(lab);
            if (any(10) == 0)
                close_tunnel();
            if (any(30) == 0)
                clients_drain(&lab->clients);
            if (any(10) == 0)
                pass(lab, any(3000));
            lab->got = taken = 0;
            steps++;
        }
        if (any(2))
            clients_abort(&lab->clients);
        client_lab_hang_up(lab);
        end_open_body(lab);
        close_tunnel();
        client_lab_run(lab);
        client_lab_close(lab);
    }
    ck_assert_uint_gt(steps, 10 * last); /* most connections have lived on */
}
END_TEST

static void answer_at_once(struct asked *asked) {
    static const struct slice trailers = {"A: b\r\n", 6};
    body_size = any(4) * any(60000);
    if (any(3) == 0)
        asked->reply.trailers = &trailers;
    answer_bytes(asked);
}

/* Whatever the windows were and whoever did not read for a while: each reply arrives as a whole. */
START_TEST(replies_arrive_whatever_the_windows_were) {
    unsigned last = rounds();
    for (unsigned round = 0; round < last; round++) {
        chance = round * 104729u + 1;
        struct client_lab *lab = open_plain("client { http2_budget = 100000 }\n");
        unsigned asked = 0, ends = 0;
        lab->answer = answer_at_once;
        lab->wait_for_body = false;
        taken = lab->got = 0;
        for (unsigned step = 0; step < 20; step++) {
            lab->deaf = any(4) == 0;
            for (unsigned i = any(5); i > 0; i--, asked++)
                put_get(2 * asked + 1);
            if (any(4) == 0)
                put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, any(3) * any(70000));
            if (any(3) == 0)
                put_update(0, 1 + any(30000));
            if (asked > 0 && any(2))
                put_update(1 + 2 * any(asked), 1 + any(30000));
            if (any(5) == 0)
                put_frame(HTTP2_PRIORITY_UPDATE, 0, 0, SLICE("\0\0\0\1u=1"));
            send_all(lab);
        }
        lab->deaf = false;
        put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, 1 << 29);
        put_update(0, 1 << 29);
        send_all(lab);
        ck_assert_uint_eq(lab->open, 0);
        while (next_frame(lab))
            ends += (frame.type == HTTP2_DATA || frame.type == HTTP2_HEADERS) &&
                    frame.flags & HTTP2_END_STREAM;
        ck_assert_uint_eq(ends, asked);
        client_lab_close(lab);
    }
}
END_TEST

Suite *http2_session_suite(void) {
    Suite *suite = suite_create("http2_session");
    TCase *tcase = tcase_create("session");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, answers);
    tcase_add_test(tcase, a_small_max_head_is_enough);
    tcase_add_test(tcase, a_client_that_takes_nothing_is_given_up);
    tcase_add_test(tcase, a_drain_names_the_last_request_that_is_answered);
    tcase_add_test(tcase, an_end_needs_no_window);
    tcase_add_test(tcase, parts_of_a_body_may_end_where_the_window_does);
    tcase_add_test(tcase, the_first_block_says_that_there_is_no_table);
    tcase_add_test(tcase, a_window_that_nobody_waits_for_may_stay_shut);
    tcase_add_test(tcase, frames_are_read_while_a_reply_is_not_taken);
    tcase_add_test(tcase, bodies_of_all_refused_uploads_may_be_under_way);
    tcase_add_test(tcase, answers_do_not_pay_for_a_flood_of_resets);
    tcase_add_test(tcase, a_good_past_does_not_pay_for_a_flood_of_resets);
    tcase_add_test(tcase, who_cancels_much_and_uses_more_goes_on);
    tcase_add_test(tcase, what_was_under_way_of_answered_uploads_costs_nothing);
    tcase_add_test(tcase, a_client_that_says_goaway_may_ask_on);
    tcase_add_test(tcase, a_tunnel_whose_window_is_shut_sleeps);
    tcase_add_test(tcase, a_download_leaves_a_tunnel_its_turns);
    tcase_add_test(tcase, who_takes_what_we_send_may_say_so);
    tcase_add_test(tcase, a_client_is_not_blamed_for_a_slow_reader);
    tcase_add_test(tcase, the_window_of_the_connection_comes_back);
    tcase_add_test(tcase, uploads_that_wait_stop_no_others);
    tcase_add_test(tcase, uploads_that_wait_later_stop_no_others);
    tcase_add_loop_test(tcase, a_client_is_not_blamed_for_a_shut_window, 0, 2);
    tcase_add_test(tcase, a_shut_window_forgives_no_more_than_its_time);
    tcase_add_test(tcase, a_shut_window_forgives_for_some_time);
    tcase_add_test(tcase, empty_ends_of_a_stream_that_was_cut_cost);
    tcase_add_test(tcase, a_head_that_does_not_end_holds_little);
    tcase_add_test(tcase, frames_by_chance_leave_nothing);
    tcase_add_test(tcase, replies_arrive_whatever_the_windows_were);
    suite_add_tcase(suite, tcase);
    return suite;
}
