#include "service-test/worker.h"

#include "base/assert.h"
#include "base/threads.h"
#include "service-test/call.h"
#include "service-test/expected.h"
#include "service-test/instance.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SIDE_BY_SIDE = 4,  /* runs at once */
    THREAD_ROUNDS = 6, /* of each thread */
    BLOCKS = 5,        /* of runs after which memory is looked at */
    BLOCK_RUNS = 12,
    FREED_BYTE = 0xa5,
};

struct worker {
    const struct tester_options *options;
    const struct test_messages *messages;
    struct test_report *report;
    const struct service_ops *ops;
    struct test_instance instance;
};

/* ---- what the process has ----------------------------------------------------------------- */

/* Entries of a folder of /proc/self. */
static unsigned count_entries(const char *path) {
    DIR *folder = opendir(path);
    unsigned count = 0;
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static unsigned count_descriptors(void) {
    return count_entries("/proc/self/fd");
}

static unsigned count_threads(void) {
    return count_entries("/proc/self/task");
}

static unsigned count_sockets(void) {
    char path[40], target[40];
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target);
        count += length > 7 && memcmp(target, "socket:", 7) == 0;
    }
    return count;
}

static size_t memory_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* By how much memory grew in each of several equal blocks of work. The C library keeps some freed
 * memory of each size and counts it as in use, so the first blocks tell nothing. */
struct growth {
    size_t before, least;
    unsigned blocks;
};

static struct growth growth_begin(void) {
    return (struct growth){.before = memory_in_use(), .least = SIZE_MAX};
}

static void growth_note(struct growth *growth) {
    enum { WARM = 2 };
    size_t now = memory_in_use(), grown = now > growth->before ? now - growth->before : 0;
    if (growth->blocks++ >= WARM && grown < growth->least)
        growth->least = grown;
    growth->before = now;
}

/* ---- a message ---------------------------------------------------------------------------- */

/* A message with what is known of it. */
struct subject {
    struct worker *worker;
    const struct test_message *message;
    int index;
    struct test_message_report *report;
    struct test_expected expected;
    struct test_plan usual;
};

static void subject_run(struct subject *subject, const struct test_plan *plan) {
    struct worker *worker = subject->worker;
    struct test_result result;
    test_run_whole(&worker->instance, subject->message, subject->index, plan, worker->options,
                   &result);
    test_expected_check(&subject->expected, plan, &result);
    if (subject->report->runs++ == 0) {
        subject->report->in = subject->message->body.length;
        subject->report->out = result.length;
    }
    if (result.held_most > subject->report->held_most)
        subject->report->held_most = result.held_most;
    test_result_release(&result);
}

/* Another plan for the same message, for runs that go on at once. */
static struct test_plan side_plan(const struct subject *subject, unsigned number) {
    struct test_plan plan = subject->usual;
    plan.split = number == 0 ? SPLIT_ONCE : SPLIT_MIXED;
    plan.number = 100 + number;
    plan.out = number % 2 == 0 ? plan.out : 997;
    plan.beside = true;
    return plan;
}

/* Exchanges of one instance share nothing: what one does may not show in another. */
static void subject_side_by_side(struct subject *subject) {
    struct worker *worker = subject->worker;
    struct test_run *runs = xcalloc(SIDE_BY_SIDE, sizeof *runs);
    struct test_plan plans[SIDE_BY_SIDE];
    bool going = true;
    for (unsigned i = 0; i < SIDE_BY_SIDE; i++) {
        plans[i] = side_plan(subject, i);
        test_run_begin(&runs[i], &worker->instance, subject->message, subject->index, &plans[i],
                       worker->options);
    }
    while (going) {
        going = false;
        for (unsigned i = 0; i < SIDE_BY_SIDE; i++)
            going |= test_run_step(&runs[i]);
    }
    for (unsigned i = 0; i < SIDE_BY_SIDE; i++) {
        struct test_result result;
        test_run_end(&runs[i], &result);
        test_expected_check(&subject->expected, &plans[i], &result);
        test_result_release(&result);
        subject->report->runs++;
    }
    free(runs);
}

struct thread_task {
    struct subject *subject;
    unsigned number;
    struct thread thread;
};

static void thread_main(void *arg) {
    static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
    struct thread_task *task = arg;
    struct subject *subject = task->subject;
    struct worker *worker = subject->worker;
    test_call_be(1 + task->number);
    for (unsigned i = 0; i < THREAD_ROUNDS; i++) {
        struct test_plan plan = side_plan(subject, task->number + i);
        struct test_result result;
        test_run_whole(&worker->instance, subject->message, subject->index, &plan, worker->options,
                       &result);
        pthread_mutex_lock(&checking);
        test_expected_check(&subject->expected, &plan, &result);
        pthread_mutex_unlock(&checking);
        test_result_release(&result);
    }
}

static void subject_in_threads(struct subject *subject) {
    struct thread_task tasks[SIDE_BY_SIDE];
    unsigned count = 0;
    for (; count < SIDE_BY_SIDE; count++) {
        tasks[count] = (struct thread_task){.subject = subject, .number = count};
        if (!thread_start(&tasks[count].thread, thread_main, &tasks[count], "rt-test-%u", count))
            break;
    }
    for (unsigned i = 0; i < count; i++)
        thread_join(&tasks[i].thread);
    subject->report->runs += count * THREAD_ROUNDS;
}

/* Memory that grows with each run, again and again, is lost. A service may keep some for later. */
static void subject_memory(struct subject *subject) {
    struct test_plan stopped = subject->usual;
    struct growth growth = growth_begin();
    stopped.stop = subject->message->body.length / 2;
    stopped.end = false;
    for (unsigned block = 0; block < BLOCKS; block++) {
        for (unsigned i = 0; i < BLOCK_RUNS; i++)
            subject_run(subject, i % 3 == 2 ? &stopped : &subject->usual);
        growth_note(&growth);
    }
    test_call_run(subject->index, "");
    if (growth.least >= BLOCK_RUNS)
        test_call_complain(FINDING_MEMORY,
                           "memory is lost: %zu bytes more are in use after each %d exchanges. Run "
                           "it with --valgrind to see where they come from",
                           growth.least, BLOCK_RUNS);
}

static bool subject_descriptors(struct subject *subject, unsigned before) {
    unsigned now = count_descriptors();
    (void)subject;
    if (now > before)
        test_call_complain(FINDING_DESCRIPTOR,
                           "%u descriptors are open that were not before: the service does not "
                           "close all that it opens for an exchange",
                           now - before);
    return now > before;
}

/* A run that needed seconds to come to nothing is not tried again in many ways. */
static bool subject_is_worth_more(void) {
    return !test_call_has_complained(FINDING_TIME) && !test_call_has_complained(FINDING_STUCK);
}

static void subject_plans(struct subject *subject) {
    struct worker *worker = subject->worker;
    size_t length = subject->message->body.length;
    struct test_plans plans;
    test_plans_make(&plans, length, subject->message->has_body, worker->ops->preview_size,
                    worker->options->cuts);
    for (unsigned i = 0; i < plans.count && subject_is_worth_more(); i++)
        subject_run(subject, &plans.list[i]);
    test_plans_release(&plans);
}

static void subject_test(struct subject *subject) {
    const struct tester_options *options = subject->worker->options;
    struct test_plan plan = subject->usual;
    char error[TEST_PLAN_ERROR];
    subject_run(subject, &subject->usual); /* it may open what it keeps */
    unsigned descriptors = count_descriptors();
    if (options->plan != NULL) {
        if (test_plan_read(&plan, options->plan, error))
            subject_run(subject, &plan);
    } else {
        subject_plans(subject);
    }
    if (options->plan == NULL || plan.beside) {
        if (subject_is_worth_more())
            subject_side_by_side(subject);
        if (subject_is_worth_more())
            subject_in_threads(subject);
    }
    test_call_run(subject->index, "");
    if (subject_is_worth_more() && !subject_descriptors(subject, descriptors))
        subject_memory(subject);
}

static void worker_test_message(struct worker *worker, int index) {
    const struct test_message *message = &worker->messages->list[index];
    unsigned point = message->response.length > 0 ? SERVICE_RESPONSE : SERVICE_REQUEST;
    struct subject subject = {
        .worker = worker,
        .message = message,
        .index = index,
        .report = &worker->report->messages[index],
        .usual =
            test_plan_usual(message->body.length, message->has_body, worker->ops->preview_size),
    };
    subject.report->foreign = (worker->ops->points & point) == 0;
    if (subject.report->foreign)
        return;
    test_expected_init(&subject.expected, message, subject.report, worker->ops->preview_size,
                       worker->options->may_fail);
    test_call_run(index, "");
    subject_test(&subject);
    test_expected_release(&subject.expected);
}

/* ---- the service -------------------------------------------------------------------------- */

static bool worker_start(struct worker *worker) {
    char error[TEST_INSTANCE_ERROR] = "";
    test_call_run(TEST_SERVICE, "");
    if (test_instance_start(&worker->instance, worker->ops, worker->options, error))
        return true;
    snprintf(worker->report->cannot, sizeof worker->report->cannot, "%s", error);
    return false;
}

/* A host may start once and fork then; and proxies compare fingerprints over restarts. */
static bool worker_test_start(struct worker *worker) {
    unsigned threads = count_threads(), sockets = count_sockets();
    if (!worker_start(worker))
        return false;
    uint64_t fingerprint = worker->instance.host.fingerprint;
    if (count_threads() > threads)
        test_call_complain(FINDING_CALL,
                           "start made a thread: a host may fork after start, and the "
                           "thread would be missing in its children");
    if (count_sockets() > sockets)
        test_call_complain(FINDING_CALL, "start opened a socket: a host may fork after start, and "
                                         "its children would share the connection");
    test_instance_stop(&worker->instance);
    unsigned descriptors = count_descriptors();
    if (!worker_start(worker))
        return false;
    if (worker->instance.host.fingerprint != fingerprint)
        test_call_complain(FINDING_DIFFERS,
                           "two starts with the same settings make two fingerprints (%016" PRIx64
                           " and %016" PRIx64 "): caches would forget all results at each restart",
                           fingerprint, worker->instance.host.fingerprint);
    test_instance_stop(&worker->instance);
    if (count_descriptors() > descriptors)
        test_call_complain(FINDING_DESCRIPTOR, "stop leaves %u descriptors open that start opened",
                           count_descriptors() - descriptors);
    return true;
}

/* Starting is repeated only where it is quick: lists may be long. */
static bool worker_test_stop(struct worker *worker) {
    enum { QUICK = 10 /* milliseconds */ };
    struct growth growth = growth_begin();
    for (unsigned block = 0; block < BLOCKS; block++) {
        for (unsigned i = 0; i < BLOCK_RUNS; i++) {
            uint64_t begun = clocks_milliseconds(CLOCK_MONOTONIC);
            if (!worker_start(worker))
                return false;
            test_instance_stop(&worker->instance);
            if (clocks_milliseconds(CLOCK_MONOTONIC) - begun > QUICK)
                return true;
        }
        growth_note(&growth);
    }
    if (growth.least >= BLOCK_RUNS)
        test_call_complain(FINDING_MEMORY,
                           "memory is lost: %zu bytes more are in use after each %d starts and "
                           "stops. Run it with --valgrind to see where they come from",
                           growth.least, BLOCK_RUNS);
    return true;
}

static bool worker_load(struct worker *worker) {
    char error[SERVICE_MODULE_ERROR] = "";
    test_call_begin(CALL_LOAD);
    worker->ops = service_module_load(worker->options->module, error);
    test_call_end();
    if (worker->ops == NULL) {
        snprintf(worker->report->cannot, sizeof worker->report->cannot, "%s", error);
        return false;
    }
    snprintf(worker->report->service, sizeof worker->report->service, "%s", worker->ops->name);
    worker->report->points = worker->ops->points;
    return true;
}

/* A service without bounds must not take all of the machine's memory. Sanitizers and valgrind have
 * theirs at places of their own. */
static void worker_bound_memory(const struct tester_options *options) {
#ifndef __SANITIZE_ADDRESS__
    const struct rlimit most = {.rlim_cur = (rlim_t)4 << 30, .rlim_max = (rlim_t)4 << 30};
    if (!options->valgrind)
        setrlimit(RLIMIT_DATA, &most);
#else
    (void)options;
#endif
    mallopt(M_PERTURB,
            FREED_BYTE); /* memory that was freed, or never written, does not look good */
}

int test_worker(const struct tester_options *options, const struct test_messages *messages,
                struct test_report *report) {
    struct worker worker = {.options = options, .messages = messages, .report = report};
    int first = report->unit;
    worker_bound_memory(options);
    test_call_open(report);
    if (!worker_load(&worker))
        return TESTER_NOT_RUN;
    if (first == TEST_SERVICE && (!worker_test_start(&worker) || !worker_test_stop(&worker)))
        return TESTER_NOT_RUN;
    if (!worker_start(&worker))
        return TESTER_NOT_RUN;
    if (first == TEST_SERVICE)
        test_events_run(&worker.instance);
    for (int i = first == TEST_SERVICE ? 0 : first; i < (int)messages->count; i++) {
        report->unit = i;
        worker_test_message(&worker, i);
    }
    report->unit = (int)messages->count;
    test_call_run(TEST_SERVICE, "");
    test_instance_stop(&worker.instance);
    report->over = true;
    return 0;
}
