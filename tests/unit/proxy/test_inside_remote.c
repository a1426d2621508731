/* A message at a runner, as its worker sees it, against a runner that says what the test writes: when
 * the runner is free again, what arrives late, and what a runner may not say. */
#include "suites.h"

#include "event/source.h"
#include "http/head_parser.h"
#include "inside/call.h"
#include "inside/remote.h"

#include <string.h>
#include <unistd.h>

enum { LONG_BODY = 200 * 1024 };

struct remote_lab {
    struct loop loop;
    struct net_context net;
    struct mailbox mailbox;
    struct arena arena;
    struct adapter_host host;
    struct service_settings settings;
    struct inside_shared shared;
    struct inside_instance instance;
    struct inside_service service;
    struct inside_runners *runners;
    struct inside_run *run;
    struct link peer; /* the runner's side */
    char payload[FRAME_PAYLOAD];
    struct http_head request, response, adapted;
    struct task task;
    struct inside_call call;
    struct bytes_source origin;
    uint32_t slot, serial; /* of the call */
};

static void remote_lab_on_task(struct task *task) {
    (void)task;
}

static void remote_lab_parse(struct remote_lab *lab) {
    static const char request[] = "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n";
    static const char response[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    ck_assert(http_head_parse_request(&lab->request, request, strlen(request), 0) > 0);
    ck_assert(http_head_parse_response(&lab->response, response, strlen(response), 0) > 0);
}

static void remote_lab_make_instance(struct remote_lab *lab) {
    struct inside_instance *instance = &lab->instance;
    lab->runners = inside_runners_new(&lab->settings, 1);
    lab->run = inside_run_new(1, false, -1);
    ck_assert_ptr_nonnull(lab->run);
    struct inside_run *run = inside_run_reference(lab->run);
    inside_runner_set(&lab->runners->runners[0], &run, 0, NULL);
    INIT_OBJ(instance, INSIDE_INSTANCE_MAGIC);
    atomic_init(&instance->references, 2);
    instance->remote_ops.preview_size = 1024;
    inside_remote_functions(&instance->remote_ops);
    instance->ops = instance->module = &instance->remote_ops;
    instance->runners = lab->runners;
    instance->name = "odd";
}

static void remote_lab_open_service(struct remote_lab *lab) {
    struct inside_service *service = &lab->service;
    lab->shared.magic = INSIDE_SHARED_MAGIC;
    shared_service_init(&lab->shared.shared, NULL, &lab->settings, NULL);
    lab->shared.instance = &lab->instance;
    lab->shared.places = inside_concurrency_new(&lab->settings, NULL);
    atomic_init(&lab->shared.era, UINT64_MAX);
    service->magic = INSIDE_SERVICE_MAGIC;
    adapter_init(&service->base, &lab->shared.shared, &lab->settings, &lab->host);
    service->net = &lab->net;
    service->shared = &lab->shared;
    service->runner_links = inside_runner_links_open(lab->runners, 0, &lab->loop);
    inside_queue_init(&service->queue, lab->shared.places, &lab->settings, &lab->loop,
                      &lab->mailbox);
}

static struct remote_lab *remote_lab_open(size_t keep) {
    static char *uris[] = {"module:odd", NULL};
    struct remote_lab *lab = xcalloc(1, sizeof *lab);
    ck_assert(loop_init(&lab->loop));
    ck_assert(mailbox_init(&lab->mailbox, &lab->loop));
    net_context_init(&lab->net, &lab->loop);
    arena_init(&lab->arena);
    lab->host.net = &lab->net;
    lab->settings = (struct service_settings){.name = "odd",
                                              .uri_texts = uris,
                                              .endpoint_count = 1,
                                              .runs = SERVICE_RUNS_THREAD,
                                              .threads = 1,
                                              .timeout = 10000,
                                              .max_messages = 1000,
                                              .queue_max = 10,
                                              .queue_timeout = 10000,
                                              .preview = 4096,
                                              .keep = keep,
                                              .temporary_directory = "/tmp"};
    remote_lab_parse(lab);
    remote_lab_make_instance(lab);
    remote_lab_open_service(lab);
    link_open(&lab->peer, board_ring(lab->run->board, 0, BOARD_TO_WORKER),
              board_ring(lab->run->board, 0, BOARD_TO_RUNNER), lab->run->worker_fds[0]);
    task_init(&lab->task, remote_lab_on_task);
    return lab;
}

static struct inside_link *remote_lab_link(struct remote_lab *lab) {
    return &lab->service.runner_links->links[0];
}

/* Until nothing is deferred any more. */
static void remote_lab_turn(struct remote_lab *lab) {
    struct task awake;
    task_init(&awake, remote_lab_on_task);
    link_flush(&lab->peer);
    for (unsigned i = 0; i < 6; i++) {
        loop_defer(&lab->loop, &awake);
        loop_run_once(&lab->loop);
    }
    task_cancel(&awake);
}

/* NULL: there is no body. */
static void remote_lab_start(struct remote_lab *lab, const char *body, size_t length) {
    struct source *source =
        body == NULL ? NULL
                     : bytes_source_start(&lab->origin, slice_make(body, length), &lab->loop);
    const struct adapter_request request = {
        .request = &lab->request,
        .response = &lab->response,
        .body = &source,
        .arena = &lab->arena,
    };
    inside_call_start(&lab->call, &lab->service, &request, &lab->adapted, &lab->task);
}

/* The next frame of the message, and whether there is one. */
static bool peer_hears(struct remote_lab *lab, struct frame *frame) {
    while (link_receive(&lab->peer, frame, lab->payload) == LINK_FRAME)
        if (frame->slot < FRAME_SLOTS)
            return true;
    return false;
}

static void peer_expects(struct remote_lab *lab, enum frame_type type) {
    struct frame frame;
    ck_assert(peer_hears(lab, &frame));
    ck_assert_uint_eq(frame.type, type);
    lab->slot = frame.slot;
    lab->serial = frame.serial;
}

static void peer_says_bytes(struct remote_lab *lab, enum frame_type type, uint64_t number,
                            const char *bytes, size_t length) {
    const struct frame frame = {.type = type,
                                .length = (uint32_t)length,
                                .slot = lab->slot,
                                .serial = lab->serial,
                                .number = number};
    ck_assert(link_send(&lab->peer, &frame, bytes));
}

static void peer_says(struct remote_lab *lab, enum frame_type type, uint64_t number) {
    peer_says_bytes(lab, type, number, NULL, 0);
}

static void peer_decides(struct remote_lab *lab, const struct facts_verdict *facts) {
    size_t length;
    char *text = facts_of_verdict(facts, &length);
    ck_assert_ptr_nonnull(text);
    peer_says_bytes(lab, FRAME_VERDICT, length, text, length);
    free(text);
}

static void peer_skips(struct remote_lab *lab) {
    peer_decides(lab, &(const struct facts_verdict){.skip = 1, .version = 11});
}

static void peer_adapts(struct remote_lab *lab, bool keeps_body) {
    peer_decides(
        lab, &(const struct facts_verdict){.keeps_body = keeps_body,
                                           .version = 11,
                                           .body_length = SERVICE_LENGTH_UNKNOWN,
                                           .head = SLICE("HTTP/1.1 200 OK\r\nX-Odd: 1\r\n\r\n")});
}

/* CLOSE has come, although the call goes on; the slot is free for others behind CLOSED. */
static void peer_is_let_go(struct remote_lab *lab) {
    struct inside_link *link = remote_lab_link(lab);
    peer_expects(lab, FRAME_CLOSE);
    ck_assert_uint_eq(link->free_count, FRAME_SLOTS - 1);
    peer_says(lab, FRAME_CLOSED, 0);
    remote_lab_turn(lab);
    ck_assert_uint_eq(link->free_count, FRAME_SLOTS);
    ck_assert_uint_eq(atomic_load(&lab->run->under_way), 0);
}

/* Is the run over because the runner said what it may not say? */
static bool is_caught(const struct remote_lab *lab) {
    return atomic_load(&lab->run->broken) != NULL;
}

/* The body that comes out, to its end. */
static void remote_lab_reads(struct remote_lab *lab, const char *expected, size_t length) {
    static char bytes[LONG_BODY + 1];
    size_t all = 0, got;
    struct source *body = inside_call_body(&lab->call);
    while (source_read(body, bytes + all, sizeof bytes - all, &got) == SOURCE_DATA)
        all += got;
    ck_assert_uint_eq(all, length);
    ck_assert_mem_eq(bytes, expected, length);
}

static void remote_lab_close(struct remote_lab *lab) {
    inside_call_close(&lab->call);
    remote_lab_turn(lab);
    inside_runner_links_close(&lab->service.runner_links);
    inside_queue_release(&lab->service.queue);
    adapter_release(&lab->service.base);
    inside_concurrency_release(&lab->shared.places);
    shared_service_end(&lab->shared.shared);
    inside_run_release(&lab->run);
    inside_runners_free(&lab->runners);
    task_cancel(&lab->task);
    arena_release(&lab->arena);
    net_context_release(&lab->net);
    mailbox_release(&lab->mailbox);
    loop_release(&lab->loop);
    free(lab);
}

static const char *long_body(void) {
    static char bytes[LONG_BODY];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 23);
    return bytes;
}

/* When the runner is free again */

START_TEST(who_is_left_alone_frees_the_runner) {
    struct remote_lab *lab = remote_lab_open(1 << 16);
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_expects(lab, FRAME_BODY);
    peer_expects(lab, FRAME_PREVIEW);
    peer_skips(lab);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_UNMODIFIED);
    peer_is_let_go(lab);
    remote_lab_close(lab);
}
END_TEST

/* No copy is kept: what was read goes out, and then the rest. */
START_TEST(who_passes_frees_the_runner) {
    struct remote_lab *lab = remote_lab_open(0);
    remote_lab_start(lab, long_body(), LONG_BODY);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_expects(lab, FRAME_BODY);
    peer_expects(lab, FRAME_PREVIEW);
    peer_skips(lab);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_MODIFIED);
    peer_is_let_go(lab);
    remote_lab_reads(lab, long_body(), LONG_BODY);
    remote_lab_close(lab);
}
END_TEST

START_TEST(who_changes_the_head_frees_the_runner) {
    struct remote_lab *lab = remote_lab_open(1 << 20);
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_expects(lab, FRAME_BODY);
    peer_expects(lab, FRAME_PREVIEW);
    peer_adapts(lab, true);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_MODIFIED);
    ck_assert_ptr_nonnull(http_head_find_text(lab->call.base.adapted, SLICE("X-Odd")));
    peer_is_let_go(lab);
    remote_lab_close(lab);
}
END_TEST

/* What is left of the body waits in the worker, however long its reader takes. */
START_TEST(who_has_given_all_frees_the_runner) {
    struct remote_lab *lab = remote_lab_open(1 << 20);
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_expects(lab, FRAME_BODY);
    peer_expects(lab, FRAME_PREVIEW);
    peer_says(lab, FRAME_TAKEN, 4);
    peer_adapts(lab, false);
    peer_says_bytes(lab, FRAME_BODY, 0, "TEXT", 4);
    peer_says(lab, FRAME_END, DRIVER_NO_FAILURE);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_MODIFIED);
    peer_is_let_go(lab);
    remote_lab_reads(lab, "TEXT", 4);
    remote_lab_close(lab);
}
END_TEST

/* Order */

/* The service is not interested before it has heard of the preview, which found no room in the ring:
 * it is not sent any more. */
START_TEST(a_preview_is_not_sent_behind_the_verdict) {
    struct remote_lab *lab = remote_lab_open(0);
    struct frame other = {.type = FRAME_BODY, .length = 2000, .slot = FRAME_SLOTS}, frame;
    static const char bytes[2000];
    remote_lab_start(lab, NULL, 0); /* so that there is a link */
    peer_expects(lab, FRAME_OPEN);
    inside_call_close(&lab->call);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_PREVIEW);
    peer_expects(lab, FRAME_END);
    peer_is_let_go(lab);
    struct link *ring = &remote_lab_link(lab)->link;
    while (ring_room(&ring->out) > 3000)
        ck_assert(link_send(ring, &other, bytes));
    other.length = 100;
    while (ring_room(&ring->out) > 700) /* enough for OPEN */
        ck_assert(link_send(ring, &other, bytes));
    remote_lab_start(lab, long_body(), LONG_BODY); /* 1024 bytes of it are the preview */
    ck_assert_uint_lt(ring_room(&ring->out), 1024 + sizeof(struct frame));
    struct inside_slot *slot = NULL;
    for (unsigned i = 0; i < FRAME_SLOTS; i++)
        if (remote_lab_link(lab)->slots[i].remote != NULL)
            slot = &remote_lab_link(lab)->slots[i], lab->slot = i;
    ck_assert(slot != NULL && slot->remote->opened && slot->remote->preview_due);
    lab->serial = slot->serial;
    peer_skips(lab);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_MODIFIED);
    remote_lab_reads(lab, long_body(), LONG_BODY);
    peer_expects(lab, FRAME_OPEN);
    remote_lab_turn(lab);
    while (peer_hears(lab, &frame))
        ck_assert_uint_eq(frame.type, FRAME_CLOSE);
    remote_lab_close(lab);
}
END_TEST

/* The run ends in the same round in which its verdict comes. */
static void verdict_of_a_run_that_ends(size_t keep, bool skips, enum adapter_verdict verdict) {
    struct remote_lab *lab = remote_lab_open(keep);
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    if (skips)
        peer_skips(lab);
    else
        peer_adapts(lab, true);
    inside_run_end(lab->run);
    remote_lab_turn(lab);
    ck_assert_ptr_null(remote_lab_link(lab)->run);
    ck_assert_int_eq(lab->call.base.verdict, verdict);
    remote_lab_close(lab);
}

START_TEST(a_verdict_that_has_come_counts) {
    verdict_of_a_run_that_ends(1 << 16, true, ADAPTER_UNMODIFIED);
    verdict_of_a_run_that_ends(0, true, ADAPTER_MODIFIED);
    verdict_of_a_run_that_ends(1 << 16, false, ADAPTER_MODIFIED);
}
END_TEST

/* The worker has not looked at the ring since, and meanwhile another run has begun. */
START_TEST(a_verdict_counts_that_lies_in_the_ring) {
    struct remote_lab *lab = remote_lab_open(1 << 16);
    struct inside_run *next = inside_run_new(1, false, -1);
    enum inside_link_refusal refusal;
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_skips(lab);
    inside_runner_set(&lab->runners->runners[0], &next, 0, NULL);
    ck_assert_ptr_nonnull(inside_runner_links_choose(lab->service.runner_links, &refusal));
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_UNMODIFIED);
    remote_lab_close(lab);
}
END_TEST

/* What a runner may not say */

/* The service has the text, and adapts it. */
static struct remote_lab *remote_lab_adapts(void) {
    struct remote_lab *lab = remote_lab_open(1 << 16);
    remote_lab_start(lab, "text", 4);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_expects(lab, FRAME_BODY);
    peer_expects(lab, FRAME_PREVIEW);
    peer_adapts(lab, false);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.base.verdict, ADAPTER_MODIFIED);
    return lab;
}

START_TEST(nothing_taken_is_a_lie) {
    struct remote_lab *lab = remote_lab_adapts();
    peer_says(lab, FRAME_TAKEN, 4);
    remote_lab_turn(lab);
    ck_assert(!is_caught(lab));
    peer_says(lab, FRAME_TAKEN, 0);
    remote_lab_turn(lab);
    ck_assert(is_caught(lab));
    remote_lab_close(lab);
}
END_TEST

/* It may say so once for each frame that it was sent. */
START_TEST(to_need_again_and_again_is_a_lie) {
    struct remote_lab *lab = remote_lab_adapts();
    unsigned needs = 0;
    peer_says(lab, FRAME_TAKEN, 4);
    for (; !is_caught(lab) && needs < 100; needs++) {
        peer_says(lab, FRAME_NEED, 4);
        remote_lab_turn(lab);
    }
    ck_assert_uint_ge(needs, 3);
    ck_assert_uint_le(needs, 8);
    remote_lab_close(lab);
}
END_TEST

/* Frames of a message that nobody wants any more, which crossed CLOSE, are no more than its credit
 * allows. */
START_TEST(frames_without_end_behind_the_end_are_a_lie) {
    struct remote_lab *lab = remote_lab_adapts();
    static const char bytes[FRAME_PAYLOAD];
    inside_call_close(&lab->call);
    remote_lab_turn(lab);
    for (unsigned i = 0; i < FRAME_WINDOW / FRAME_PAYLOAD; i++)
        peer_says_bytes(lab, FRAME_BODY, 0, bytes, FRAME_PAYLOAD);
    peer_says(lab, FRAME_TAKEN, 4);
    peer_says(lab, FRAME_END, DRIVER_NO_FAILURE);
    remote_lab_turn(lab);
    ck_assert(!is_caught(lab));
    unsigned most = 2 * FRAME_WINDOW;
    for (unsigned i = 0; !is_caught(lab) && i < most; i++) {
        while (ring_room(&lab->peer.out) > sizeof(struct frame))
            peer_says(lab, FRAME_TAKEN, 1);
        remote_lab_turn(lab);
    }
    ck_assert(is_caught(lab));
    remote_lab_close(lab);
}
END_TEST

/* Time */

/* A message that waits for its place for less than a tick of the coarse clock has waited for next to
 * nothing, and not for the time from the end of the clock on. */
START_TEST(a_short_wait_for_a_place_is_short) {
    struct remote_lab *lab = remote_lab_open(1 << 16);
    struct inside_call first;
    atomic_store(&lab->shared.places->most, 1);
    for (unsigned i = 0; i < 100; i++) {
        struct source *none = NULL;
        const struct adapter_request request = {
            .request = &lab->request, .body = &none, .arena = &lab->arena};
        inside_call_start(&first, &lab->service, &request, &lab->adapted, &lab->task);
        remote_lab_start(lab, NULL, 0);
        ck_assert_int_eq(lab->call.driver.mode, DRIVER_NEW);
        inside_call_close(&first);
        remote_lab_turn(lab);
        ck_assert_int_ne(lab->call.driver.mode, DRIVER_NEW);
        ck_assert_uint_lt(lab->call.base.figures.queue, 60000000);
        inside_call_close(&lab->call);
        remote_lab_turn(lab);
        struct frame frame;
        while (link_receive(&lab->peer, &frame, lab->payload) == LINK_FRAME) {
            lab->slot = frame.slot;
            lab->serial = frame.serial;
            if (frame.type == FRAME_CLOSE)
                peer_says(lab, FRAME_CLOSED, 0);
        }
        remote_lab_turn(lab);
    }
    ck_assert_uint_eq(lab->service.base.account.queued, 100);
    remote_lab_close(lab);
}
END_TEST

/* The service left it alone: from then on only its reader and the origin take their time. */
START_TEST(total_timeout_ends_with_the_work_of_the_service) {
    struct remote_lab *lab = remote_lab_open(0);
    lab->settings.total_timeout = 20;
    remote_lab_start(lab, long_body(), LONG_BODY);
    remote_lab_turn(lab);
    peer_expects(lab, FRAME_OPEN);
    peer_skips(lab);
    remote_lab_turn(lab);
    ck_assert_int_eq(lab->call.driver.mode, DRIVER_PASSED);
    usleep(30000);
    remote_lab_turn(lab);
    ck_assert_uint_eq(lab->service.base.account.error_timeout, 0);
    remote_lab_reads(lab, long_body(), LONG_BODY);
    remote_lab_close(lab);
}
END_TEST

struct tired_text {
    struct service_exchange *exchange;
};

static int tired_pipe[2];

static void *tired_begin(void *service, struct service_exchange *exchange) {
    static struct tired_text text;
    (void)service;
    usleep(INSIDE_SLOW + 2000); /* so that the exact clock is read from now on */
    text.exchange = exchange;
    exchange->wait = (struct service_wait){tired_pipe[0], 1 /* POLLIN */, service_now() + 600000};
    return &text;
}

static enum service_verdict tired_preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_HOLD;
}

static size_t tired_push(void *state, struct slice body) {
    (void)state, (void)body;
    return 0;
}

static void tired_does_nothing(void *state) {
    (void)state;
}

static enum service_verdict tired_verdict(void *state) {
    (void)state;
    return SERVICE_HOLD;
}

static enum service_flow tired_pull(void *state, char *out, size_t capacity, size_t *got) {
    (void)state, (void)out, (void)capacity, (void)got;
    return SERVICE_FLOW;
}

/* The exact clock is read when a wait begins, and the coarse one, which is late, when it ends. */
START_TEST(a_wait_is_no_longer_than_it_was) {
    struct remote_lab *lab = remote_lab_open(1 << 16);
    struct service_ops *ops = &lab->instance.remote_ops;
    struct inside_runner_links *runner_links = lab->service.runner_links;
    *ops = (struct service_ops){.begin = tired_begin,
                                .preview = tired_preview,
                                .push = tired_push,
                                .finish = tired_does_nothing,
                                .verdict = tired_verdict,
                                .pull = tired_pull,
                                .ready = tired_does_nothing,
                                .end = tired_does_nothing};
    lab->service.runner_links = NULL;
    ck_assert_int_eq(pipe(tired_pipe), 0);
    for (unsigned i = 0; i < 20; i++) {
        remote_lab_start(lab, "text", 4);
        ck_assert(lab->call.watch.watches && inside_watchful);
        inside_watchful = false;
        ck_assert_int_eq(write(tired_pipe[1], "x", 1), 1);
        remote_lab_turn(lab);
        ck_assert_int_eq(lab->call.base.verdict, ADAPTER_PENDING);
        inside_call_close(&lab->call);
        char byte;
        ck_assert_int_eq(read(tired_pipe[0], &byte, 1), 1);
    }
    close(tired_pipe[0]);
    close(tired_pipe[1]);
    lab->service.runner_links = runner_links;
    remote_lab_close(lab);
}
END_TEST

Suite *inside_remote_suite(void) {
    const TTest *tests[] = {
        who_is_left_alone_frees_the_runner,
        who_passes_frees_the_runner,
        who_changes_the_head_frees_the_runner,
        who_has_given_all_frees_the_runner,
        a_preview_is_not_sent_behind_the_verdict,
        a_verdict_that_has_come_counts,
        a_verdict_counts_that_lies_in_the_ring,
        nothing_taken_is_a_lie,
        to_need_again_and_again_is_a_lie,
        frames_without_end_behind_the_end_are_a_lie,
        a_short_wait_for_a_place_is_short,
        a_wait_is_no_longer_than_it_was,
        total_timeout_ends_with_the_work_of_the_service,
    };
    return suite_of("inside_remote", tests, COUNT_OF(tests));
}
