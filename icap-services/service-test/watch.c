#include "service-test/watch.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/failure.h"
#include "base/slice.h"
#include "service-test/report.h"

#include <dirent.h>
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

enum { MEMCHECK_PATH = 128 };

static bool is_program(const char *folder, size_t length, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
    return access(path, X_OK) == 0;
}

static bool is_in_path(const char *name) {
    const char *at = getenv("PATH");
    for (at = at == NULL ? "/usr/bin" : at; *at != '\0'; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        if (is_program(at, length, name))
            return true;
        at += length;
    }
    return false;
}

static bool memcheck_prepare(char logs[MEMCHECK_PATH], char *error, size_t error_size) {
    if (!is_in_path("valgrind"))
        return failure(error, error_size, "valgrind is not installed: apt-get install valgrind");
    const char *folder = getenv("TMPDIR");
    int length = snprintf(logs, MEMCHECK_PATH, "%s/retort-memcheck-XXXXXX",
                          folder == NULL ? "/tmp" : folder);
    if (length < MEMCHECK_PATH && mkdtemp(logs) != NULL)
        return true;
    return failure(error, error_size, "no folder can be made for valgrind's logs: %s",
                   strerror(errno));
}

/* A line without "==4711== " in front. */
static struct slice memcheck_line(const char *text) {
    struct slice line = slice_make(text, strcspn(text, "\n"));
    if (!slice_starts_with(line, SLICE("==")))
        return line;
    const char *end = memmem(line.base + 2, line.length - 2, "==", 2);
    if (end == NULL)
        return line;
    return slice_trim(slice_make(end + 2, line.length - (size_t)(end + 2 - line.base)));
}

/* The memory of a block that was lost, as against errors where it was used. */
static bool is_of_a_leak(const char *text) {
    return strstr(text, "are definitely lost") != NULL;
}

/* Each report is a finding of its own, since each has its own place. */
static void memcheck_note(struct test_report *report, const char *text) {
    if (report->finding_count == TEST_FINDINGS) {
        report->more++;
        return;
    }
    struct test_finding *finding = &report->findings[report->finding_count++];
    *finding = (struct test_finding){.kind = FINDING_MEMORY, .message = TEST_SERVICE, .times = 1};
    snprintf(finding->text, sizeof finding->text, "memcheck: %s", text);
}

/* A report is some lines; an empty one ends it. */
static void memcheck_read(FILE *log, struct test_report *report) {
    char line[1024], text[TEST_FINDING_TEXT - 32] = "";
    bool more = true;
    while (more) {
        more = fgets(line, sizeof line, log) != NULL;
        struct slice part = more ? memcheck_line(line) : SLICE("");
        size_t used = strlen(text);
        if (part.length > 0)
            snprintf(text + used, sizeof text - used, "%s%.*s", used > 0 ? "\n    " : "",
                     SLICE_PRINT(part));
        else if (used > 0) {
            if (strstr(text, " at 0x") != NULL || is_of_a_leak(text))
                memcheck_note(report, text);
            text[0] = '\0';
        }
    }
}

/* Removes the logs. */
static void memcheck_collect(const char *logs, struct test_report *report) {
    char path[MEMCHECK_PATH + 300];
    DIR *folder = opendir(logs);
    if (folder == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", logs, entry->d_name);
        FILE *log = fopen(path, "re");
        if (log != NULL) {
            memcheck_read(log, report);
            fclose(log);
        }
        unlink(path);
    }
    closedir(folder);
    rmdir(logs);
}

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
