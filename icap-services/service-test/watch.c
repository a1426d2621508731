#include "service-test/watch.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "service-test/memcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_EVERY = 50, UNDER_VALGRIND = 20 };

/* ---- the end of a worker ------------------------------------------------------------------ */

/* The thread that crashed, or the first that is inside the service. */
static const struct test_slot *slot_of_interest(const struct test_report *report) {
    if (report->crashed_slot >= 0)
        return &report->slots[report->crashed_slot];
    for (int i = 0; i < TEST_SLOTS; i++)
        if (report->slots[i].call != CALL_NONE)
            return &report->slots[i];
    return &report->slots[0];
}

static void watch_note_end(struct test_report *report, enum finding_kind kind, const char *what) {
    const struct test_slot *slot = slot_of_interest(report);
    struct test_finding *finding = test_report_add(report, kind, slot->message, slot->plan);
    if (finding == NULL)
        return;
    finding->call = slot->call;
    snprintf(finding->text, sizeof finding->text,
             "%s in %s (%" PRIu64 " bytes of the body in, %" PRIu64 " bytes out)%s", what,
             test_call_text(slot->call), slot->in, slot->out,
             slot - report->slots > 0 ? "; several exchanges were under way in threads" : "");
}

static void note_signal(struct test_report *report, int number) {
    char what[120];
    snprintf(what, sizeof what, "the service crashes (%s%s)",
             sigabbrev_np(number) == NULL ? "" : "SIG",
             sigabbrev_np(number) == NULL ? strsignal(number) : sigabbrev_np(number));
    watch_note_end(report, FINDING_CRASH, what);
}

static void note_exit(struct test_report *report, int status) {
    char what[120];
    snprintf(what, sizeof what, "the service ends the process with exit status %d", status);
    watch_note_end(report, FINDING_CRASH, what);
}

/* ---- watching ----------------------------------------------------------------------------- */

static uint64_t deadline_of(const struct tester_options *options) {
    return options->valgrind ? UNDER_VALGRIND * options->deadline : options->deadline;
}

/* Is a thread inside a call for too long? */
static bool is_late(const struct test_report *report, uint64_t deadline) {
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < TEST_SLOTS; i++) {
        const volatile struct test_slot *slot = &report->slots[i];
        if (slot->call != CALL_NONE && now > slot->begun && now - slot->begun > deadline)
            return true;
    }
    return false;
}

static void end_late(struct test_report *report, pid_t worker, uint64_t deadline) {
    char what[120];
    snprintf(what, sizeof what, "the service does not come back within %" PRIu64 " seconds",
             deadline / 1000);
    watch_note_end(report, FINDING_TIME, what);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
}

/* Returns when the worker is no more. False: it ended before its work was done. */
static bool watch_worker(const struct tester_options *options, struct test_report *report,
                         pid_t worker) {
    uint64_t deadline = deadline_of(options);
    struct pollfd ended = {.fd = pidfd_open(worker, 0), .events = POLLIN};
    int status = 0;
    bool late = false;
    while (waitpid(worker, &status, WNOHANG) == 0) {
        poll(&ended, ended.fd >= 0 ? 1 : 0, LOOK_EVERY);
        if (is_late(report, deadline)) {
            late = true;
            end_late(report, worker, deadline);
            break;
        }
    }
    if (ended.fd >= 0)
        close(ended.fd);
    if (late || report->over || report->cannot[0] != '\0')
        return report->over;
    if (WIFSIGNALED(status))
        note_signal(report, WTERMSIG(status));
    else
        note_exit(report, WEXITSTATUS(status));
    return false;
}

/* ---- starting ----------------------------------------------------------------------------- */

/* The worker is this program once more, with --worker. Without caches of its own, the C library
 * spoils what is freed and counts it at once. */
static _Noreturn void become_worker(const struct tester_options *options, int fd, char **argv,
                                    const char *logs) {
    char log[MEMCHECK_PATH + 32], self[512], worker[40];
    unsigned count = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    snprintf(log, sizeof log, "--log-file=%s/%%p", logs);
    snprintf(worker, sizeof worker, "--worker=%d", fd);
    const char *const before[] = {"valgrind",
                                  "-q",
                                  "--leak-check=full",
                                  "--show-leak-kinds=definite",
                                  "--num-callers=16",
                                  log,
                                  self,
                                  worker};
    enum { BEFORE = sizeof before / sizeof *before, OF_VALGRIND = BEFORE - 2 };
    while (argv[count] != NULL)
        count++;
    char **list = xcalloc(BEFORE + count, sizeof *list);
    memcpy(list, before, sizeof before);
    memcpy(list + BEFORE, argv + 1, count * sizeof *list);
    fcntl(fd, F_SETFD, 0);
    if (options->valgrind)
        execvp("valgrind", list);
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    if (!options->valgrind)
        execv(self, list + OF_VALGRIND);
    fprintf(stderr, "retort-service-test: %s can't be started: %s\n",
            options->valgrind ? "valgrind" : self, strerror(errno));
    _exit(TESTER_NOT_RUN);
}

static pid_t start_worker(const struct tester_options *options, int fd, char **argv,
                          const char *logs) {
    fflush(NULL);
    pid_t worker = fork();
    if (worker != 0)
        return worker;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what the service prints is no part of the result */
    become_worker(options, fd, argv, logs);
}

void test_watch(const struct tester_options *options, const struct test_messages *messages,
                struct test_report *report, int fd, char **argv) {
    char logs[MEMCHECK_PATH] = "";
    if (options->valgrind && !memcheck_prepare(logs, report->cannot, sizeof report->cannot))
        return;
    while (!report->over && report->cannot[0] == '\0') {
        int unit = report->unit;
        pid_t worker = start_worker(options, fd, argv, logs);
        if (worker < 0) {
            snprintf(report->cannot, sizeof report->cannot, "no process can be started: %s",
                     strerror(errno));
            break;
        }
        if (watch_worker(options, report, worker))
            break;
        /* A service that dies at its start or its end has been tested. */
        if (report->unit == TEST_SERVICE || report->unit >= (int)messages->count ||
            report->slots[0].message == TEST_SERVICE)
            break;
        report->unit = (report->unit < unit ? unit : report->unit) + 1;
        if (report->unit >= (int)messages->count)
            break;
        memset(report->slots, 0, sizeof report->slots);
    }
    if (options->valgrind)
        memcheck_collect(logs, report);
}
