/* The life of a connection with HTTP/2, driven frame by frame from the client's side: how it begins, what a
 * drain and GOAWAY mean, and a client that reads nothing. */
#include "http2_lab.h"

START_TEST(answers) {
    struct client_lab *lab = lab_open("");
    lab_put_get(1);
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 1));
    ck_assert(lab_find_frame(lab, HTTP2_DATA, 1));
    ck_assert(lab_frame.flags & HTTP2_END_STREAM);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.8: "Endpoints MUST NOT increase the value they send in the last stream identifier,
 * since the peers might already have retried unprocessed requests on another connection." */
START_TEST(a_drain_names_the_last_request_that_is_answered) {
    static const char pong[HTTP2_PING_SIZE] = "drain";
    struct client_lab *lab = lab_open("");
    lab->answer = lab_answer_nothing;
    lab_put_get(1);
    lab_send_all(lab);
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(lab_payload.base), HTTP2_STREAM_MOST);
    lab_put_get(3); /* it was under way */
    lab_send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nGET http://h:80/a\n");
    lab_put_frame(HTTP2_PING, HTTP2_ACK, 0, slice_make(pong, sizeof pong));
    lab_put_request(5, "POST", "/a", 0); /* too late */
    lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, 5, SLICE("late"));
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(lab_payload.base), 3);
    ck_assert_str_eq(client_lab_logged(lab), "");
    lab_put_reset(1);
    lab_put_reset(3);
    lab_send_all(lab);
    while (lab_find_frame(lab, HTTP2_GOAWAY, 0))
        ck_assert_uint_le(http2_get32(lab_payload.base), 3);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.8: "Receivers of a GOAWAY frame MUST NOT open additional streams on the connection". It
 * says nothing of those that its sender opens: a client may ask on. */
START_TEST(a_client_that_says_goaway_may_ask_on) {
    static const char goaway[HTTP2_GOAWAY_SIZE];
    struct client_lab *lab = lab_open("");
    lab->answer = lab_answer_nothing;
    lab_put_get(1);
    lab_put_frame(HTTP2_GOAWAY, 0, 0, slice_make(goaway, sizeof goaway));
    lab_send_all(lab);
    lab->answer = asked_reply_target;
    lab_put_get(3);
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_DATA, 3));
    clients_drain(&lab->clients);
    client_lab_run(lab);
    ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(lab_payload.base), HTTP2_STREAM_MOST);
    lab_put_reset(1);
    lab_send_all(lab);
    lab_pass(lab, 2000);
    ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
    ck_assert_uint_eq(http2_get32(lab_payload.base), 3);
    client_lab_close(lab);
    /* without a request that is under way, the connection ends */
    lab = lab_open("");
    lab_put_frame(HTTP2_GOAWAY, 0, 0, slice_make(goaway, sizeof goaway));
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_GOAWAY, 0));
    client_lab_close(lab);
}
END_TEST

/* A client that reads nothing, when its connection has been there for a while, is given up. */
START_TEST(a_client_that_takes_nothing_is_given_up) {
    struct client_lab *lab =
        lab_open_with("client { header_timeout = 1s  send_timeout = 5s  idle_timeout = 1h }\n",
                      HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = lab_answer_bytes;
    lab_body_size = 4 << 20;
    lab_put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    lab->answer = lab_answer_nothing;
    lab_put_get(1);
    lab_send_all(lab);
    lab_pass(lab, 4000000); /* all that was due before has been looked at */
    lab->deaf = true;
    lab->answer = lab_answer_bytes;
    lab_put_get(3);
    lab_send_all(lab);
    client_lab_logged(lab);
    lab_pass(lab, 5001);
    ck_assert_uint_eq(lab->clients.connection_count, 0);
    ck_assert_str_eq(client_lab_logged(lab), "aborted\naborted\n");
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §5.2.2: an endpoint "MUST read and process HTTP/2 frames from the TCP receive buffer as soon
 * as data is available". Otherwise two ends that wait for one another to read wait for ever. */
START_TEST(frames_are_read_while_a_reply_is_not_taken) {
    struct client_lab *lab = lab_open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = lab_answer_bytes;
    lab_body_size = 4 << 20;
    lab_put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    lab->deaf = true;
    lab_put_get(1);
    lab_send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\n");
    ck_assert_uint_gt(lab->net.buffer_bytes, 10000); /* what it does not take counts */
    lab->answer = lab_answer_nothing;
    lab_put_get(3);
    lab_send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\n");
    lab->deaf = false;
    client_lab_run(lab);
    ck_assert_str_eq(client_lab_logged(lab), "sent\n");
    client_lab_close(lab);
}
END_TEST

Suite *http2_session_suite(void) {
    Suite *suite = suite_create("http2_session");
    TCase *tcase = tcase_create("session");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, answers);
    tcase_add_test(tcase, a_drain_names_the_last_request_that_is_answered);
    tcase_add_test(tcase, a_client_that_says_goaway_may_ask_on);
    tcase_add_test(tcase, a_client_that_takes_nothing_is_given_up);
    tcase_add_test(tcase, frames_are_read_while_a_reply_is_not_taken);
    suite_add_tcase(suite, tcase);
    return suite;
}
