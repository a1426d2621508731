/*
 * What comes of a test. The worker, which has the service in it, writes it into memory that it
 * shares with the tester, because the worker may crash at any moment.
 *
 *     struct test_report *report = test_report_create(messages.count, &fd);        the tester
 *     struct test_report *report = test_report_map(fd, messages.count);            the worker
 *     struct test_finding *finding = test_report_add(report, FINDING_DIFFERS, message, plan);
 *     if (finding != NULL) snprintf(finding->text, ...);          NULL: it is known already
 *
 * Of each kind of finding a message has one, the first, with the number of times that it was met.
 *
 * Threads: test_report_add may be called from any thread of one process at a time.
 */
#ifndef RETORT_TESTER_REPORT_H
#define RETORT_TESTER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TEST_FINDINGS = 256,
    TEST_FINDING_TEXT = 1600,
    TEST_PLAN_TEXT = 256,
    TEST_SLOTS = 5,    /* threads that may be inside the service at once */
    TEST_SERVICE = -1, /* in place of a message: the finding is about the service as a whole */
};

/* Their names are in report.c, their meaning in retort-service-test(1). */
enum finding_kind {
    FINDING_CRASH,
    FINDING_TIME,
    FINDING_STUCK,
    FINDING_DIFFERS,
    FINDING_LENGTH,
    FINDING_HEAD,
    FINDING_CALL,
    FINDING_MEMORY,
    FINDING_DESCRIPTOR,
    FINDING_FAILED,
    FINDING_KINDS
};

/* The functions of a service. */
enum test_call_name {
    CALL_NONE,
    CALL_LOAD,
    CALL_START,
    CALL_BEGIN,
    CALL_PREVIEW,
    CALL_PUSH,
    CALL_FINISH,
    CALL_VERDICT,
    CALL_PULL,
    CALL_IDLE,
    CALL_READY,
    CALL_END,
    CALL_TIMER,
    CALL_DESCRIPTOR,
    CALL_LOGGED,
    CALL_CLOSED,
    CALL_RESOLVED,
    CALL_STOP,
    CALL_NAMES
};

struct test_finding {
    enum finding_kind kind;
    int message; /* or TEST_SERVICE */
    enum test_call_name call;
    uint64_t times;
    uint64_t offset; /* in the body of the result, of FINDING_DIFFERS */
    char plan[TEST_PLAN_TEXT];
    char text[TEST_FINDING_TEXT];
};

/* What became of a message. */
enum test_outcome {
    OUTCOME_NONE, /* not run */
    OUTCOME_UNCHANGED,
    OUTCOME_ADAPTED,
    OUTCOME_ANSWERED, /* a response came in place of the request */
    OUTCOME_ABORTED,
    OUTCOME_BROKEN, /* the run could not be brought to its end */
};

struct test_message_report {
    enum test_outcome outcome;
    bool foreign;            /* the service is not for messages of this kind */
    bool by_preview;         /* whether it adapts depends on how much the preview shows */
    uint64_t runs, in, out;  /* bytes of the body, as usual */
    uint64_t held_most;      /* bytes taken and not given yet, at most */
    char failed_because[32]; /* the service said that it could not adapt; "": it did not */
};

/* Where a thread is at the moment. */
struct test_slot {
    enum test_call_name call;
    int message;
    uint64_t begun;   /* milliseconds; when the call began */
    uint64_t in, out; /* bytes of the body that went in and came out */
    char plan[TEST_PLAN_TEXT];
};

struct test_report {
    unsigned magic;
#define TEST_REPORT_MAGIC 0x7e573e90u
    int unit;            /* the message that the worker is at; TEST_SERVICE at first */
    bool over;           /* the worker came to its end */
    int crashed_slot;    /* -1: none */
    char service[64];    /* its name */
    unsigned points;     /* enum service_point, or-ed */
    char cannot[700];    /* why nothing can be tested; "": it can */
    uint64_t calls;      /* of functions of the service */
    uint64_t slowest_us; /* the longest of them, in microseconds */
    enum test_call_name slowest;
    unsigned finding_count;
    unsigned more; /* findings for which there was no room */
    struct test_slot slots[TEST_SLOTS];
    struct test_finding findings[TEST_FINDINGS];
    unsigned message_count;
    struct test_message_report messages[];
};

struct test_report *test_report_create(unsigned messages, int *fd);
struct test_report *test_report_map(int fd, unsigned messages);
void test_report_unmap(struct test_report **reportp);

struct test_finding *test_report_add(struct test_report *report, enum finding_kind kind,
                                     int message, const char *plan);

const char *finding_kind_name(enum finding_kind kind);
const char *test_call_text(enum test_call_name call);
const char *test_outcome_text(enum test_outcome outcome);

#endif
