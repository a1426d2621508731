/* The frames between a worker and a runner: bytes in their order, and what a side that lies about its
 * lengths can cause. */
#include "suites.h"

#include "runner/frame.h"
#include "runner/link.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct pair {
    struct link_ring *shared[2];
    struct link worker, runner;
    int fds[2];
};

static void pair_open(struct pair *pair) {
    for (unsigned i = 0; i < 2; i++) {
        pair->shared[i] = aligned_alloc(RING_LINE, sizeof **pair->shared);
        memset(pair->shared[i], 0, sizeof **pair->shared);
        pair->fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    link_open(&pair->worker, pair->shared[0], pair->shared[1], pair->fds[0]);
    link_open(&pair->runner, pair->shared[1], pair->shared[0], pair->fds[1]);
}

static void pair_close(struct pair *pair) {
    for (unsigned i = 0; i < 2; i++) {
        free(pair->shared[i]);
        close(pair->fds[i]);
    }
}

static bool was_woken(int fd) {
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count;
}

START_TEST(frames_are_whole_or_not_there) {
    struct pair pair;
    struct frame frame = {.type = FRAME_BODY, .length = FRAME_PAYLOAD, .slot = 3, .serial = 9},
                 seen;
    static char bytes[FRAME_PAYLOAD], payload[FRAME_PAYLOAD];
    unsigned sent = 0, got = 0;
    pair_open(&pair);
    memset(bytes, 'x', sizeof bytes);
    while (link_send(&pair.worker, &frame, bytes))
        frame.number = ++sent;
    ck_assert_uint_eq(sent, LINK_RING / (FRAME_PAYLOAD + sizeof frame));
    ck_assert(link_await_room(&pair.worker));
    while (link_receive(&pair.runner, &seen, payload) == LINK_FRAME) {
        ck_assert(seen.number == got && seen.slot == 3 && seen.serial == 9);
        ck_assert_mem_eq(payload, bytes, seen.length);
        got++;
    }
    ck_assert_uint_eq(got, sent);
    link_flush(&pair.runner);
    ck_assert(was_woken(pair.fds[1])); /* the writer waited for room */
    ck_assert(!link_await_room(&pair.worker));
    pair_close(&pair);
}
END_TEST

/* A reader that sleeps is woken once, and one that is awake not at all. */
START_TEST(only_a_sleeper_is_woken) {
    struct pair pair;
    const struct frame frame = {.type = FRAME_IDLE};
    struct frame seen;
    static char payload[FRAME_PAYLOAD];
    pair_open(&pair);
    ck_assert(link_send(&pair.worker, &frame, NULL));
    link_flush(&pair.worker);
    ck_assert(!was_woken(pair.fds[0]));
    ck_assert(!link_sleep(&pair.runner)); /* there is something */
    ck_assert_int_eq(link_receive(&pair.runner, &seen, payload), LINK_FRAME);
    ck_assert(link_sleep(&pair.runner));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(link_send(&pair.worker, &frame, NULL));
        link_flush(&pair.worker);
        ck_assert(was_woken(pair.fds[0]) == (i == 0));
    }
    pair_close(&pair);
}
END_TEST

START_TEST(forged_frames_break_the_link) {
    static const struct frame forged[] = {
        {.type = 0},
        {.type = FRAME_TYPES},
        {.type = 0xffffffff},
        {.type = FRAME_BODY, .length = 1}, /* nothing is behind it */
        {.type = FRAME_BODY, .length = FRAME_PAYLOAD + 1},
        {.type = FRAME_BODY, .length = 0xffffffff},
        {.type = FRAME_BODY, .length = 0xfffffff9},
    };
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        struct pair pair;
        struct frame seen;
        static char payload[FRAME_PAYLOAD];
        pair_open(&pair);
        ring_write(&pair.runner.out, &forged[i], sizeof forged[i]);
        ring_publish(&pair.runner.out);
        ck_assert_int_eq(link_receive(&pair.worker, &seen, payload), LINK_BROKEN);
        ck_assert_int_eq(link_receive(&pair.worker, &seen, payload), LINK_BROKEN);
        pair_close(&pair);
        pair_open(&pair);
        ring_write(&pair.runner.out, &forged[i], sizeof forged[i] - 1); /* a part of one */
        ring_publish(&pair.runner.out);
        ck_assert_int_eq(link_receive(&pair.worker, &seen, payload), LINK_BROKEN);
        pair_close(&pair);
    }
}
END_TEST

enum { FRAMES = 20000 };

static void *send_all(void *arg) {
    struct pair *pair = arg;
    char bytes[64];
    for (uint32_t i = 0; i < FRAMES;) {
        const struct frame frame = {.type = FRAME_BODY, .length = i % sizeof bytes, .number = i};
        memset(bytes, (int)i, sizeof bytes);
        i += link_send(&pair->worker, &frame, bytes);
        link_flush(&pair->worker);
    }
    return NULL;
}

START_TEST(two_threads_lose_nothing) {
    struct pair pair;
    static char payload[FRAME_PAYLOAD];
    pthread_t thread;
    pair_open(&pair);
    ck_assert_int_eq(pthread_create(&thread, NULL, send_all, &pair), 0);
    for (uint32_t i = 0; i < FRAMES;) {
        struct frame frame;
        enum link_status status = link_receive(&pair.runner, &frame, payload);
        ck_assert_int_ne(status, LINK_BROKEN);
        if (status == LINK_EMPTY)
            continue;
        ck_assert_uint_eq(frame.number, i);
        for (uint32_t at = 0; at < frame.length; at++)
            ck_assert_int_eq(payload[at], (char)i);
        i++;
        link_flush(&pair.runner);
    }
    pthread_join(thread, NULL);
    pair_close(&pair);
}
END_TEST

static bool add_all(struct bundle *bundle, const char *text, size_t length, size_t piece) {
    for (size_t at = 0; at < length; at += piece) {
        size_t left = length - at < piece ? length - at : piece;
        const struct frame frame = {
            .type = FRAME_VERDICT, .length = (uint32_t)left, .number = length};
        if (!bundle_add(bundle, &frame, text + at))
            return false;
    }
    return bundle_is_whole(bundle);
}

/* What was written is read again, however it is cut; and cut short it is nothing. */
START_TEST(facts_come_back) {
    const struct facts_verdict verdict = {.answers = 1,
                                          .failed = 1,
                                          .body_length = 6,
                                          .lifetime = 60,
                                          .version = 11,
                                          .head = SLICE("HTTP/1.1 200 OK\r\n\r\n"),
                                          .because = SLICE("tired")};
    size_t length;
    char *text = facts_of_verdict(&verdict, &length);
    for (size_t piece = 1; piece <= length; piece++) {
        struct bundle bundle = {0};
        struct facts_verdict seen;
        ck_assert(add_all(&bundle, text, length, piece));
        ck_assert(facts_read_verdict(&seen, &bundle));
        ck_assert(slice_equal(seen.head, verdict.head) &&
                  slice_equal(seen.because, verdict.because));
        ck_assert(seen.answers == 1 && seen.failed == 1 && seen.skip == 0 && seen.keeps_body == 0);
        ck_assert(seen.body_length == 6 && seen.lifetime == 60 && seen.version == 11);
        bundle_release(&bundle);
        ck_assert(add_all(&bundle, text, piece - 1 > 0 ? piece - 1 : 1, 5));
        ck_assert(!facts_read_verdict(&seen, &bundle));
        bundle_release(&bundle);
    }
    free(text);
}
END_TEST

START_TEST(bundles_take_no_lies) {
    struct bundle bundle = {0};
    struct frame frame = {.type = FRAME_VERDICT, .length = 4, .number = 8};
    ck_assert(bundle_add(&bundle, &frame, "abcd"));
    frame.number = 9; /* another length of the whole */
    ck_assert(!bundle_add(&bundle, &frame, "efgh"));
    frame.number = 8;
    frame.length = 5; /* more than the whole */
    ck_assert(!bundle_add(&bundle, &frame, "efghi"));
    frame.length = 0;
    ck_assert(!bundle_add(&bundle, &frame, ""));
    bundle_release(&bundle);
    frame = (struct frame){.type = FRAME_VERDICT, .length = 4, .number = FRAME_TEXT_MAX + 1};
    ck_assert(!bundle_add(&bundle, &frame, "abcd"));
    frame.number = 3;
    ck_assert(!bundle_add(&bundle, &frame, "abcd"));
    bundle_release(&bundle);
}
END_TEST

Suite *runner_ring_suite(void) {
    const TTest *tests[] = {
        frames_are_whole_or_not_there, only_a_sleeper_is_woken, forged_frames_break_the_link,
        two_threads_lose_nothing,      facts_come_back,         bundles_take_no_lies,
    };
    return suite_of("runner_ring", tests, COUNT_OF(tests));
}
