/* The budget of a connection: what floods cost, and that good clients do not notice it. */
#include "http2_lab.h"

#include "http2/client/connection.h"

static void answer_unless_missing(struct asked *asked) {
    if (!slice_equal(asked->exchange->request.target, SLICE("http://h:80/miss")))
        asked_reply_target(asked);
}

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
            lab_put_get(id);
        for (unsigned i = 0; i < reset; i++, id += 2) {
            lab_put_request(id, "GET", "/miss", HTTP2_END_STREAM);
            lab_put_reset(id);
        }
        lab_put_update(0, 16 * answered + 1); /* the bodies */
        lab_send_all(lab);
        if (lab->net.counters.client_http2_calmed == 0)
            age(lab, milliseconds);
        lab_forget_frames(lab);
        lab->logged = 0;
    }
    return id / 2;
}

/* Requests that are answered from the cache do not pay for those that are reset (CVE-2023-44487). */
START_TEST(answers_do_not_pay_for_a_flood_of_resets) {
    for (unsigned answered = 1; answered <= 9; answered += 2) {
        struct client_lab *lab = lab_open("client { max_requests = 0 }\n");
        unsigned streams = mix(lab, 20000, answered, 1, 1);
        ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
        ck_assert_uint_lt(streams / (answered + 1), 1000); /* resets, in less than a second */
        client_lab_close(lab);
    }
    struct client_lab *lab = lab_open("client { max_requests = 0 }\n");
    ck_assert_uint_lt(mix(lab, 20000, 1, 1, 0), 2000);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 1);
    client_lab_close(lab);
}
END_TEST

/* The same after a long time in good order. */
START_TEST(a_good_past_does_not_pay_for_a_flood_of_resets) {
    struct client_lab *lab = lab_open("client { max_requests = 0 }\n");
    mix(lab, 5000, 10, 0, 100);
    age(lab, 600000);
    unsigned resets = 0;
    for (uint32_t id = 10001; lab->net.counters.client_http2_calmed == 0; id += 4, resets++) {
        lab_put_get(id);
        lab_put_request(id + 2, "GET", "/miss", HTTP2_END_STREAM);
        lab_put_reset(id + 2);
        lab_put_update(0, 16);
        lab_send_all(lab);
        lab_forget_frames(lab);
    }
    ck_assert_uint_le(resets, 1000);
    client_lab_close(lab);
}
END_TEST

/* A page whose user scrolls: a fifth of 400 requests a second is cancelled, for ten seconds; and a
 * caller that cancels every other of 200 calls a second, for five minutes. */
START_TEST(who_cancels_much_and_uses_more_goes_on) {
    struct client_lab *lab = lab_open("client { max_requests = 0 }\n");
    mix(lab, 4000, 32, 8, 100);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    client_lab_close(lab);
    lab = lab_open("client { max_requests = 0 }\n");
    mix(lab, 60000, 10, 10, 100);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    ck_assert_uint_eq(lab->clients.connection_count, 1);
    client_lab_close(lab);
}
END_TEST

/* A client may answer each frame of data by two updates of windows and a PING, as some do. */
START_TEST(who_takes_what_we_send_may_say_so) {
    struct client_lab *lab = lab_open("client { http2_budget = 100 }\n");
    size_t got = 0;
    lab->answer = lab_answer_bytes;
    lab_body_size = 4 << 20;
    lab_put_get(1);
    lab_send_all(lab);
    while (lab_find_frame(lab, HTTP2_DATA, 1)) {
        got += lab_frame.length;
        if (lab_frame.length > 0) {
            lab_put_update(1, lab_frame.length);
            lab_put_update(0, lab_frame.length);
            lab_put_frame(HTTP2_PING, 0, 0, SLICE("bandwidt"));
        }
        lab_send_all(lab);
    }
    ck_assert_uint_eq(got, lab_body_size);
    ck_assert_uint_eq(lab->net.counters.client_http2_calmed, 0);
    client_lab_close(lab);
}
END_TEST

Suite *http2_budget_suite(void) {
    Suite *suite = suite_create("http2_budget");
    TCase *tcase = tcase_create("budget");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, answers_do_not_pay_for_a_flood_of_resets);
    tcase_add_test(tcase, a_good_past_does_not_pay_for_a_flood_of_resets);
    tcase_add_test(tcase, who_cancels_much_and_uses_more_goes_on);
    tcase_add_test(tcase, who_takes_what_we_send_may_say_so);
    suite_add_tcase(suite, tcase);
    return suite;
}
