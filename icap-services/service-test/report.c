#include "service-test/report.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const kind_names[FINDING_KINDS] = {
    [FINDING_CRASH] = "crash",   [FINDING_TIME] = "time",
    [FINDING_STUCK] = "stuck",   [FINDING_DIFFERS] = "differs",
    [FINDING_LENGTH] = "length", [FINDING_HEAD] = "head",
    [FINDING_CALL] = "call",     [FINDING_MEMORY] = "memory",
    [FINDING_FAILED] = "failed", [FINDING_DESCRIPTOR] = "descriptor",
};

static const char *const call_names[CALL_NAMES] = {
    [CALL_NONE] = "between its calls",
    [CALL_LOAD] = "loading",
    [CALL_START] = "start",
    [CALL_BEGIN] = "begin",
    [CALL_PREVIEW] = "preview",
    [CALL_PUSH] = "push",
    [CALL_FINISH] = "finish",
    [CALL_VERDICT] = "verdict",
    [CALL_PULL] = "pull",
    [CALL_IDLE] = "idle",
    [CALL_READY] = "ready",
    [CALL_END] = "end",
    [CALL_TIMER] = "timer",
    [CALL_DESCRIPTOR] = "descriptor",
    [CALL_LOGGED] = "logged",
    [CALL_CLOSED] = "closed",
    [CALL_RESOLVED] = "resolved",
    [CALL_STOP] = "stop",
};

static const char *const outcome_names[] = {
    [OUTCOME_NONE] = "not run",    [OUTCOME_UNCHANGED] = "unchanged",
    [OUTCOME_ADAPTED] = "adapted", [OUTCOME_ANSWERED] = "answered",
    [OUTCOME_ABORTED] = "aborted", [OUTCOME_BROKEN] = "broken",
};

const char *finding_kind_name(enum finding_kind kind) {
    return kind_names[kind];
}

const char *test_call_text(enum test_call_name call) {
    return call_names[call];
}

const char *test_outcome_text(enum test_outcome outcome) {
    return outcome_names[outcome];
}

static size_t report_size(unsigned messages) {
    return sizeof(struct test_report) + messages * sizeof(struct test_message_report);
}

struct test_report *test_report_map(int fd, unsigned messages) {
    struct test_report *report =
        mmap(NULL, report_size(messages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return report == MAP_FAILED ? NULL : report;
}

struct test_report *test_report_create(unsigned messages, int *fd) {
    *fd = memfd_create("retort-service-test", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)report_size(messages)) != 0)
        return NULL;
    struct test_report *report = test_report_map(*fd, messages);
    if (report == NULL)
        return NULL;
    report->magic = TEST_REPORT_MAGIC;
    report->message_count = messages;
    report->unit = TEST_SERVICE;
    report->crashed_slot = -1;
    return report;
}

void test_report_unmap(struct test_report **reportp) {
    if (*reportp != NULL)
        munmap(*reportp, report_size((*reportp)->message_count));
    *reportp = NULL;
}

static struct test_finding *report_find(struct test_report *report, enum finding_kind kind,
                                        int message) {
    for (unsigned i = 0; i < report->finding_count; i++)
        if (report->findings[i].kind == kind && report->findings[i].message == message)
            return &report->findings[i];
    return NULL;
}

struct test_finding *test_report_add(struct test_report *report, enum finding_kind kind,
                                     int message, const char *plan) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct test_finding *added = NULL;
    CHECK_OBJ(report, TEST_REPORT_MAGIC);
    pthread_mutex_lock(&mutex);
    struct test_finding *known = report_find(report, kind, message);
    if (known != NULL)
        known->times++;
    else if (report->finding_count == TEST_FINDINGS)
        report->more++;
    else {
        added = &report->findings[report->finding_count];
        *added = (struct test_finding){.kind = kind, .message = message, .times = 1};
        snprintf(added->plan, sizeof added->plan, "%s", plan);
        report->finding_count++;
    }
    pthread_mutex_unlock(&mutex);
    return added;
}
