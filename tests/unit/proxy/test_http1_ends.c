/* How an HTTP/1 client's connection ends: in time, drained, broken off, or taken over as a tunnel. */
#include "client_lab.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define END  "Host: h\r\n\r\n"
#define GET  "GET /a HTTP/1.1\r\n" END
#define POST "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"
#define TIMES                                                                                      \
    "client { header_timeout = \"1s\"  idle_timeout = \"10s\"  body_timeout = \"100s\"  "          \
    "send_timeout = \"1000s\"  min_rate = 0 }\n"

/* What the client has sent, how long it is waited for more, and what it gets in the end. */
static const struct {
    const char *sent;
    uint64_t milliseconds;
    const char *log;
    bool counted;
} waits[] = {
    {"", 10000, "", false},
    {"G", 1000, "", true},
    {"GET /a HTTP/1.1\r\nHost: h\r\n", 1000, "", true},
    {GET, 10000, "GET /a\nsent\n", false},
    {GET "G", 1000, "GET /a\nsent\n", true},
    {POST "abc", 100000, "POST /a 3:abc timed out\nsent\n", true},
    {"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", 100000,
     "POST /a 2:ab timed out\nsent\n", true},
};

START_TEST(clients_have_so_much_time) {
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct client_lab *lab = client_lab_open(TIMES);
        client_lab_send(lab, waits[i].sent);
        client_lab_pass(lab, waits[i].milliseconds - 500);
        ck_assert_msg(!lab->ended, "%s", waits[i].sent);
        client_lab_pass(lab, waits[i].milliseconds);
        ck_assert_msg(lab->ended, "%s", waits[i].sent);
        ck_assert_str_eq(client_lab_logged(lab), waits[i].log);
        ck_assert_msg(lab->net.counters.client_timeouts == waits[i].counted, "%s", waits[i].sent);
        client_lab_close(lab);
    }
}
END_TEST

/* Each byte that comes gives a body more time; a head has to be there within its own. */
START_TEST(bodies_may_come_slowly_and_heads_not) {
    struct client_lab *lab = client_lab_open(TIMES);
    client_lab_send(lab, POST);
    for (int i = 0; i < 9; i++) {
        client_lab_pass(lab, 99000);
        client_lab_send(lab, "x");
    }
    ck_assert_str_eq(client_lab_logged(lab), "POST /a 9:xxxxxxxxx\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* Half a second is given, and as much for each byte that has come. */
START_TEST(clients_have_a_least_rate) {
    const char *const sent[] = {"GET ", POST "abcd"};
    const char *const logged[] = {"", "POST /a 4:abcd timed out\nsent\n"};
    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        struct client_lab *lab =
            client_lab_open("client { min_rate = 2  min_rate_after = \"500ms\" }\n");
        client_lab_send(lab, sent[i]);
        client_lab_pass(lab, 2400);
        ck_assert(!lab->ended);
        client_lab_pass(lab, 2600);
        ck_assert(lab->ended);
        ck_assert_str_eq(client_lab_logged(lab), logged[i]);
        ck_assert_uint_eq(lab->net.counters.client_too_slow, 1);
        client_lab_close(lab);
    }
}
END_TEST

/* Nothing that the client could do is awaited: the transaction takes its time. */
static void do_not_answer(struct asked *asked) {
    (void)asked;
}

START_TEST(a_transaction_may_take_its_time) {
    struct client_lab *lab = client_lab_open(TIMES);
    lab->answer = do_not_answer;
    client_lab_send(lab, GET);
    client_lab_pass(lab, 100000000);
    ck_assert(!lab->ended);
    asked_reply_target(lab->last);
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\nsent\n");
    client_lab_close(lab);
}
END_TEST

static struct body *large;

static void answer_large(struct asked *asked) {
    asked->reply = (struct reply){.status = 200,
                                  .stored = SLICE("HTTP/1.1 200 OK\r\n"),
                                  .body = body_reference(large),
                                  .length = (int64_t)body_length(large)};
    asked_reply_so(asked);
}

/* It is there before the client reads any of it. */
static struct client_lab *open_large(void) {
    static char bytes[3 << 20];
    struct client_lab *lab = client_lab_open(TIMES);
    large = body_of_many_bytes(slice_make(bytes, sizeof bytes));
    lab->answer = answer_large;
    lab->deaf = true;
    client_lab_send(lab, GET);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\n");
    return lab;
}

START_TEST(a_client_that_takes_nothing_is_cut) {
    struct client_lab *lab = open_large();
    client_lab_pass(lab, 999000);
    ck_assert_str_eq(client_lab_logged(lab), "");
    client_lab_pass(lab, 1000000);
    ck_assert_str_eq(client_lab_logged(lab), "aborted\n");
    ck_assert_uint_eq(lab->net.counters.client_timeouts, 1);
    body_release(&large);
    client_lab_close(lab);
}
END_TEST

START_TEST(a_client_that_takes_some_is_not) {
    struct client_lab *lab = open_large();
    for (int i = 0; i < 20; i++) {
        client_lab_pass(lab, 999000);
        client_lab_take(lab, 100000);
    }
    ck_assert_str_eq(client_lab_logged(lab), "");
    lab->deaf = false;
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "sent\n");
    body_release(&large);
    client_lab_close(lab);
}
END_TEST

START_TEST(drained_connections_end_with_their_requests) {
    struct client_lab *lab = client_lab_open("");
    client_lab_send(lab, GET);
    client_lab_logged(lab);
    clients_drain(&lab->clients); /* it is idle */
    client_lab_run(lab);
    ck_assert(client_lab_is_closed(lab));
    client_lab_close(lab);

    lab = client_lab_open("");
    lab->answer = do_not_answer;
    client_lab_send(lab, GET);
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(!lab->ended);
    asked_reply_target(lab->last);
    client_lab_run(lab);
    ck_assert_ptr_nonnull(strstr(client_lab_received(lab), "Connection: close\r\n"));
    ck_assert(client_lab_is_closed(lab));
    client_lab_close(lab);

    lab = client_lab_open(""); /* a head that has begun is awaited */
    client_lab_send(lab, "GET /a HTTP/1.1\r\n");
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(!lab->ended);
    client_lab_send(lab, END);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\nsent\n");
    ck_assert(client_lab_is_closed(lab));
    client_lab_close(lab);
}
END_TEST

START_TEST(aborted_connections_end_at_once) {
    static const char *const states[] = {"", "G", GET, GET "G", POST, POST "abc"};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct client_lab *lab = client_lab_open("");
        client_lab_send(lab, states[i]);
        clients_abort(&lab->clients);
        client_lab_run(lab);
        ck_assert_msg(client_lab_is_closed(lab), "%s", states[i]);
        client_lab_close(lab);
    }
    struct client_lab *lab = client_lab_open("");
    lab->answer = do_not_answer;
    client_lab_send(lab, GET);
    clients_abort(&lab->clients);
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\naborted\n");
    client_lab_close(lab);
}
END_TEST

/* RFC 9112 §9.6: what the client still sends is read away, so that it sees the reply. */
START_TEST(what_is_still_sent_is_read_away) {
    static char bytes[100000];
    struct client_lab *lab = client_lab_open("");
    lab->wait_for_body = false;
    client_lab_send(lab, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(client_lab_received(lab), "\r\n\r\n/a"));
    ck_assert(lab->ended && !lab->reset);
    for (int i = 0; i < 10; i++)
        client_lab_send_bytes(lab, slice_make(bytes, sizeof bytes));
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_end(lab);
    ck_assert_uint_eq(lab->clients.connection_count, 0);
    client_lab_close(lab);
}
END_TEST

START_TEST(it_is_not_read_away_for_ever) {
    static char bytes[100000];
    struct client_lab *lab = client_lab_open("");
    lab->wait_for_body = false;
    client_lab_send(lab, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n");
    client_lab_pass(lab, 1900);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_pass(lab, 2100);
    ck_assert_uint_eq(lab->clients.connection_count, 0);

    client_lab_connect(lab);
    client_lab_send(lab, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n");
    for (int i = 0; i < 12; i++)
        client_lab_send_bytes(lab, slice_make(bytes, sizeof bytes));
    ck_assert_uint_eq(lab->clients.connection_count, 0);
    client_lab_close(lab);
}
END_TEST

static struct duplex *tunnel;

static void open_tunnel(struct asked *asked) {
    struct http_head head;
    bool upgrade = asked->exchange->upgrade.length > 0;
    http_head_init(&head);
    head.version = 11;
    head.status = upgrade ? 101 : 200;
    head.reason = SLICE("So be it");
    tunnel = exchange_open_tunnel(asked->exchange, &head, upgrade ? SLICE("websocket") : SLICE(""));
    ck_assert_ptr_nonnull(tunnel);
}

static const struct {
    const char *request, *reply;
} tunnels[] = {
    {"CONNECT a:1 HTTP/1.1\r\n" END, "HTTP/1.1 200 So be it\r\n\r\n"},
    {"GET /a HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" END,
     "HTTP/1.1 101 So be it\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
};

/* The transaction has the connection as bytes both ways, and is done with the exchange last. */
START_TEST(connections_are_taken_over_as_tunnels) {
    for (size_t i = 0; i < COUNT_OF(tunnels); i++) {
        struct client_lab *lab = client_lab_open("");
        char text[16];
        size_t count;
        lab->answer = open_tunnel;
        client_lab_put(lab, slice_from(tunnels[i].request));
        client_lab_send(lab, "early"); /* RFC 9110 §9.3.6 */
        ck_assert_str_eq(client_lab_received(lab), tunnels[i].reply);
        ck_assert_int_eq(duplex_read(tunnel, text, sizeof text, &count), IO_DONE);
        ck_assert(slice_equal(slice_make(text, count), SLICE("early")));
        client_lab_send(lab, "later");
        ck_assert_int_eq(duplex_read(tunnel, text, sizeof text, &count), IO_DONE);
        ck_assert(slice_equal(slice_make(text, count), SLICE("later")));
        ck_assert_int_eq(duplex_write(tunnel, SLICE("back"), &count), IO_DONE);
        client_lab_run(lab);
        ck_assert_str_eq(client_lab_received(lab), "back");
        client_lab_pass(lab, 100000000); /* the protocol's timers are over */
        ck_assert(!lab->ended);
        duplex_close(&tunnel);
        asked_finish(lab->last);
        client_lab_run(lab);
        ck_assert(client_lab_is_closed(lab));
        client_lab_close(lab);
    }
}
END_TEST

/* The connections of all workers together have a bound. */
START_TEST(connections_are_counted) {
    struct client_total total = {0};
    ck_assert(client_total_add(&total, 2) && client_total_add(&total, 2));
    ck_assert(!client_total_add(&total, 2));
    ck_assert_uint_eq(total.count, 2);
    ck_assert(client_total_add(&total, 3));
}
END_TEST

/* Of two the one that has taken less is cut. */
START_TEST(the_slowest_one_is_cut) {
    for (int quick = 0; quick < 2; quick++) {
        struct client_lab *lab = open_large();
        int first = lab->fd;
        if (quick == 0)
            client_lab_take(lab, 1000000);
        lab->fd = -1;
        client_lab_connect(lab);
        client_lab_send(lab, GET);
        if (quick == 1)
            client_lab_take(lab, 1000000);
        lab->net.pressure = NET_FULL;
        lab->loop.now_nanoseconds += UINT64_C(3000000000);
        ck_assert(clients_lack_memory(&lab->clients));
        client_lab_run(lab);
        ck_assert_str_eq(client_lab_logged(lab), "GET /a\naborted\n");
        lab->deaf = false; /* the second takes all of it, or has been cut */
        client_lab_run(lab);
        ck_assert_str_eq(client_lab_logged(lab), quick == 1 ? "sent\n" : "");
        close(first);
        body_release(&large);
        client_lab_close(lab);
    }
}
END_TEST

/* Where connections hold too much, what is new is refused, and the slowest is cut. */
START_TEST(the_slowest_makes_way_when_memory_is_short) {
    struct client_lab *lab = open_large();
    lab->net.pressure = NET_FULL;
    ck_assert(clients_lack_memory(&lab->clients));
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), ""); /* it is too young */
    lab->loop.now_nanoseconds += UINT64_C(3000000000);
    ck_assert(clients_lack_memory(&lab->clients));
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "aborted\n");
    ck_assert_uint_eq(lab->net.counters.client_memory_shed, 1);
    client_lab_connect(lab);
    lab->deaf = false;
    lab->net.pressure = NET_FULL;
    client_lab_send(lab, GET);
    ck_assert_int_eq(strncmp(client_lab_received(lab), "HTTP/1.1 503 ", 13), 0);
    ck_assert_str_eq(client_lab_logged(lab), "");
    ck_assert(lab->ended);
    body_release(&large);
    client_lab_close(lab);
}
END_TEST

static void answer_repeated(struct asked *asked) {
    ck_assert(asked->exchange->background);
    ck_assert(!http_head_has(&asked->exchange->request, HTTP_RANGE)); /* it is to be stored */
    asked_reply_target(asked);
}

static void repeat(struct asked *asked) {
    asked->lab->answer = answer_repeated;
    ck_assert(exchange_repeat_in_background(asked->exchange, slice_from("")));
    asked_reply_target(asked);
}

/* For a refresh: the request once more, for nobody. */
START_TEST(a_request_is_repeated_in_the_background) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = repeat;
    client_lab_send(lab, "GET /a HTTP/1.1\r\nRange: bytes=0-1\r\n" END);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\nGET /a\nsent\nsent\n");
    ck_assert_str_eq(client_lab_received(lab), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/a");
    ck_assert_uint_eq(lab->net.counters.client_requests, 1);
    client_lab_close(lab);
}
END_TEST

Suite *http1_ends_suite(void) {
    const TTest *const tests[] = {clients_have_so_much_time,
                                  bodies_may_come_slowly_and_heads_not,
                                  clients_have_a_least_rate,
                                  a_transaction_may_take_its_time,
                                  a_client_that_takes_nothing_is_cut,
                                  a_client_that_takes_some_is_not,
                                  drained_connections_end_with_their_requests,
                                  aborted_connections_end_at_once,
                                  what_is_still_sent_is_read_away,
                                  it_is_not_read_away_for_ever,
                                  connections_are_taken_over_as_tunnels,
                                  connections_are_counted,
                                  the_slowest_one_is_cut,
                                  the_slowest_makes_way_when_memory_is_short,
                                  a_request_is_repeated_in_the_background};
    return suite_of("http1_ends", tests, COUNT_OF(tests));
}
