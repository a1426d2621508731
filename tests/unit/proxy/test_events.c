/* The event stream: its ring between two threads, its queues, its filters, and what a consumer is
 * told of losses. */
#include "suites.h"

#include "base/clocks.h"
#include "events/stream.h"
#include "log/line.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* Writes an event of `length` bytes whose number is in all of them. */
static bool put(struct event_ring *ring, uint64_t number, size_t length) {
    const struct event_head head = {number, 1, 1, (uint32_t)length};
    char *line = event_ring_begin(ring);
    if (line == NULL)
        return false;
    memset(line, (int)(number % 251), length);
    event_ring_end(ring, &head);
    return true;
}

static bool get(struct event_ring *ring, uint64_t number, size_t length) {
    struct event_head head;
    static char line[LOG_LINE_MAX];
    if (!event_ring_take(ring, &head, line))
        return false;
    ck_assert_uint_eq(head.number, number);
    ck_assert_uint_eq(head.length, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] != number % 251)
            ck_abort_msg("byte %zu of event %u is another one's", i, (unsigned)number);
    return true;
}

/* Lengths of all kinds, so that events end everywhere, also behind the end of the ring. */
static size_t length_of(uint64_t number) {
    return number % 7 == 0 ? LOG_LINE_MAX : (size_t)(number * 2654435761u % 9000);
}

START_TEST(a_ring_keeps_what_it_takes) {
    struct event_ring *ring = event_ring_new(EVENT_RING_LEAST);
    uint64_t in = 0, out = 0;
    for (unsigned round = 0; round < 2000; round++) {
        for (unsigned n = round * 31 % 60; n > 0 && put(ring, in, length_of(in)); n--)
            in++;
        for (unsigned n = round * 17 % 50; n > 0 && out < in; n--, out++)
            ck_assert(get(ring, out, length_of(out)));
    }
    for (; out < in; out++)
        ck_assert(get(ring, out, length_of(out)));
    ck_assert(!get(ring, 0, 0));
    ck_assert_uint_gt(in, 10000);
    event_ring_free(&ring);
}
END_TEST

START_TEST(a_full_ring_takes_nothing_and_counts) {
    struct event_ring *ring = event_ring_new(EVENT_RING_LEAST);
    uint64_t count = 0;
    while (put(ring, count, 1000))
        count++;
    ck_assert_uint_gt(count, 100);
    ck_assert_uint_lt(count, 400);
    event_ring_lose(ring, 0, 5);
    event_ring_lose(ring, 31, 5);
    event_ring_lose(ring, 0, 5);
    ck_assert_uint_eq(event_ring_lost(ring, 0, 5), 2);
    ck_assert_uint_eq(event_ring_lost(ring, 1, 5), 0);
    ck_assert_uint_eq(event_ring_lost(ring, 31, 5), 1);
    ck_assert_uint_eq(event_ring_lost(ring, 0, 6), 0); /* the next one with this bit */
    event_ring_lose(ring, 0, 6);
    ck_assert_uint_eq(event_ring_lost(ring, 0, 6), 1);
    ck_assert_uint_eq(event_ring_lost(ring, 0, 5), 0);
    for (uint64_t i = 0; i < count; i++)
        ck_assert(get(ring, i, 1000));
    ck_assert(put(ring, 7, 1000) && get(ring, 7, 1000));
    event_ring_free(&ring);
}
END_TEST

enum { RACED = 20000 };

static void *race(void *arg) {
    for (uint64_t number = 0; number < RACED;)
        if (put(arg, number, number % 3000))
            number++;
        else
            sched_yield();
    return NULL;
}

START_TEST(two_threads_share_a_ring) {
    struct event_ring *ring = event_ring_new(EVENT_RING_LEAST);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, race, ring), 0);
    for (uint64_t number = 0; number < RACED;)
        if (get(ring, number, number % 3000))
            number++;
        else
            sched_yield();
    pthread_join(thread, NULL);
    event_ring_free(&ring);
}
END_TEST

/* Filters. */

static const char *mistake(const char *name, const char *value) {
    static char error[EVENT_FILTER_ERROR];
    struct event_filter *filter = event_filter_new();
    error[0] = '\0';
    if (event_filter_set(filter, name, value, error))
        ck_assert_str_eq(error, "");
    event_filter_release(&filter);
    return error;
}

START_TEST(a_filter_says_what_is_wrong) {
    ck_assert_str_eq(mistake("status", "404,5xx,400-499"), "");
    ck_assert_str_eq(mistake("status", "404,6xx"),
                     "status: \"6xx\" is no status: write 404, 5xx or 400-499");
    ck_assert_str_eq(mistake("client", "10.0.0.0/8,::1"), "");
    ck_assert_str_eq(mistake("client", "x"), "client: \"x\" is not an address or a network: "
                                             "write \"192.0.2.1\" or \"192.0.2.0/24\"");
    ck_assert_str_eq(mistake("method", "GET,,PUT"),
                     "method: \"GET,,PUT\" is no list: write 1 to 32 values with commas");
    ck_assert_str_eq(mistake("min_ms", "1s"),
                     "min_ms: \"1s\" is no number of milliseconds up to 86400000");
    ck_assert(strstr(mistake("result", "hit"), "is no result: write HIT, ") != NULL);
    ck_assert_str_eq(mistake("url", "a,b"), "");
}
END_TEST

static bool fits(const char *name, const char *value, const struct journal *journal) {
    char error[EVENT_FILTER_ERROR] = "";
    struct event_filter *filter = event_filter_new();
    ck_assert_msg(event_filter_set(filter, name, value, error), "%s", error);
    bool good = event_filter_fits(filter, journal, NULL);
    event_filter_release(&filter);
    return good;
}

START_TEST(a_filter_fits) {
    struct address client, mapped;
    ck_assert(address_parse_ip(&client, SLICE("192.0.2.7"), 80));
    ck_assert(address_parse_ip(&mapped, SLICE("::ffff:192.0.2.7"), 80));
    struct journal journal = {.method = SLICE("GET"),
                              .url = SLICE("http://www.example.org/a?b"),
                              .host = SLICE("www.example.org"),
                              .user = SLICE("anna"),
                              .client_address = &client,
                              .status = 404,
                              .duration = 1999,
                              .result = RESULT_MISS};
    const struct {
        const char *name, *value;
        bool fits;
    } cases[] = {
        {"host", "WWW.example.org", true},
        {"host", "example.org", false},
        {"host", ".example.org", true},
        {"host", ".ample.org", false},
        {"host", "x,.org", true},
        {"host", ".www.example.org", true},
        {"method", "get", false},
        {"method", "PUT,GET", true},
        {"status", "4xx", true},
        {"status", "499,500-599", false},
        {"result", "HIT,MISS", true},
        {"result", "HIT", false},
        {"user", "anna", true},
        {"user", "Anna", false},
        {"url", "org/a", true},
        {"url", "ORG/a", false},
        {"min_ms", "1", true},
        {"min_ms", "2", false},
        {"client", "192.0.2.0/24", true},
        {"client", "192.0.2.8,::/0", false},
        {"class", "none", false},
        {"service", "gray", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_msg(fits(cases[i].name, cases[i].value, &journal) == cases[i].fits, "%s=%s",
                      cases[i].name, cases[i].value);
    journal.client_address = &mapped;
    ck_assert(fits("client", "192.0.2.7", &journal));
    journal.client_address = NULL;
    ck_assert(!fits("client", "0.0.0.0/0", &journal));
    journal.status = 0; /* it left before there was one */
    ck_assert(fits("status", "499", &journal));
}
END_TEST

/* A stream whose one worker is this thread. */

static struct event_watch *published;

static void publish(void *context, struct event_watch *watch) {
    (void)context;
    event_watch_release(&published);
    published = event_watch_reference(watch);
}

static void wait_for_nobody(void *context) {
    (void)context;
}

static void pause_reading(void *arg) {
    ++*(unsigned *)arg;
}

static void read_on(void *arg) {
    --*(unsigned *)arg;
}

static void post(uint64_t number, size_t length) {
    struct event_head head = {number, published->number, 1, (uint32_t)length};
    char *line = event_ring_begin(published->rings[0]);
    if (line == NULL) {
        event_ring_lose(published->rings[0], 0, published->since[0]);
        return;
    }
    memset(line, 'x', length);
    event_ring_end(published->rings[0], &head);
}

/* What the consumer has been told is lost, and how many events it got, when it has read to the end. */
static void read_to_the_end(struct event_consumer *consumer, uint64_t *lost, uint64_t *events) {
    static char text[64 << 20];
    size_t length = 0;
    ssize_t got;
    while ((got = event_consumer_read(consumer, text + length, 5000, pause_reading)) > 0)
        length += (size_t)got;
    ck_assert_int_eq(got, -1);
    text[length] = '\0';
    *lost = *events = 0;
    for (const char *at = text; (at = strstr(at, "{\"lost\":")) != NULL; at++)
        *lost += strtoull(at + strlen("{\"lost\":"), NULL, 10);
    for (const char *at = text; (at = strstr(at, "id: ")) != NULL; at++)
        ++*events;
}

static const struct event_demand one_of_each = {.workers = 1,
                                                .consumers = 1,
                                                .queue = EVENT_RING_LEAST,
                                                .heartbeat = 3600000,
                                                .publish = publish,
                                                .await = wait_for_nobody};

START_TEST(each_event_comes_or_is_counted) {
    struct event_stream *stream = event_stream_new(&one_of_each);
    struct event_filter *filter = event_filter_new(), *second = event_filter_new();
    struct event_numbers numbers;
    uint64_t lost, events;
    unsigned paused = 0;
    struct event_consumer *consumer = event_stream_join(stream, &filter);
    ck_assert_ptr_nonnull(consumer);
    ck_assert_ptr_null(filter);
    event_consumer_bind(consumer, -1, read_on, &paused);
    ck_assert_ptr_null(event_stream_join(stream, &second));
    ck_assert_ptr_null(second);
    for (unsigned i = 0; i < 1000; i++)
        post(i, 3000);
    event_stream_end(stream, 0);
    read_to_the_end(consumer, &lost, &events);
    event_stream_numbers(stream, &numbers);
    ck_assert_uint_gt(events, 10);
    ck_assert_uint_eq(numbers.sent, events);
    ck_assert_uint_eq(numbers.sent + numbers.lost, 1000);
    ck_assert_uint_eq(numbers.refused, 1);
    ck_assert_uint_eq(paused, 0);
    event_consumer_leave(&consumer);
    ck_assert_ptr_null(published);
    event_stream_free(&stream);
}
END_TEST

/* Reads until `what` has come, without an end of the stream; false: it did not come in time. */
static bool comes(struct event_consumer *consumer, const char *what, unsigned milliseconds) {
    static char text[2 << 20];
    size_t length = 0;
    for (unsigned waited = 0; waited <= milliseconds; waited++) {
        ssize_t got;
        while ((got = event_consumer_read(consumer, text + length, 5000, pause_reading)) > 0)
            length += (size_t)got;
        text[length] = '\0';
        if (strstr(text, what) != NULL)
            return true;
        usleep(1000);
    }
    return false;
}

/* As soon as a consumer reads again it is told, and not with the next event or comment. */
START_TEST(a_loss_is_told_at_once) {
    struct event_stream *stream = event_stream_new(&one_of_each);
    struct event_filter *filter = event_filter_new();
    struct event_numbers numbers = {0};
    unsigned paused = 0;
    struct event_consumer *consumer = event_stream_join(stream, &filter);
    event_consumer_bind(consumer, -1, read_on, &paused);
    while (numbers.lost == 0) {
        post(1, 3000);
        usleep(100);
        event_stream_numbers(stream, &numbers);
    }
    ck_assert(comes(consumer, "event: lost\ndata: {\"lost\":", 2000));
    event_consumer_leave(&consumer);
    event_stream_free(&stream);
}
END_TEST

START_TEST(a_silent_stream_has_comments) {
    struct event_demand demand = one_of_each;
    demand.heartbeat = 100;
    struct event_stream *stream = event_stream_new(&demand);
    struct event_filter *filter = event_filter_new();
    unsigned paused = 0;
    struct event_consumer *consumer = event_stream_join(stream, &filter);
    event_consumer_bind(consumer, -1, read_on, &paused);
    ck_assert(comes(consumer, "retry: 1000\n\n", 0));
    uint64_t begun = clocks_milliseconds(CLOCK_MONOTONIC);
    ck_assert(comes(consumer, ":\n\n:\n\n", 5000));
    ck_assert_uint_ge(clocks_milliseconds(CLOCK_MONOTONIC) - begun, 190);
    event_consumer_leave(&consumer);
    event_stream_free(&stream);
}
END_TEST

/* What was meant for the consumer that had the bit before is not shown to the next one. */
START_TEST(a_bit_belongs_to_one_after_the_other) {
    struct event_stream *stream = event_stream_new(&one_of_each);
    struct event_filter *filter = event_filter_new(), *second = event_filter_new();
    uint64_t lost, events;
    struct event_consumer *consumer = event_stream_join(stream, &filter);
    struct event_watch *before = event_watch_reference(published);
    event_consumer_leave(&consumer);
    consumer = event_stream_join(stream, &second);
    const struct event_head late = {1, before->number, 1, 0};
    ck_assert_ptr_nonnull(event_ring_begin(before->rings[0]));
    event_ring_end(before->rings[0], &late);
    event_ring_lose(before->rings[0], 0, before->since[0]);
    post(2, 100);
    event_stream_end(stream, 0);
    read_to_the_end(consumer, &lost, &events);
    ck_assert_uint_eq(lost, 0);
    ck_assert_uint_eq(events, 1);
    event_watch_release(&before);
    event_consumer_leave(&consumer);
    event_stream_free(&stream);
}
END_TEST

Suite *events_suite(void) {
    Suite *suite = suite_create("events");
    TCase *ring = tcase_create("ring");
    tcase_add_test(ring, a_ring_keeps_what_it_takes);
    tcase_add_test(ring, a_full_ring_takes_nothing_and_counts);
    tcase_add_test(ring, two_threads_share_a_ring);
    suite_add_tcase(suite, ring);
    TCase *filter = tcase_create("filter");
    tcase_add_test(filter, a_filter_says_what_is_wrong);
    tcase_add_test(filter, a_filter_fits);
    suite_add_tcase(suite, filter);
    TCase *stream = tcase_create("stream");
    tcase_add_test(stream, each_event_comes_or_is_counted);
    tcase_add_test(stream, a_bit_belongs_to_one_after_the_other);
    tcase_add_test(stream, a_loss_is_told_at_once);
    tcase_add_test(stream, a_silent_stream_has_comments);
    suite_add_tcase(suite, stream);
    return suite;
}
