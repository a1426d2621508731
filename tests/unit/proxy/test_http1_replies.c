/* Replies of a transaction on their way to an HTTP/1 client: where they end, and how they break off. */
#include "client_lab.h"

#include "http/chunked.h"

#include <string.h>
#include <sys/socket.h>

#define GET     "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET_OLD "GET /a HTTP/1.0\r\n\r\n"
#define HEAD    "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define OK      "HTTP/1.1 200 OK\r\n"

/* What `answer_with` replies. */
static struct reply wanted;
static struct body *wanted_body; /* referenced by each reply */

static void answer_with(struct asked *asked) {
    asked->reply = wanted;
    asked->reply.body = wanted_body == NULL ? NULL : body_reference(wanted_body);
    asked_reply_so(asked);
}

static const struct {
    const char *request, *extra;
    int64_t length;
    bool has_body;
    unsigned status;
    bool close;
    const char *reply;
    bool kept;
} forms[] = {
    {GET, "", 5, true, 200, false, OK "Content-Length: 5\r\n\r\nhello", true},
    {GET, "Age: 7\r\n", 5, true, 200, false, OK "Age: 7\r\nContent-Length: 5\r\n\r\nhello", true},
    {GET, "", 5, true, 200, true, OK "Content-Length: 5\r\nConnection: close\r\n\r\nhello", false},
    {GET, "", 0, false, 200, false, OK "Content-Length: 0\r\n\r\n", true},
    {GET, "", -1, false, 204, false, OK "\r\n", true},
    {GET, "", -1, true, 204, false, OK "\r\n", true},
    {GET, "", -1, true, 200, false, OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     true},
    {GET_OLD, "", -1, true, 200, false, OK "Connection: close\r\n\r\nhello", false},
    {GET_OLD, "", 5, true, 200, false, OK "Content-Length: 5\r\nConnection: close\r\n\r\nhello",
     false},
    {HEAD, "", 5, true, 200, false, OK "Content-Length: 5\r\n\r\n", true},
    {HEAD, "", -1, true, 200, false, OK "\r\n", true},
};

START_TEST(replies_end_where_they_say) {
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct client_lab *lab = client_lab_open("");
        lab->answer = answer_with;
        wanted_body = forms[i].has_body ? body_of_bytes(SLICE("hello")) : NULL;
        wanted = (struct reply){.stored = SLICE(OK),
                                .extra = slice_from(forms[i].extra),
                                .length = forms[i].length,
                                .status = forms[i].status,
                                .close = forms[i].close};
        client_lab_send(lab, forms[i].request);
        ck_assert_str_eq(client_lab_received(lab), forms[i].reply);
        ck_assert_msg(client_lab_is_closed(lab) == !forms[i].kept, "form %zu", i);
        body_release(&wanted_body);
        client_lab_close(lab);
    }
}
END_TEST

static void answer_made(struct asked *asked) {
    struct http_head *head = arena_alloc(&asked->arena, sizeof *head);
    http_head_init(head);
    head->version = 11;
    head->status = 404;
    head->reason = SLICE("Not Found");
    ck_assert(http_head_add(head, SLICE("X-Why"), SLICE("none")));
    asked->reply = (struct reply){.status = 404,
                                  .head = head,
                                  .extra = SLICE("Via: 1.1 r\r\n"),
                                  .arena = &asked->arena,
                                  .length = 5,
                                  .body = body_of_bytes(SLICE("hello"))};
    asked_reply_so(asked);
}

START_TEST(heads_may_be_made_for_the_reply) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = answer_made;
    client_lab_send(lab, GET GET);
    ck_assert_str_eq(client_lab_received(lab),
                     "HTTP/1.1 404 Not Found\r\nX-Why: none\r\nVia: 1.1 r\r\n"
                     "Content-Length: 5\r\n\r\nhello"
                     "HTTP/1.1 404 Not Found\r\nX-Why: none\r\nVia: 1.1 r\r\n"
                     "Content-Length: 5\r\n\r\nhello");
    client_lab_close(lab);
}
END_TEST

START_TEST(a_part_is_sent_alone) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = answer_with;
    wanted_body = body_of_bytes(SLICE("0123456789"));
    wanted =
        (struct reply){.status = 200, .stored = SLICE(OK), .length = 4, .part = true, .first = 3};
    client_lab_send(lab, GET);
    ck_assert_str_eq(client_lab_received(lab), OK "Content-Length: 4\r\n\r\n3456");
    body_release(&wanted_body);
    client_lab_close(lab);
}
END_TEST

START_TEST(several_parts_follow_each_other) {
    static const struct reply_part parts[] = {
        {{"--x\r\n\r\n", 7}, 0, 2}, {{"\r\n--x\r\n\r\n", 9}, 8, 2}, {{"\r\n--x\r\n\r\n", 9}, 4, 1}};
    struct client_lab *lab = client_lab_open("");
    lab->answer = answer_with;
    wanted_body = body_of_bytes(SLICE("0123456789"));
    wanted = (struct reply){.status = 200,
                            .stored = SLICE(OK),
                            .length = 7 + 2 + 9 + 2 + 9 + 1 + 7,
                            .parts = parts,
                            .part_count = 3,
                            .tail = SLICE("\r\n--x--")};
    for (int i = 0; i < 2; i++) {
        client_lab_send(lab, GET);
        ck_assert_str_eq(client_lab_received(lab), OK
                         "Content-Length: 37\r\n\r\n--x\r\n\r\n01\r\n--x\r\n\r\n89\r\n--x\r\n\r\n4"
                         "\r\n--x--");
    }
    body_release(&wanted_body);
    client_lab_close(lab);
}
END_TEST

static void grow(struct body *body, const char *text) {
    size_t room, length = strlen(text);
    while (length > 0) {
        char *at = body_room(body, &room);
        ck_assert_ptr_nonnull(at);
        room = room < length ? room : length;
        memcpy(at, text, room);
        body_grow(body, room);
        text += room;
        length -= room;
    }
}

/* A body that arrives, for a request that is there. */
static struct client_lab *arriving(int64_t length, const char *request) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = answer_with;
    wanted_body = body_new(&lab->net, BODY_SHARED, length);
    wanted = (struct reply){.status = 200, .stored = SLICE(OK), .length = length};
    client_lab_send(lab, request);
    return lab;
}

static void arriving_close(struct client_lab *lab) {
    body_release(&wanted_body);
    client_lab_close(lab);
}

START_TEST(what_arrives_is_passed_on_at_once) {
    struct client_lab *lab = arriving(-1, GET);
    ck_assert_str_eq(client_lab_received(lab), OK "Transfer-Encoding: chunked\r\n\r\n");
    grow(wanted_body, "abc");
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_received(lab), "3\r\nabc");
    grow(wanted_body, "0123456789abcdef");
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_received(lab), "\r\n10\r\n0123456789abcdef");
    body_finish(wanted_body, BODY_COMPLETE);
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_received(lab), "\r\n0\r\n\r\n");
    ck_assert_str_eq(client_lab_logged(lab), "GET /a\nsent\n");
    arriving_close(lab);
}
END_TEST

START_TEST(trailers_stand_behind_the_last_chunk) {
    static struct slice trailers;
    trailers = SLICE("X-Sum: 1\r\n");
    for (int late = 0; late < 2; late++) {
        struct client_lab *lab = client_lab_open("");
        lab->answer = answer_with;
        wanted_body = body_new(&lab->net, BODY_SHARED, -1);
        wanted =
            (struct reply){.status = 200, .stored = SLICE(OK), .length = -1, .trailers = &trailers};
        grow(wanted_body, "abc");
        if (late)
            client_lab_send(lab, GET);
        body_finish(wanted_body, BODY_COMPLETE);
        if (late)
            client_lab_run(lab);
        else
            client_lab_send(lab, GET);
        ck_assert_str_eq(client_lab_received(lab), OK "Transfer-Encoding: chunked\r\n\r\n"
                                                      "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n");
        arriving_close(lab);
    }
}
END_TEST

/* Never a body that looks whole: neither a last chunk nor an end of the connection in good order. */
START_TEST(what_fails_is_broken_off) {
    static const struct {
        int64_t length;
        const char *request;
    } cases[] = {{-1, GET}, {9, GET}, {-1, GET_OLD}, {9, GET_OLD}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct client_lab *lab = arriving(cases[i].length, cases[i].request);
        grow(wanted_body, "abc");
        client_lab_run(lab);
        ck_assert_ptr_null(strstr(client_lab_received(lab), "0\r\n\r\n"));
        body_finish(wanted_body, BODY_FAILED);
        client_lab_run(lab);
        ck_assert_str_eq(client_lab_received(lab), "");
        ck_assert(client_lab_is_closed(lab));
        ck_assert_str_eq(client_lab_logged(lab), "GET /a\naborted\n");
        arriving_close(lab);
    }
}
END_TEST

/* Reads what the client gets of a body in chunks, of whichever sizes; true: it was whole. */
static bool decode(const char *text, size_t length, char *out, size_t *got) {
    struct chunked_decoder decoder;
    chunked_init(&decoder);
    struct slice input = slice_make(text, length);
    *got = 0;
    for (;;) {
        size_t count;
        enum chunked_status status = chunked_decode(&decoder, &input, out + *got, 1 << 20, &count);
        *got += count;
        if (status != CHUNKED_MORE || input.length == 0)
            return status == CHUNKED_END && input.length == 0;
    }
}

/* The socket takes little at a time; whatever it does, the bytes are the same. */
START_TEST(clients_that_take_little_get_the_same) {
    static char bytes[300001], out[4 << 20];
    for (size_t i = 0; i < sizeof bytes - 1; i++)
        bytes[i] = (char)('a' + i % 23);
    for (int chunked = 0; chunked < 2; chunked++) {
        struct client_lab *lab = arriving(chunked ? -1 : (int64_t)sizeof bytes - 1, GET);
        int small = 4096;
        ck_assert_int_eq(setsockopt(lab->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
        for (size_t at = 0, piece = 1; at < sizeof bytes - 1; at += piece, piece = piece * 2 + 1) {
            char saved;
            piece = piece < sizeof bytes - 1 - at ? piece : sizeof bytes - 1 - at;
            saved = bytes[at + piece];
            bytes[at + piece] = '\0';
            grow(wanted_body, bytes + at);
            bytes[at + piece] = saved;
            client_lab_run(lab);
        }
        body_finish(wanted_body, BODY_COMPLETE);
        client_lab_run(lab);
        size_t length = lab->got, got = 0;
        const char *body = strstr(client_lab_received(lab), "\r\n\r\n") + 4;
        length -= (size_t)(body - lab->received);
        if (chunked) {
            ck_assert(decode(body, length, out, &got));
            body = out;
            length = got;
        }
        ck_assert_uint_eq(length, sizeof bytes - 1);
        ck_assert_int_eq(memcmp(body, bytes, length), 0);
        arriving_close(lab);
    }
}
END_TEST

/* The client leaves when it has so much of the reply: the transaction learns of it, whenever it is. */
START_TEST(clients_may_leave_in_the_middle) {
    for (int grown = 0; grown < 4; grown++) {
        struct client_lab *lab = arriving(grown % 2 ? 20 : -1, GET);
        for (int i = 0; i < grown; i++) {
            grow(wanted_body, "abc");
            client_lab_run(lab);
        }
        client_lab_hang_up(lab);
        ck_assert_str_eq(client_lab_logged(lab), "GET /a\naborted\n");
        ck_assert_uint_eq(lab->clients.connection_count, 0);
        grow(wanted_body, "abc"); /* nobody reads it any more */
        body_finish(wanted_body, BODY_COMPLETE);
        client_lab_run(lab);
        arriving_close(lab);
    }
}
END_TEST

static void answer_after_hints(struct asked *asked) {
    struct http_head head;
    http_head_init(&head);
    head.version = 11;
    head.status = 103;
    head.reason = SLICE("Early Hints");
    ck_assert(http_head_add(&head, SLICE("Link"), SLICE("</s>")));
    exchange_interim(asked->exchange, &head);
    asked_reply_target(asked);
}

START_TEST(interim_responses_are_for_those_who_know_them) {
    struct client_lab *lab = client_lab_open("");
    lab->answer = answer_after_hints;
    client_lab_send(lab, GET);
    ck_assert_str_eq(client_lab_received(lab), "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\n" OK
                                               "Content-Length: 2\r\n\r\n/a");
    client_lab_send(lab, GET_OLD);
    ck_assert_str_eq(client_lab_received(lab),
                     OK "Content-Length: 2\r\nConnection: close\r\n\r\n/a");
    client_lab_close(lab);
}
END_TEST

Suite *http1_replies_suite(void) {
    const TTest *const tests[] = {replies_end_where_they_say,
                                  heads_may_be_made_for_the_reply,
                                  a_part_is_sent_alone,
                                  several_parts_follow_each_other,
                                  what_arrives_is_passed_on_at_once,
                                  trailers_stand_behind_the_last_chunk,
                                  what_fails_is_broken_off,
                                  clients_that_take_little_get_the_same,
                                  clients_may_leave_in_the_middle,
                                  interim_responses_are_for_those_who_know_them};
    return suite_of("http1_replies", tests, COUNT_OF(tests));
}
