/* The store of inspected transactions: its bounds, and whose exchanges it takes. */
#include "suites.h"

#include "record/inspections.h"

#include <stdio.h>

static struct inspections *store;

static void begin(uint64_t transactions, const char *host) {
    struct record_filter filter = {0};
    char error[RECORD_FILTER_ERROR];
    const struct inspection_wish wish = {
        .transactions = transactions, .seconds = 60, .masked = true};
    if (host != NULL)
        ck_assert(record_filter_set(&filter, "host", host, error));
    ck_assert(inspections_begin(store, &filter, &wish));
    inspections_open(store);
    record_filter_release(&filter);
}

static bool begin_unmasked(void) {
    struct record_filter filter = {0};
    const struct inspection_wish wish = {.transactions = 1, .seconds = 60};
    return inspections_begin(store, &filter, &wish);
}

static struct inspected *take(unsigned number, const char *url) {
    char id[SLICE_HEX + 1];
    snprintf(id, sizeof id, "%016x", number);
    const struct inspection_facts facts = {.id = slice_from(id),
                                           .client = SLICE("192.0.2.7"),
                                           .method = SLICE("GET"),
                                           .url = slice_from(url)};
    return inspections_take(store, &facts);
}

static void end(struct inspected *inspected) {
    const struct inspected_outcome outcome = {.result = SLICE("HIT"), .status = 200};
    inspected_end(&inspected, &outcome);
}

static struct inspections_state state(void) {
    struct inspections_state now;
    inspections_state(store, &now);
    return now;
}

static void keep(const char *id, size_t length) {
    const struct recorder_sink sink = inspections_sink(store);
    char *bytes = calloc(1, length);
    ck_assert_ptr_nonnull(bytes);
    sink.keep(sink.arg, slice_from(id), bytes, length);
}

static void expect_masked(void *arg, const struct inspected *inspected) {
    (void)arg;
    ck_assert(slice_equal(inspected->heads[INSPECTED_REQUEST],
                          SLICE("GET / HTTP/1.1\r\nCookie: masked\r\n\r\n")));
    ck_assert_str_eq(inspected->steps[0].found, "all");
}

START_TEST(only_what_was_asked_for_is_taken) {
    store = inspections_new();
    ck_assert_ptr_null(take(1, "http://a.example/"));
    begin(1, "a.example");
    ck_assert_ptr_null(take(2, "http://b.example/"));
    struct inspected *inspected = take(3, "http://a.example/");
    ck_assert_ptr_nonnull(inspected);
    ck_assert_ptr_null(take(4, "http://a.example/"));
    const struct inspected_step step = {.name = "RECEIVE", .found = "all"};
    inspected_add_step(inspected, &step);
    inspected_set_head(inspected, INSPECTED_REQUEST,
                       SLICE("GET / HTTP/1.1\r\nCookie: secret\r\n\r\n"));
    const struct recorder_sink sink = inspections_sink(store);
    ck_assert(!sink.is_over(sink.arg)); /* its exchanges are still to come */
    bool masked = false;
    ck_assert(sink.wants(sink.arg, SLICE("0000000000000003"), &masked));
    ck_assert(masked);
    ck_assert(!sink.wants(sink.arg, SLICE("0000000000000004"), &masked));
    end(inspected);
    ck_assert(sink.is_over(sink.arg));
    ck_assert(inspections_find(store, SLICE("0000000000000003"), expect_masked, NULL));
    ck_assert(!inspections_find(store, SLICE("0000000000000004"), expect_masked, NULL));
    ck_assert_uint_eq(inspections_clear(store), 1);
    ck_assert_uint_eq(state().memory, 0);
    inspections_free(&store);
}
END_TEST

/* The recorder of the next inspection may record what the one before has taken, and the other way
 * round, as long as workers have either. */
START_TEST(the_inspection_of_a_transaction_masks_its_exchanges) {
    store = inspections_new();
    begin(2, NULL);
    struct inspected *masked = take(1, "http://a.example/");
    inspections_stop(store);
    ck_assert(begin_unmasked());
    inspections_open(store);
    struct inspected *unmasked = take(2, "http://a.example/");
    const struct recorder_limits limits = RECORDER_LIMITS;
    const struct recorder_sink sink = inspections_sink(store);
    struct recorder *recorder = recorder_for(&sink, &limits);
    struct recorded_exchange of_masked = {.id = SLICE("0000000000000001")};
    struct recorded_exchange of_unmasked = {.id = SLICE("0000000000000002")};
    ck_assert(recorder_begin(recorder, &of_masked));
    ck_assert_uint_eq(of_masked.masked, 1);
    ck_assert(recorder_begin(recorder, &of_unmasked));
    ck_assert_uint_eq(of_unmasked.masked, 0);
    recorder_release(&recorder);
    end(masked);
    end(unmasked);
    inspections_free(&store);
}
END_TEST

/* The workers have no recorder yet that would record the exchanges of what is taken. */
START_TEST(nothing_is_taken_before_the_inspection_is_open) {
    store = inspections_new();
    const struct recorder_sink sink = inspections_sink(store);
    ck_assert(begin_unmasked());
    ck_assert(!inspections_are_over(store));
    ck_assert(!sink.is_over(sink.arg)); /* workers keep the recorder */
    ck_assert_ptr_null(take(1, "http://a.example/"));
    ck_assert(!begin_unmasked());
    inspections_stop(store);
    inspections_open(store); /* too late */
    ck_assert(inspections_are_over(store));
    ck_assert_ptr_null(take(2, "http://a.example/"));
    ck_assert(begin_unmasked());
    inspections_open(store);
    struct inspected *inspected = take(3, "http://a.example/");
    ck_assert_ptr_nonnull(inspected);
    end(inspected);
    inspections_free(&store);
}
END_TEST

/* Whoever looks holds no worker up: another may use the store meanwhile. */
static void forget_while_looking(void *arg, const struct inspected *inspected) {
    unsigned *seen = arg;
    ck_assert_uint_le(inspections_clear(store), 1);
    ck_assert_uint_eq(state().kept, 0);
    ck_assert_str_eq(inspected->url, "http://a.example/");
    ck_assert_str_eq(inspected->result, "HIT");
    ++*seen;
}

START_TEST(a_reader_holds_nobody_up) {
    unsigned seen = 0;
    store = inspections_new();
    begin(2, NULL);
    end(take(1, "http://a.example/"));
    ck_assert(inspections_find(store, SLICE("0000000000000001"), forget_while_looking, &seen));
    end(take(2, "http://a.example/"));
    inspections_each(store, forget_while_looking, &seen);
    ck_assert_uint_eq(seen, 2);
    inspections_free(&store);
}
END_TEST

START_TEST(a_million_transactions_take_bounded_memory) {
    store = inspections_new();
    for (unsigned number = 0; number < 1000000; number++) {
        if (number % INSPECTIONS_KEPT == 0)
            begin(INSPECTIONS_KEPT, NULL);
        struct inspected *inspected = take(number, "http://a.example/");
        ck_assert_ptr_nonnull(inspected);
        end(inspected);
    }
    ck_assert_uint_eq(state().kept, INSPECTIONS_KEPT);
    ck_assert_uint_eq(state().evicted, 1000000 - INSPECTIONS_KEPT);
    ck_assert_uint_le(state().memory, INSPECTIONS_MEMORY);
    inspections_free(&store);
}
END_TEST

START_TEST(large_exchanges_push_out_older_ones_and_never_exceed_the_memory) {
    const size_t large = 20 << 20;
    store = inspections_new();
    begin(10, NULL);
    struct inspected *last = NULL;
    for (unsigned number = 1; number <= 5; number++) {
        char id[SLICE_HEX + 1];
        snprintf(id, sizeof id, "%016x", number);
        last = take(number, "http://a.example/");
        keep(id, large);
        ck_assert_uint_le(state().memory, INSPECTIONS_MEMORY);
        if (number < 5)
            end(last);
    }
    ck_assert_uint_eq(state().kept, 3);
    keep("0000000000000005", large); /* takes the room of the others */
    keep("0000000000000005", large);
    ck_assert_uint_eq(state().kept, 1);
    keep("0000000000000005", large); /* there is no room for a fourth one */
    ck_assert_uint_eq(last->left_out, 1);
    keep("00000000000000ff", 1000); /* nobody's */
    ck_assert_uint_le(state().memory, INSPECTIONS_MEMORY);
    end(last);
    inspections_free(&store);
}
END_TEST

/* A transaction under way is never evicted: its worker has it. */
START_TEST(when_all_are_under_way_no_more_are_taken) {
    struct inspected *all[INSPECTIONS_KEPT];
    store = inspections_new();
    begin(INSPECTIONS_KEPT, NULL);
    for (unsigned i = 0; i < INSPECTIONS_KEPT; i++)
        all[i] = take(i, "http://a.example/");
    begin(1, NULL);
    ck_assert_ptr_null(take(1000, "http://a.example/"));
    ck_assert_uint_eq(state().left_out, 1);
    ck_assert_uint_eq(inspections_clear(store), 0);
    for (unsigned i = 0; i < INSPECTIONS_KEPT; i++)
        end(all[i]);
    ck_assert_uint_eq(inspections_clear(store), INSPECTIONS_KEPT);
    inspections_free(&store);
}
END_TEST

Suite *inspections_suite(void) {
    const TTest *const tests[] = {only_what_was_asked_for_is_taken,
                                  the_inspection_of_a_transaction_masks_its_exchanges,
                                  nothing_is_taken_before_the_inspection_is_open,
                                  a_reader_holds_nobody_up,
                                  a_million_transactions_take_bounded_memory,
                                  large_exchanges_push_out_older_ones_and_never_exceed_the_memory,
                                  when_all_are_under_way_no_more_are_taken};
    return suite_of("inspections", tests, COUNT_OF(tests));
}
