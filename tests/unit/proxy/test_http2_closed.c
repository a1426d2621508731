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

/* What a client may still send for an upload that has been answered: the rest, with its end or before it;
 * trailers; or a reset, because it has left meanwhile. */
static void put_late(uint32_t id) {
    static const char bytes[1000];
    switch (id / 2 % 4) {
    case 0: lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, id, slice_make(bytes, sizeof bytes)); break;
    case 1:
        lab_put_frame(HTTP2_DATA, 0, id, slice_make(bytes, sizeof bytes));
        lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, id, SLICE(""));
        break;
    case 2:
        lab_put_frame(HTTP2_DATA, 0, id, slice_make(bytes, sizeof bytes));
        lab_put_frame(HTTP2_HEADERS, HTTP2_END_HEADERS | HTTP2_END_STREAM, id, SLICE("\0\1a\1b"));
        break;
    default: lab_put_frame(HTTP2_DATA, 0, id, slice_make(bytes, sizeof bytes)); lab_put_reset(id);
    }
}

/* RFC 9113 §8.1: a server that has answered may ask for the rest of the request no more, by RST_STREAM with
 * NO_ERROR. A client may upload so for as long as it likes. */
START_TEST(early_answers_cost_nothing_however_many) {
    enum { UPLOADS = 5000, AT_ONCE = 50 };
    struct client_lab *lab = lab_open("client { max_requests = 0 }\n");
    int64_t window = HTTP2_WINDOW_DEFAULT;
    lab->wait_for_body = false;
    for (uint32_t first = 1; first < 2 * UPLOADS; first += 2 * AT_ONCE) {
        for (uint32_t id = first; id < first + 2 * AT_ONCE; id += 2)
            lab_put_request(id, "POST", "/a", 0);
        lab_send_all(lab);
        unsigned resets = 0;
        while (lab_next_frame(lab)) {
            if (lab_frame.type == HTTP2_WINDOW_UPDATE && lab_frame.stream == 0)
                window += http2_get32(lab_payload.base);
            if (lab_frame.type != HTTP2_RST_STREAM)
                continue;
            ck_assert_uint_eq(http2_get32(lab_payload.base), HTTP2_NO_ERROR);
            resets++;
        }
        ck_assert_uint_eq(resets, AT_ONCE);
        lab_forget_frames(lab);
        for (uint32_t id = first; id < first + 2 * AT_ONCE; id += 2)
            put_late(id);
        window -= 1000 * AT_ONCE;
        ck_assert_int_ge(window, 0);
        lab_put_update(0, 16 * AT_ONCE); /* the bodies of the answers */
        lab_send_all(lab);
        ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    }
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    ck_assert_uint_eq(lab->net.counters.client_http2_protocol_errors, 0);
    client_lab_close(lab);
}
END_TEST

/* Bytes that waited in an upload leave their room in the connection's window when it is answered: as many
 * may come before the client sees that. */
START_TEST(bytes_that_an_answer_makes_room_for_may_be_under_way) {
    enum { WINDOW = 64 << 10, WAITING = 16 << 10, PIECE = 100 };
    static const char bytes[16000];
    struct client_lab *lab = lab_open(
        "client { http2_window = 64KB  http2_connection_window = 64KB  http2_budget = 100 }\n");
    lab->wait_for_body = false;
    lab->answer = lab_answer_nothing;
    lab_put_request(1, "POST", "/a", 0);
    lab_put_request(3, "POST", "/a", 0);
    for (size_t left = WINDOW - WAITING, piece; left > 0; left -= piece) {
        piece = left < sizeof bytes ? left : sizeof bytes;
        lab_put_frame(HTTP2_DATA, 0, 1, slice_make(bytes, piece));
    }
    lab_send_all(lab);
    struct asked *answered = lab->last;
    lab_put_frame(HTTP2_DATA, 0, 3, slice_make(bytes, sizeof bytes));
    lab_put_frame(HTTP2_DATA, 0, 3, slice_make(bytes, WAITING - sizeof bytes));
    lab_send_all(lab);
    lab_forget_frames(lab);
    asked_reply_target(answered);
    client_lab_run(lab);
    ck_assert(lab_find_frame(lab, HTTP2_WINDOW_UPDATE, 0));
    ck_assert(lab_find_frame(lab, HTTP2_RST_STREAM, 3));
    for (unsigned i = 0; i < WAITING / PIECE; i++)
        lab_put_frame(HTTP2_DATA, 0, 3, slice_make(bytes, PIECE));
    lab_send_all(lab);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
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
    tcase_add_test(tcase, early_answers_cost_nothing_however_many);
    tcase_add_test(tcase, bytes_that_an_answer_makes_room_for_may_be_under_way);
    suite_add_tcase(suite, tcase);
    return suite;
}
