/* HTTP/1 requests on their way to a transaction: heads, bodies, one behind the other. */
#include "client_lab.h"

#include <string.h>
#include <sys/socket.h>

#define HOST "Host: h\r\n"
#define END  HOST "\r\n"

/* What a transaction is told of the request. */
static const char *meaning(const struct exchange *exchange) {
    static char text[512];
    snprintf(
        text, sizeof text, "%.*s %.*s://%.*s body=%lld%s%s%s%s%.*s", (int)exchange->version.length,
        exchange->version.base, (int)exchange->scheme->name.length, exchange->scheme->name.base,
        (int)exchange->authority.length, exchange->authority.base, (long long)exchange->body_length,
        exchange->is_head ? " head" : "", exchange->takes_trailers ? " trailers" : "",
        exchange->expects_unknown ? " unknown" : "",
        exchange->upgrade.length > 0 ? " upgrade=" : "", (int)exchange->upgrade.length,
        exchange->upgrade.base);
    return text;
}

static char seen[512];

static void note_meaning(struct asked *asked) {
    struct exchange *exchange = asked->exchange;
    if (exchange->error_status != 0)
        snprintf(seen, sizeof seen, "%u", exchange->error_status);
    else
        snprintf(seen, sizeof seen, "%s", meaning(exchange));
    asked_reply_target(asked);
}

static const struct {
    const char *request, *meaning;
} requests[] = {
    {"GET / HTTP/1.1\r\n" END, "1.1 http://h body=0"},
    {"\r\nGET / HTTP/1.1\r\n" END, "1.1 http://h body=0"},
    {"GET http://a/b HTTP/1.1\r\n" END, "1.1 http://h body=0"},
    {"GET / HTTP/1.0\r\n\r\n", "1.0 http:// body=0"},
    {"GET / HTTP/1.0\r\n" END, "1.0 http://h body=0"},
    {"GET / HTTP/1.7\r\n" END, "1.1 http://h body=0"},
    {"HEAD / HTTP/1.1\r\n" END, "1.1 http://h body=0 head"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "1.1 http://h body=0"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "1.1 http://h body=3"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "1.1 http://h body=-1"},
    {"GET / HTTP/1.1\r\n" HOST "TE: trailers\r\nConnection: TE\r\n\r\n",
     "1.1 http://h body=0 trailers"},
    {"GET / HTTP/1.1\r\n" HOST "TE: trailers\r\n\r\n", "1.1 http://h body=0"},
    {"GET / HTTP/1.0\r\n" HOST "TE: trailers\r\nConnection: TE\r\n\r\n", "1.0 http://h body=0"},
    {"GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
     "1.1 http://h body=0 upgrade=websocket"},
    {"GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", "1.1 http://h body=0"},
    {"GET / HTTP/1.0\r\n" HOST "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
     "1.0 http://h body=0"},
    {"PUT / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
     "1.1 http://h body=1"},
    {"PUT / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 1\r\n\r\nx",
     "1.1 http://h body=1 unknown"},
    {"GET / HTTP/1.1\r\n\r\n", "400"},
    {"GET / HTTP/1.1\r\n" HOST END, "400"},
    {"GET / HTTP/2.0\r\n" END, "505"},
    {"GET  / HTTP/1.1\r\n" END, "400"},
    {"GET / HTTP/1.1\r\n" HOST "a : b\r\n\r\n", "400"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n", "400"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
};

START_TEST(requests_mean_the_same_however_they_come) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = note_meaning;
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const char *text = requests[i].request;
        size_t length = strlen(text);
        for (size_t cut = 0; cut < length; cut++) { /* 0: all at once */
            seen[0] = '\0';
            client_lab_connect(lab);
            client_lab_send_bytes(lab, slice_make(text, cut));
            client_lab_send_bytes(lab, slice_make(text + cut, length - cut));
            ck_assert_msg(strcmp(seen, requests[i].meaning) == 0, "%s, cut at %zu: %s", text, cut,
                          seen);
        }
    }
    client_lab_close(lab);
}
END_TEST

/* A client that leaves at any byte leaves nothing behind, which client_lab_close sees to. */
START_TEST(clients_may_leave_at_any_byte) {
    struct client_lab *lab = client_lab_open("");
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const char *text = requests[i].request;
        for (size_t cut = 0; cut < strlen(text); cut++) {
            client_lab_connect(lab);
            client_lab_send_bytes(lab, slice_make(text, cut));
            client_lab_hang_up(lab);
            ck_assert_msg(lab->clients.connection_count == 0, "%s, cut at %zu", text, cut);
            ck_assert_uint_eq(lab->open, 0);
        }
    }
    client_lab_close(lab);
}
END_TEST

START_TEST(heads_have_a_limit) {
    struct client_lab *lab = client_lab_open("client { max_head = \"1KB\" }\n");
    char text[2000];
    for (int field = 900; field < 1100; field++) {
        int length =
            snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "a: %*d\r\n\r\n", field, 7);
        client_lab_connect(lab);
        client_lab_send(lab, text);
        ck_assert_str_eq(
            client_lab_logged(lab),
            length <= 1024
                ? "GET /\nsent\n"
                : "431 the request head is larger than client.max_head or listen.max_head\nsent\n");
    }
    memset(text, 'a', sizeof text - 1); /* one that never ends */
    client_lab_connect(lab);
    client_lab_send_bytes(lab, slice_make(text, 1023));
    ck_assert_str_eq(client_lab_logged(lab), "");
    client_lab_send(lab, "aa");
    ck_assert_str_eq(
        client_lab_logged(lab),
        "431 the request head is larger than client.max_head or listen.max_head\nsent\n");
    client_lab_close(lab);
}
END_TEST

static const struct {
    const char *settings, *request;
    bool kept;
} keeping[] = {
    {"", "GET /a HTTP/1.1\r\n" END, true},
    {"", "GET /a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false},
    {"", "GET /a HTTP/1.1\r\n" HOST "Connection: x, CLOSE\r\n\r\n", false},
    {"", "GET /a HTTP/1.0\r\n" END, false},
    {"", "GET /a HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", true},
    {"", "CONNECT /a HTTP/1.1\r\n" END, false}, /* RFC 9110 §9.3.6: what follows is no request */
    {"", "POST /a HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", true},
    {"client { max_requests = 2 }\n", "GET /a HTTP/1.1\r\n" END, true},
    {"client { max_requests = 1 }\n", "GET /a HTTP/1.1\r\n" END, false},
};

START_TEST(connections_are_kept_or_not) {
    for (size_t i = 0; i < COUNT_OF(keeping); i++) {
        struct client_lab *lab = client_lab_open(keeping[i].settings);
        client_lab_send(lab, keeping[i].request);
        const char *reply = client_lab_received(lab);
        ck_assert_msg((strstr(reply, "Connection: close\r\n") == NULL) == keeping[i].kept, "%s: %s",
                      keeping[i].request, reply);
        bool old = strstr(keeping[i].request, "HTTP/1.0") != NULL;
        ck_assert((strstr(reply, "Connection: keep-alive\r\n") != NULL) ==
                  (old && keeping[i].kept));
        ck_assert_msg(client_lab_is_closed(lab) == !keeping[i].kept, "%s", keeping[i].request);
        if (keeping[i].kept) {
            client_lab_send(lab, "GET /b HTTP/1.1\r\n" END);
            ck_assert_ptr_nonnull(strstr(client_lab_received(lab), "\r\n\r\n/b"));
        }
        client_lab_close(lab);
    }
}
END_TEST

/* How often `part` is in the text. */
static unsigned occurrences(const char *text, const char *part) {
    unsigned count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* More than one turn serves, with bodies in between. */
START_TEST(requests_may_stand_behind_each_other) {
    static char text[64 * 1024], expected[64 * 1024];
    struct client_lab *lab = client_lab_open("");
    for (unsigned count = 1; count < 400; count += 57) {
        size_t at = 0, expect = 0;
        for (unsigned i = 0; i < count; i++) {
            static const char *const forms[] = {
                "GET /%u HTTP/1.1\r\n" END,
                "POST /%u HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nGET /",
                "POST /%u HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
            };
            static const char *const logs[] = {"GET /%u\nsent\n", "POST /%u 5:GET /\nsent\n",
                                               "POST /%u 3:abc\nsent\n"};
            at += (size_t)snprintf(text + at, sizeof text - at, forms[i % 3], i);
            expect += (size_t)snprintf(expected + expect, sizeof expected - expect, logs[i % 3], i);
        }
        lab->deaf = true; /* that there is room again must not be what they are served for */
        client_lab_send_bytes(lab, slice_make(text, at));
        ck_assert_str_eq(client_lab_logged(lab), expected);
        lab->deaf = false;
        client_lab_run(lab);
        ck_assert_uint_eq(occurrences(client_lab_received(lab), "HTTP/1.1 200 OK\r\n"), count);
    }
    client_lab_close(lab);
}
END_TEST

/* What the client's socket does not take waits, and is the same in the end. */
START_TEST(replies_to_many_wait_for_a_client_that_reads_none) {
    static char text[1 << 20], expected[1 << 20];
    size_t at = 0, expect = 0;
    struct client_lab *lab = client_lab_open("");
    for (unsigned i = 0; i < 600; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "GET /%0*u HTTP/1.1\r\n" END,
                               (int)(700 + i), i);
        expect += (size_t)snprintf(expected + expect, sizeof expected - expect,
                                   "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n/%0*u", 701 + i,
                                   (int)(700 + i), i);
    }
    lab->deaf = true;
    for (size_t sent = 0; sent < at;) {
        size_t piece = at - sent < 50000 ? at - sent : 50000;
        ssize_t put = send(lab->fd, text + sent, piece, MSG_DONTWAIT);
        sent += put > 0 ? (size_t)put : 0;
        client_lab_run(lab);
        lab->deaf = put > 0; /* neither side takes any more: now it reads */
    }
    lab->deaf = false;
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_received(lab), expected);
    client_lab_close(lab);
}
END_TEST

START_TEST(requests_behind_each_other_may_be_cut_anywhere) {
    static const char text[] =
        "GET /a HTTP/1.1\r\n" END "POST /b HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nGET /"
        "POST /c HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nX: y\r\n\r\n"
        "GET /d HTTP/1.1\r\n" END;
    struct client_lab *lab = client_lab_open("");
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        client_lab_send_bytes(lab, slice_make(text, cut));
        client_lab_send_bytes(lab, slice_make(text + cut, sizeof text - 1 - cut));
        ck_assert_str_eq(client_lab_logged(lab), "GET /a\nsent\nPOST /b 5:GET /\nsent\n"
                                                 "POST /c 3:abc\nsent\nGET /d\nsent\n");
    }
    client_lab_close(lab);
}
END_TEST

/* The reply to the first comes late: the second is not begun before that. */
static void do_not_answer(struct asked *asked) {
    (void)asked;
}

START_TEST(one_request_is_served_at_a_time) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = do_not_answer;
    client_lab_send(lab, "GET /a HTTP/1.1\r\n" END "GET /b HTTP/1.1\r\n" END);
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\n");
    lab->answer = asked_reply_target;
    asked_reply_target(lab->last);
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "sent\nGET /b\nsent\n");
    ck_assert_str_eq(client_lab_received(lab), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/a"
                                               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/b");
    client_lab_close(lab);
}
END_TEST

static const char large_head[] = "POST /l HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n";

START_TEST(large_bodies_pass_whole) {
    static char text[1000000];
    struct client_lab *lab = client_lab_open("");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    client_lab_put(lab, slice_from(large_head));
    client_lab_send_bytes(lab, slice_make(text, sizeof text));
    ck_assert_str_eq(client_lab_logged(lab), "POST /l 1000000:...\nsent\n");
    client_lab_close(lab);
}
END_TEST

static const struct {
    const char *request, *log;
} broken[] = {
    {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", "POST /a 3:abc failed\n"},
    {"POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
     "POST /a 3:abc failed\n"},
    {"POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nab",
     "POST /a 2:ab failed\n"},
};

START_TEST(a_body_that_breaks_off_has_failed) {
    struct client_lab *lab = client_lab_open("");
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        client_lab_connect(lab);
        client_lab_logged(lab);
        client_lab_send(lab, broken[i].request);
        ck_assert_str_eq(client_lab_logged(lab), "");
        client_lab_end(lab);
        ck_assert_int_eq(strncmp(client_lab_logged(lab), broken[i].log, strlen(broken[i].log)), 0);
        ck_assert_uint_eq(lab->open, 0);
    }
    client_lab_close(lab);
}
END_TEST

START_TEST(a_body_that_is_no_chunks_has_failed) {
    struct client_lab *lab = client_lab_open("");
    client_lab_send(lab, "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n");
    ck_assert_str_eq(client_lab_logged(lab), "POST /a 0: failed\nsent\n");
    client_lab_close(lab);
}
END_TEST

#define EXPECTING "POST /e HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
#define CONTINUE  "HTTP/1.1 100 Continue\r\n\r\n"
#define REPLY_E   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/e"

START_TEST(who_asks_is_told_to_continue) {
    struct client_lab *lab = client_lab_open("");
    client_lab_send(lab, EXPECTING);
    ck_assert_str_eq(client_lab_received(lab), CONTINUE);
    client_lab_send(lab, "abc");
    ck_assert_str_eq(client_lab_received(lab), REPLY_E);
    client_lab_send(lab, EXPECTING "abc"); /* it has not waited */
    ck_assert_str_eq(client_lab_received(lab), REPLY_E);
    ck_assert_str_eq(client_lab_logged(lab), "POST /e 3:abc\nsent\nPOST /e 3:abc\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* Nobody reads the body, so that it is not asked for; where the next request begins is not known. */
START_TEST(who_asks_may_be_refused_at_once) {
    struct client_lab *lab = client_lab_open("");
    lab->wait_for_body = false;
    client_lab_send(lab, EXPECTING);
    ck_assert_str_eq(client_lab_received(lab), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                                               "Connection: close\r\n\r\n/e");
    ck_assert(lab->ended);
    client_lab_close(lab);
}
END_TEST

/* What has come already is read away; for more nobody waits. */
START_TEST(bodies_that_nobody_reads_are_skipped) {
    struct client_lab *lab = client_lab_open("");
    lab->wait_for_body = false;
    client_lab_send(lab, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"
                         "GET /b HTTP/1.1\r\n" END);
    ck_assert_str_eq(client_lab_logged(lab), "POST /a\nsent\nGET /b\nsent\n");
    ck_assert(!client_lab_is_closed(lab));
    client_lab_send(lab, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
    ck_assert_str_eq(client_lab_logged(lab), "POST /a\nsent\n");
    client_lab_send(lab, "GET / H"); /* of the body, whatever it looks like */
    ck_assert_str_eq(client_lab_logged(lab), "");
    client_lab_close(lab);
}
END_TEST

Suite *http1_requests_suite(void) {
    const TTest *const tests[] = {requests_mean_the_same_however_they_come,
                                  clients_may_leave_at_any_byte,
                                  heads_have_a_limit,
                                  connections_are_kept_or_not,
                                  requests_may_stand_behind_each_other,
                                  replies_to_many_wait_for_a_client_that_reads_none,
                                  requests_behind_each_other_may_be_cut_anywhere,
                                  one_request_is_served_at_a_time,
                                  large_bodies_pass_whole,
                                  a_body_that_breaks_off_has_failed,
                                  a_body_that_is_no_chunks_has_failed,
                                  who_asks_is_told_to_continue,
                                  who_asks_may_be_refused_at_once,
                                  bodies_that_nobody_reads_are_skipped};
    return suite_of("http1_requests", tests, COUNT_OF(tests));
}
