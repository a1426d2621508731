/* What services do with the content of the cache: the operations, their limits, and how they end. */
#include "store_bench.h"

#include "content/account.h"
#include "settings/settings.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct settings *the_settings;
static struct content_executor *the_room;
static struct content_numbers *the_numbers;
static struct content_account *the_account;
static struct second_level *const nothing;

static struct settings *settings_now(void *context) {
    (void)context;
    return settings_reference(the_settings);
}

static struct settings *plain_settings(void) {
    char path[] = "/tmp/unit-content-XXXXXX", error[SETTINGS_ERROR];
    int fd = mkstemp(path);
    static const char text[] = "listen \"127.0.0.1:3128\" { mode = forward }\n";
    ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings != NULL, "%s", error);
    unlink(path);
    return settings;
}

static void begin_content(void) {
    const struct content_limits limits = {
        .operations = 4, .object = 100 * 1000, .memory = 150 * 1000, .timeout = 1000};
    start_cache();
    the_settings = plain_settings();
    the_room = content_executor_new(the_cache, &nothing, settings_now, NULL);
    the_numbers = content_numbers_new();
    the_account = content_account_open(the_room, "test", &limits, the_numbers);
}

static void end_content(void) {
    content_account_close(&the_account);
    content_executor_free(&the_room);
    ck_assert_uint_eq(atomic_load(&the_numbers->open), 0);
    ck_assert_uint_eq(atomic_load(&the_numbers->held_bytes), 0);
    content_numbers_release(&the_numbers);
    settings_release(&the_settings);
    stop_cache();
}

static struct service_content *order(struct service_content_order wanted) {
    return content_account_start(the_account, &wanted);
}

/* Waits for the descriptor, as services do. */
static const struct service_content_answer *await(struct service_content *operation) {
    ck_assert_ptr_nonnull(operation);
    struct pollfd wait = {.fd = service_content_descriptor(operation), .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, 60000), 1);
    const struct service_content_answer *answer = service_content_answer(operation);
    ck_assert_ptr_nonnull(answer);
    return answer;
}

static enum service_content_status done(struct service_content *operation) {
    enum service_content_status status = await(operation)->status;
    service_content_close(&operation);
    return status;
}

#define URL_OF(number) SLICE("http://a.org/" number)

START_TEST(stored_objects_are_named_in_any_spelling) {
    begin_content();
    put_cached(SLICE("http://a.org/~x"), 1000);
    struct service_content *operation = order((struct service_content_order){
        .kind = SERVICE_CONTENT_QUERY, .url = SLICE("HTTP://A.org:80/%7ex#y")});
    const struct service_content_answer *answer = await(operation);
    ck_assert_int_eq(answer->status, SERVICE_CONTENT_DONE);
    ck_assert(slice_equal(answer->url, SLICE("http://a.org/~x")));
    ck_assert_uint_eq(answer->objects, 1);
    ck_assert_uint_eq(answer->size, 1000);
    service_content_close(&operation);
    ck_assert_ptr_null(operation);
    service_content_close(&operation);
    end_content();
}
END_TEST

START_TEST(changes_change) {
    begin_content();
    put_cached(URL_OF("1"), 1000);
    ck_assert_int_eq(done(order((struct service_content_order){
                         .kind = SERVICE_CONTENT_EXPIRE, .url = URL_OF("1"), .seconds = 77})),
                     SERVICE_CONTENT_DONE);
    struct service_content *operation =
        order((struct service_content_order){.kind = SERVICE_CONTENT_QUERY, .url = URL_OF("1")});
    int64_t left = await(operation)->fresh_for;
    ck_assert(left > 70 && left <= 77);
    service_content_close(&operation);
    ck_assert_int_eq(done(order((struct service_content_order){.kind = SERVICE_CONTENT_DELETE,
                                                               .url = URL_OF("1")})),
                     SERVICE_CONTENT_DONE);
    ck_assert(!is_cached(URL_OF("1")));
    ck_assert_int_eq(done(order((struct service_content_order){.kind = SERVICE_CONTENT_DELETE,
                                                               .url = URL_OF("1")})),
                     SERVICE_CONTENT_NOT_STORED);
    end_content();
}
END_TEST

static struct service_content *inject_start(uint64_t length) {
    return order((struct service_content_order){
        .kind = SERVICE_CONTENT_INJECT,
        .url = URL_OF("made"),
        .seconds = 60,
        .head = SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
        .length = length});
}

START_TEST(pieces_become_an_object_when_it_is_whole) {
    begin_content();
    char piece[1000], out[700];
    uint64_t seen = 0;
    size_t got;
    enum service_content_flow flow;
    memset(piece, 'x', sizeof piece);
    struct service_content *operation = inject_start(SERVICE_LENGTH_UNKNOWN);
    for (unsigned i = 0; i < 90; i++)
        ck_assert_uint_eq(service_content_inject_body(operation, slice_make(piece, sizeof piece)),
                          sizeof piece);
    ck_assert(!is_cached(URL_OF("made")));
    service_content_inject_done(operation);
    ck_assert_int_eq(done(operation), SERVICE_CONTENT_DONE);
    ck_assert(is_cached(URL_OF("made")));

    operation =
        order((struct service_content_order){.kind = SERVICE_CONTENT_READ, .url = URL_OF("made")});
    ck_assert_uint_eq(await(operation)->size, 90 * sizeof piece);
    while ((flow = service_content_read_part(operation, out, sizeof out, &got)) !=
           SERVICE_CONTENT_END) {
        struct pollfd wait = {.fd = service_content_descriptor(operation), .events = POLLIN};
        ck_assert_int_ne(flow, SERVICE_CONTENT_BROKEN);
        seen += got;
        if (flow == SERVICE_CONTENT_WAIT)
            ck_assert_int_eq(poll(&wait, 1, 60000), 1);
    }
    ck_assert_uint_eq(seen, 90 * sizeof piece);
    service_content_close(&operation);
    end_content();
}
END_TEST

START_TEST(what_is_too_much_is_refused) {
    begin_content();
    static char bytes[120 * 1000];
    struct service_content *operations[5], *first = inject_start(90 * 1000), *second;
    ck_assert_uint_eq(service_content_inject_body(first, slice_make(bytes, 90 * 1000)), 90 * 1000);
    ck_assert_uint_eq(service_content_inject_body(first, slice_make(bytes, 1)), 0);
    ck_assert_int_eq(done(first), SERVICE_CONTENT_REFUSED);
    ck_assert_int_eq(done(inject_start(100 * 1000 + 1)), SERVICE_CONTENT_REFUSED);
    first = inject_start(SERVICE_LENGTH_UNKNOWN), second = inject_start(SERVICE_LENGTH_UNKNOWN);
    ck_assert_uint_eq(service_content_inject_body(first, slice_make(bytes, 100 * 1000)),
                      100 * 1000);
    ck_assert_uint_eq(service_content_inject_body(second, slice_make(bytes, 60 * 1000)), 0);
    ck_assert_int_eq(done(second), SERVICE_CONTENT_REFUSED);
    service_content_close(&first);
    for (unsigned i = 0; i < 5; i++)
        operations[i] = order(
            (struct service_content_order){.kind = SERVICE_CONTENT_QUERY, .url = URL_OF("x")});
    ck_assert_ptr_null(operations[4]);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(done(operations[i]), SERVICE_CONTENT_NOT_STORED);
    ck_assert_uint_eq(atomic_load(&the_numbers->refused), 4);
    end_content();
}
END_TEST

START_TEST(what_makes_no_sense_is_refused) {
    begin_content();
    static const struct service_content_order orders[] = {
        {.kind = SERVICE_CONTENT_QUERY, .url = {"nonsense", 8}},
        {.kind = SERVICE_CONTENT_EXPIRE, .url = {"http://a.org/", 13}, .seconds = -1},
        {.kind = SERVICE_CONTENT_INJECT, .url = {"http://a.org/", 13}, .seconds = -2},
        {.kind = SERVICE_CONTENT_INJECT, .url = {"http://a.org/", 13}, .whole = true},
        {.kind = SERVICE_CONTENT_FETCH, .url = {"http://a.org/", 13}}, /* there is no worker */
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        ck_assert_int_eq(done(order(orders[i])), SERVICE_CONTENT_REFUSED);
    end_content();
}
END_TEST

START_TEST(operations_may_be_closed_at_any_time) {
    begin_content();
    put_cached(URL_OF("1"), 5000);
    for (unsigned i = 0; i < 500; i++) {
        struct service_content *operation = order((struct service_content_order){
            .kind = i % 2 == 0 ? SERVICE_CONTENT_READ : SERVICE_CONTENT_EXPIRE,
            .url = URL_OF("1"),
            .seconds = 60});
        ck_assert_ptr_nonnull(operation);
        if (i % 3 == 0)
            await(operation);
        service_content_close(&operation);
        while (atomic_load(&the_numbers->open) > 3)
            usleep(100); /* of those that are at work */
    }
    end_content();
}
END_TEST

START_TEST(the_end_answers_what_is_left) {
    begin_content();
    put_cached(URL_OF("1"), 5000);
    struct service_content *reads =
        order((struct service_content_order){.kind = SERVICE_CONTENT_READ, .url = URL_OF("1")});
    struct service_content *writes = inject_start(SERVICE_LENGTH_UNKNOWN);
    content_executor_stop(the_room);
    await(reads);
    service_content_inject_done(writes);
    ck_assert_int_eq(done(writes), SERVICE_CONTENT_FAILED);
    ck_assert_int_eq(done(order((struct service_content_order){.kind = SERVICE_CONTENT_QUERY,
                                                               .url = URL_OF("1")})),
                     SERVICE_CONTENT_FAILED);
    ck_assert_int_eq(done(order((struct service_content_order){.kind = SERVICE_CONTENT_DELETE,
                                                               .url = URL_OF("1")})),
                     SERVICE_CONTENT_REFUSED);
    ck_assert(is_cached(URL_OF("1")));
    service_content_close(&reads);
    end_content();
}
END_TEST

START_TEST(what_a_service_leaves_open_is_closed) {
    begin_content();
    inject_start(SERVICE_LENGTH_UNKNOWN);
    order((struct service_content_order){.kind = SERVICE_CONTENT_QUERY, .url = URL_OF("1")});
    end_content();
}
END_TEST

Suite *content_suite(void) {
    const TTest *tests[] = {
        stored_objects_are_named_in_any_spelling,
        changes_change,
        pieces_become_an_object_when_it_is_whole,
        what_is_too_much_is_refused,
        what_makes_no_sense_is_refused,
        operations_may_be_closed_at_any_time,
        the_end_answers_what_is_left,
        what_a_service_leaves_open_is_closed,
    };
    return suite_of("content", tests, COUNT_OF(tests));
}
