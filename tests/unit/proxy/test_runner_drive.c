/* A runner and what the exchanges of a service wait for there, when several name one descriptor, and
 * when it is closed under them. */
#include "suites.h"

#include "base/assert.h"
#include "inside/run.h"
#include "runner/frame.h"
#include "runner/runner.h"
#include "service/service.h"

#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct drive_lab {
    struct inside_run *run;
    struct runner runner;
    struct link worker; /* the worker's side */
    char payload[FRAME_PAYLOAD];
    int pipe[2];
    unsigned called; /* calls of `ready` */
};

struct waiting_text {
    struct service_exchange *exchange;
    bool ready;
};

static void *waiting_begin(void *service, struct service_exchange *exchange) {
    const struct drive_lab *lab = service;
    struct waiting_text *text = xcalloc(1, sizeof *text);
    text->exchange = exchange;
    exchange->wait = (struct service_wait){lab->pipe[0], POLLIN, service_now() + 600000};
    return text;
}

static enum service_verdict waiting_preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_HOLD;
}

static size_t waiting_push(void *state, struct slice body) {
    (void)state;
    return body.length;
}

static void waiting_finish(void *state) {
    (void)state;
}

static enum service_verdict waiting_verdict(void *state) {
    return ((struct waiting_text *)state)->ready ? SERVICE_SKIP : SERVICE_HOLD;
}

static enum service_flow waiting_pull(void *state, char *out, size_t capacity, size_t *got) {
    (void)state, (void)out, (void)capacity, (void)got;
    return SERVICE_DONE;
}

static unsigned *waiting_called;

static void waiting_ready(void *state) {
    struct waiting_text *text = state;
    (*waiting_called)++;
    text->ready = true;
    service_wait_none(text->exchange);
}

static void waiting_end(void *state) {
    free(state);
}

static const struct service_ops waiting_ops = {
    .version = SERVICE_VERSION,
    .name = "waiting",
    .points = SERVICE_REQUEST,
    .begin = waiting_begin,
    .preview = waiting_preview,
    .push = waiting_push,
    .finish = waiting_finish,
    .verdict = waiting_verdict,
    .pull = waiting_pull,
    .ready = waiting_ready,
    .end = waiting_end,
};

static struct drive_lab *drive_lab_open(void) {
    static const struct service_host host;
    struct drive_lab *lab = xcalloc(1, sizeof *lab);
    lab->run = inside_run_new(1, false, -1);
    ck_assert_ptr_nonnull(lab->run);
    ck_assert_int_eq(pipe(lab->pipe), 0);
    const struct runner_task task = {
        .ops = &waiting_ops,
        .service = lab,
        .host = &host,
        .board = lab->run->board,
        .workers = 1,
        .event_fd = lab->run->event_fd,
        .worker_fds = lab->run->worker_fds,
        .stopping = &lab->run->stopping,
    };
    ck_assert(runner_init(&lab->runner, &task));
    link_open(&lab->worker, board_ring(lab->run->board, 0, BOARD_TO_RUNNER),
              board_ring(lab->run->board, 0, BOARD_TO_WORKER), lab->run->event_fd);
    waiting_called = &lab->called;
    return lab;
}

static void drive_lab_close(struct drive_lab *lab) {
    runner_release(&lab->runner);
    inside_run_release(&lab->run);
    for (int i = 0; i < 2; i++)
        if (lab->pipe[i] >= 0)
            close(lab->pipe[i]);
    free(lab);
}

static void drive_lab_on_task(struct task *task) {
    (void)task;
}

static void drive_lab_turn(struct drive_lab *lab) {
    struct task awake;
    task_init(&awake, drive_lab_on_task);
    link_flush(&lab->worker);
    for (unsigned i = 0; i < 6; i++) {
        loop_defer(&lab->runner.loop, &lab->runner.task);
        loop_defer(&lab->runner.loop, &awake);
        loop_run_once(&lab->runner.loop);
    }
    task_cancel(&awake);
}

static void worker_says(struct drive_lab *lab, enum frame_type type, uint32_t slot, uint64_t number,
                        const char *bytes, size_t length) {
    const struct frame frame = {
        .type = type, .length = (uint32_t)length, .slot = slot, .serial = 1, .number = number};
    ck_assert(link_send(&lab->worker, &frame, bytes));
}

/* A request without a body. */
static void worker_opens(struct drive_lab *lab, uint32_t slot) {
    const struct facts_message facts = {.point = SERVICE_REQUEST,
                                        .request_version = 11,
                                        .version = 11,
                                        .head = SLICE("GET http://h/ HTTP/1.1\r\n\r\n")};
    size_t length;
    char *text = facts_of_message(&facts, &length);
    ck_assert_ptr_nonnull(text);
    worker_says(lab, FRAME_OPEN, slot, length, text, length);
    worker_says(lab, FRAME_PREVIEW, slot, 1, NULL, 0);
    free(text);
}

static unsigned worker_counts(struct drive_lab *lab, enum frame_type type) {
    unsigned count = 0;
    struct frame frame;
    while (link_receive(&lab->worker, &frame, lab->payload) == LINK_FRAME)
        count += frame.type == type;
    return count;
}

START_TEST(all_that_wait_for_one_descriptor_are_told) {
    struct drive_lab *lab = drive_lab_open();
    for (uint32_t slot = 0; slot < 3; slot++)
        worker_opens(lab, slot);
    drive_lab_turn(lab);
    ck_assert_uint_eq(worker_counts(lab, FRAME_HOLD), 3);
    ck_assert_uint_eq(lab->called, 0);
    ck_assert_int_eq(write(lab->pipe[1], "x", 1), 1);
    drive_lab_turn(lab);
    ck_assert_uint_eq(lab->called, 3);
    ck_assert_uint_eq(worker_counts(lab, FRAME_VERDICT), 3);
    drive_lab_close(lab);
}
END_TEST

/* A service has closed it, and another descriptor of the same pipe is open still, as in a process that
 * it has started. */
START_TEST(a_descriptor_that_is_closed_wakes_nobody_who_has_gone) {
    struct drive_lab *lab = drive_lab_open();
    worker_opens(lab, 0);
    drive_lab_turn(lab);
    int copy = dup(lab->pipe[0]);
    close(lab->pipe[0]);
    lab->pipe[0] = copy;
    worker_says(lab, FRAME_CLOSE, 0, 0, NULL, 0);
    drive_lab_turn(lab);
    ck_assert_uint_eq(worker_counts(lab, FRAME_CLOSED), 1);
    ck_assert_int_eq(write(lab->pipe[1], "x", 1), 1);
    drive_lab_turn(lab);
    ck_assert_uint_eq(lab->called, 0);
    drive_lab_close(lab);
}
END_TEST

/* The process has no descriptor left for the copies that are watched. */
START_TEST(without_descriptors_waits_are_short) {
    struct drive_lab *lab = drive_lab_open();
    struct rlimit limit, tight;
    int next = dup(lab->pipe[0]);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    tight = limit;
    tight.rlim_cur = (rlim_t)next;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
    worker_opens(lab, 0);
    drive_lab_turn(lab);
    ck_assert_int_eq(write(lab->pipe[1], "x", 1), 1);
    for (int64_t until = service_now() + 5000; lab->called == 0 && service_now() < until;) {
        usleep(10000);
        drive_lab_turn(lab);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(lab->called, 1);
    ck_assert_uint_eq(worker_counts(lab, FRAME_VERDICT), 1);
    drive_lab_close(lab);
}
END_TEST

static void say_aloud(void *context, enum log_level level, const char *text) {
    const int *out = context;
    (void)level;
    ck_assert_int_gt(write(*out, text, strlen(text)), 0);
}

/* What the proxy never writes: the service has written over the memory that both share. */
START_TEST(memory_that_was_written_over_ends_a_process_of_its_own) {
    struct drive_lab *lab = drive_lab_open();
    struct service_host host = {.context = &lab->pipe[1], .log = say_aloud};
    char said[512] = "";
    int status;
    worker_says(lab, FRAME_TYPES, 0, 0, NULL, 0);
    pid_t child = fork();
    if (child == 0) {
        lab->runner.owns_process = true;
        lab->runner.host = &host;
        drive_lab_turn(lab);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ck_assert_int_gt(read(lab->pipe[0], said, sizeof said - 1), 0);
    ck_assert_ptr_nonnull(strstr(said, "was written over"));
    drive_lab_close(lab);
}
END_TEST

Suite *runner_drive_suite(void) {
    const TTest *tests[] = {
        all_that_wait_for_one_descriptor_are_told,
        a_descriptor_that_is_closed_wakes_nobody_who_has_gone,
        without_descriptors_waits_are_short,
        memory_that_was_written_over_ends_a_process_of_its_own,
    };
    return suite_of("runner_drive", tests, COUNT_OF(tests));
}
