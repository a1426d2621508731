/* Bodies of requests: the windows that we give for them, and the time that their clients have. */
#include "http2_lab.h"

#include "client/body_clock.h"

#include <stdio.h>
#include <string.h>

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
    struct client_lab *lab = lab_open("client { body_timeout = 5s  min_rate = 1MB }\n");
    char buffer[16];
    size_t got;
    lab->wait_for_body = false;
    lab->answer = answer_later;
    lab_put_request(1, "POST", "/a", 0);
    lab_send_all(lab);
    lab_put_frame(HTTP2_DATA, 0, 1, SLICE("hello"));
    lab_send_all(lab);
    lab_pass(lab, 50000);
    lab->loop.now_nanoseconds += UINT64_C(50000000000);
    ck_assert_int_eq(source_read(upload, buffer, sizeof buffer, &got), SOURCE_DATA);
    ck_assert_int_eq(source_read(upload, buffer, sizeof buffer, &got), SOURCE_WAIT);
    ck_assert(!lab->last->exchange->body_failed);
    lab_put_reset(1);
    source_close(&upload);
    lab_send_all(lab);
    client_lab_close(lab);
}
END_TEST

/* What the client may send: on all streams together, and on the one stream that is of interest. */
static int64_t connection_window;
static uint32_t noted_stream;
static int64_t noted_window;

static void note_updates(struct client_lab *lab) {
    while (lab_next_frame(lab)) {
        if (lab_frame.type != HTTP2_WINDOW_UPDATE)
            continue;
        if (lab_frame.stream == 0)
            connection_window += http2_get32(lab_payload.base);
        else if (lab_frame.stream == noted_stream)
            noted_window += http2_get32(lab_payload.base);
    }
    lab_forget_frames(lab);
}

/* RFC 9113 §6.9: what is dropped, padding, and what waits in a stream that ends, comes back to the
 * window of the connection. */
START_TEST(the_window_of_the_connection_comes_back) {
    static const char zeros[16000];
    struct client_lab *lab =
        lab_open("client { http2_connection_window = 128KB  http2_budget = 100000 }\n");
    connection_window = HTTP2_WINDOW_DEFAULT;
    note_updates(lab);
    ck_assert_int_eq(connection_window, 128 << 10);
    lab->wait_for_body = false;
    for (uint32_t id = 1; id < 2000; id += 2) {
        char padded[16001];
        bool refused = id % 3 == 0, read = id % 7 == 0;
        lab->wait_for_body = read;
        lab->answer = id % 5 == 0 ? lab_answer_nothing : asked_reply_target;
        lab_put_request(id, "POST", refused ? "a" : "/a", 0);
        lab_put_frame(HTTP2_DATA, 0, id, slice_make(zeros, 16000));
        memset(padded, 0, sizeof padded);
        padded[0] = (char)200;
        lab_put_frame(HTTP2_DATA, HTTP2_PADDED | (read ? HTTP2_END_STREAM : 0), id,
                      slice_make(padded, 201 + id % 11));
        connection_window -= 16000 + 201 + id % 11;
        ck_assert_int_ge(connection_window, 0);
        lab_send_all(lab);
        if (!read && id % 5 == 0)
            lab_put_reset(id);
        else if (lab->last != NULL)
            asked_finish(lab->last);
        lab_send_all(lab);
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
static struct client_lab *open_for_uploads(const char *options) {
    char settings[200];
    snprintf(
        settings, sizeof settings,
        "client { http2_window = 256KB  http2_connection_window = 1MB  body_timeout = 5s  %s }\n",
        options);
    struct client_lab *lab = lab_open(settings);
    connection_window = HTTP2_WINDOW_DEFAULT;
    noted_stream = 0;
    note_updates(lab);
    ck_assert_int_eq(connection_window, UPLOADS_WINDOW);
    return lab;
}

static void put_bytes(struct client_lab *lab, uint32_t id, size_t bytes) {
    static const char zeros[HTTP2_FRAME_SIZE_DEFAULT];
    lab_put_frame(HTTP2_DATA, 0, id, slice_make(zeros, bytes));
    lab_send_all(lab);
    connection_window -= (int64_t)bytes;
    noted_window -= id == noted_stream ? (int64_t)bytes : 0;
    note_updates(lab);
}

/* Opens uploads that nobody reads, the first of them `id`, and sends so many bytes in all. */
static void stall_uploads(struct client_lab *lab, uint32_t id, size_t bytes) {
    lab->wait_for_body = false;
    lab->answer = lab_answer_nothing;
    for (; bytes > 0; id += 2) {
        size_t left = bytes < UPLOAD_WINDOW ? bytes : UPLOAD_WINDOW;
        bytes -= left;
        lab_put_request(id, "POST", "/stalled", 0);
        for (; left > 0; left -= left < 16384 ? left : 16384)
            put_bytes(lab, id, left < 16384 ? left : 16384);
    }
}

/* Opens an upload that is read at once. */
static void open_read_upload(struct client_lab *lab, uint32_t id) {
    lab->wait_for_body = true;
    noted_stream = id;
    noted_window = UPLOAD_WINDOW;
    lab_put_request(id, "POST", "/read", 0);
    lab_send_all(lab);
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
    lab_put_frame(HTTP2_DATA, HTTP2_END_STREAM, noted_stream, SLICE(""));
    lab->answer = asked_reply_target;
    client_lab_logged(lab);
    lab_send_all(lab);
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
        struct client_lab *lab = open_for_uploads("");
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
    struct client_lab *lab = open_for_uploads("");
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
    struct client_lab *lab = open_for_uploads("");
    stall_uploads(lab, 1, UPLOADS_WINDOW);
    ck_assert_int_eq(connection_window, 0);
    client_lab_logged(lab);
    lab->wait_for_body = true;
    lab->answer = asked_reply_target;
    lab_put_request(99, "POST", "/patient", 0);
    lab_send_all(lab);
    for (uint64_t time = _i ? 6000 : 0; time > 0 && time < 48000; time += 6000)
        lab_pass(lab, time);
    ck_assert_str_eq(client_lab_logged(lab), "");
    lab_put_reset(1);
    lab_send_all(lab);
    note_updates(lab);
    ck_assert_int_gt(connection_window, 0);
    client_lab_logged(lab);
    lab_pass(lab, _i ? 45000 : 3000);
    ck_assert_str_eq(client_lab_logged(lab), "");
    lab_pass(lab, _i ? 60000 : 20000);
    lab_pass(lab,
             100000); /* what a slow machine took while the window was shut is forgiven as well */
    ck_assert_str_eq(client_lab_logged(lab), "POST http://h:80/patient 0: timed out\nsent\n");
    client_lab_close(lab);
}
END_TEST

/* Opens an upload that is read where others have left so many bytes of the connection's window. */
static struct client_lab *open_beside_stalled(size_t left) {
    struct client_lab *lab = open_for_uploads("min_rate = 1000  min_rate_after = 500ms");
    stall_uploads(lab, 1, UPLOADS_WINDOW - left);
    ck_assert_int_eq(connection_window, (int64_t)left);
    open_read_upload(lab, 99);
    lab->answer = asked_reply_target;
    client_lab_logged(lab);
    return lab;
}

/* client.min_rate does not blame a client for a window that bodies of others fill. When they have ended, the
 * client's time goes on. */
START_TEST(a_shut_window_is_no_low_rate) {
    struct client_lab *lab = open_beside_stalled(0);
    lab_wait(lab, 1500);
    ck_assert_str_eq(client_lab_logged(lab), "");
    lab_put_reset(1);
    lab_send_all(lab);
    note_updates(lab);
    ck_assert_str_eq(client_lab_logged(lab), "aborted\n");
    if (_i) {
        go_on_uploading(lab, UPLOADS_WINDOW);
        end_read_upload(lab);
    } else {
        for (unsigned i = 0; i < 200 && lab->net.counters.client_too_slow == 0; i++)
            lab_wait(lab, 50);
        ck_assert_str_eq(client_lab_logged(lab), "POST http://h:80/read 0: timed out\nsent\n");
    }
    ck_assert_uint_eq(lab->net.counters.client_too_slow, _i ? 0 : 1);
    client_lab_close(lab);
}
END_TEST

/* A client that is far away sends no more than the window in the time that an update takes to it. If others
 * leave a few bytes of it, that is as good as nothing; if they leave more, it is the client that is
 * slow. */
START_TEST(a_window_of_a_few_bytes_is_no_low_rate) {
    struct client_lab *lab = open_beside_stalled(_i ? 2 * HTTP2_FRAME_SIZE_DEFAULT : 10);
    for (unsigned i = 0; i < 100 && lab->net.counters.client_too_slow == 0; i++) {
        lab_wait(lab, 20);
        put_bytes(lab, 99, 10);
    }
    ck_assert_uint_eq(lab->net.counters.client_too_slow, _i ? 1 : 0);
    if (_i == 0)
        end_read_upload(lab);
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

Suite *http2_uploads_suite(void) {
    Suite *suite = suite_create("http2_uploads");
    TCase *tcase = tcase_create("uploads");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_client_is_not_blamed_for_a_slow_reader);
    tcase_add_test(tcase, the_window_of_the_connection_comes_back);
    tcase_add_test(tcase, uploads_that_wait_stop_no_others);
    tcase_add_test(tcase, uploads_that_wait_later_stop_no_others);
    tcase_add_loop_test(tcase, a_client_is_not_blamed_for_a_shut_window, 0, 2);
    tcase_add_loop_test(tcase, a_shut_window_is_no_low_rate, 0, 2);
    tcase_add_loop_test(tcase, a_window_of_a_few_bytes_is_no_low_rate, 0, 2);
    tcase_add_test(tcase, a_shut_window_forgives_no_more_than_its_time);
    tcase_add_test(tcase, a_shut_window_forgives_for_some_time);
    suite_add_tcase(suite, tcase);
    return suite;
}
