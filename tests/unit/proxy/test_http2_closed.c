/* Frames for streams that we have ended: which of them are nobody's fault, and which cost. */
#include "http2_lab.h"

/* RFC 9113 §5.1: "An endpoint that sends a RST_STREAM frame on a stream ... MUST ignore frames that it
 * receives on closed streams after it has sent a RST_STREAM frame." */
START_TEST(bodies_of_all_refused_uploads_may_be_under_way) {
    enum { UPLOADS = 128 };
    struct client_lab *lab = lab_open("");
    lab->wait_for_body = false;
    for (uint32_t i = 0; i < UPLOADS; i++)
        lab_put_request(2 * i + 1, "POST", "/a", 0);
    lab_send_all(lab);
    for (uint32_t i = 0; i < UPLOADS; i++)
        lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, 2 * i + 1, SLICE("late"));
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_protocol_errors, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

/* The bytes that were under way when their upload was answered cost nothing, in however many frames. */
START_TEST(what_was_under_way_of_answered_uploads_costs_nothing) {
    enum { UPLOADS = 20, FRAMES = 50 };
    static const char bytes[1000];
    struct client_lab *lab = lab_open("client { http2_budget = 100 }\n");
    lab->wait_for_body = false;
    for (uint32_t i = 0; i < UPLOADS; i++)
        lab_put_request(2 * i + 1, "POST", "/a", 0);
    lab_send_all(lab);
    for (uint32_t i = 0; i < UPLOADS * FRAMES; i++)
        lab_put_frame(HTTP2_DATA, 0, 2 * (i / FRAMES) + 1, slice_make(bytes, sizeof bytes));
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    /* what can't have been under way does cost */
    for (uint32_t i = 0; i < 3 * UPLOADS * FRAMES; i++) {
        lab_put_frame(HTTP2_DATA, 0, 1, slice_make(bytes, sizeof bytes));
        if (i % FRAMES == 0)
            lab_send_all(lab);
    }
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

/* Empty frames need no window, so that as many as one likes might come. */
START_TEST(empty_ends_of_a_stream_that_was_cut_cost) {
    struct client_lab *lab = lab_open("client { http2_budget = 100 }\n");
    lab->wait_for_body = false;
    lab_put_request(1, "POST", "/a", 0);
    lab_send_all(lab);
    for (unsigned i = 0; i < 50; i++)
        lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, 1, SLICE(""));
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    for (unsigned i = 0; i < 200; i++)
        lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, 1, SLICE(""));
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

Suite *http2_closed_suite(void) {
    Suite *suite = suite_create("http2_closed");
    TCase *tcase = tcase_create("closed");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, bodies_of_all_refused_uploads_may_be_under_way);
    tcase_add_test(tcase, what_was_under_way_of_answered_uploads_costs_nothing);
    tcase_add_test(tcase, empty_ends_of_a_stream_that_was_cut_cost);
    suite_add_tcase(suite, tcase);
    return suite;
}
