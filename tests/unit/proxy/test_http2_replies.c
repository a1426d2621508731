/* What is sent to a client, and the windows that it gives. */
#include "http2_lab.h"

/* RFC 7541 §4.2: "a change in the maximum size of the dynamic table ... MUST occur at the beginning of
 * the first header block following the change to the dynamic table size". */
START_TEST(the_first_block_says_that_there_is_no_table) {
    struct client_lab *lab = lab_open_with("", HTTP2_SETTING_HEADER_TABLE_SIZE, 0);
    lab_put_get(1);
    lab_put_get(3);
    lab_send_all(lab);
    ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 1));
    ck_assert_int_eq(lab_payload.base[0], 0x20);
    ck_assert(lab_find_frame(lab, HTTP2_HEADERS, 3));
    ck_assert_int_eq((unsigned char)lab_payload.base[0], 0x88);
    client_lab_close(lab);
}
END_TEST

/* RFC 9113 §6.9.1: "Frames with zero length with the END_STREAM flag set (that is, an empty DATA
 * frame) MAY be sent if there is no available space in either flow-control window." */
START_TEST(an_end_needs_no_window) {
    struct client_lab *lab = lab_open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0);
    lab->answer = lab_answer_bytes;
    lab_body_size = 0;
    lab_put_get(1);
    lab_send_all(lab);
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
        struct client_lab *lab = lab_open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, window);
        lab->answer = answer_parts;
        lab_put_get(1);
        lab_send_all(lab);
        lab_put_update(1, 55);
        lab_send_all(lab);
        ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\nsent\n");
        while (lab_find_frame(lab, HTTP2_DATA, 1))
            length += lab_frame.length;
        ck_assert_uint_eq(length, 55);
        client_lab_close(lab);
    }
}
END_TEST

/* A stream that waited for the window of the connection and was given up does not count any more. */
START_TEST(a_window_that_nobody_waits_for_may_stay_shut) {
    struct client_lab *lab = lab_open("client { header_timeout = 1s  send_timeout = 5s }\n");
    lab->answer = lab_answer_bytes;
    lab_body_size = 100000;
    lab_put_settings(HTTP2_SETTING_INITIAL_WINDOW_SIZE, 1000000);
    lab_put_get(1);
    lab_send_all(lab);
    lab_put_reset(1);
    lab_send_all(lab);
    ck_assert_str_eq(client_lab_logged(lab), "GET http://h:80/a\naborted\n");
    lab_pass(lab, 6000);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

START_TEST(a_tunnel_whose_window_is_shut_sleeps) {
    struct client_lab *lab = lab_open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, 0);
    lab->answer = lab_answer_tunnel;
    lab_put_request(1, "CONNECT", "", 0);
    lab_send_only(lab);
    for (int i = 0; i < 50; i++) {
        timer_set(&lab->loop.timers, &lab->now, 0);
        loop_run_once(&lab->loop);
    }
    ck_assert_uint_gt(lab_tunnel.wakes, 0);
    ck_assert_uint_lt(lab_tunnel.wakes, 10);
    lab_put_update(1, 4);
    lab_send_all(lab);
    ck_assert_uint_eq(lab_tunnel.put, 4);
    duplex_close(&lab_tunnel.duplex);
    client_lab_close(lab);
}
END_TEST

START_TEST(a_download_leaves_a_tunnel_its_turns) {
    struct client_lab *lab = lab_open_with("", HTTP2_SETTING_INITIAL_WINDOW_SIZE, INT32_MAX);
    lab->answer = lab_answer_tunnel;
    lab_body_size = 6 << 20;
    lab_put_update(0, INT32_MAX - HTTP2_WINDOW_DEFAULT);
    lab_put_get(1);
    lab_put_request(3, "CONNECT", "", 0);
    lab->deaf = true;
    lab_send_all(lab);
    while (lab_tunnel.put < 4 && lab->got < (3 << 20)) {
        client_lab_take(lab, 65536);
        lab->got += 65536;
    }
    ck_assert_uint_eq(lab_tunnel.put, 4);
    lab->got = 0;
    duplex_close(&lab_tunnel.duplex);
    client_lab_close(lab);
}
END_TEST

Suite *http2_replies_suite(void) {
    Suite *suite = suite_create("http2_replies");
    TCase *tcase = tcase_create("replies");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_first_block_says_that_there_is_no_table);
    tcase_add_test(tcase, an_end_needs_no_window);
    tcase_add_test(tcase, parts_of_a_body_may_end_where_the_window_does);
    tcase_add_test(tcase, a_window_that_nobody_waits_for_may_stay_shut);
    tcase_add_test(tcase, a_tunnel_whose_window_is_shut_sleeps);
    tcase_add_test(tcase, a_download_leaves_a_tunnel_its_turns);
    suite_add_tcase(suite, tcase);
    return suite;
}
