/*
 * A report on one service: its state and numbers, for the admin plane.
 *
 *     shared_service_report(shared, &report);        what all workers know: states, reasons
 *     adapter_report(adapter, &seen);                what one worker has: connections, the account
 *     service_report_add(&report, &seen);            the sum of all workers
 *
 * Threads: values. Units: milliseconds of the loops' clock where nothing else is said.
 */
#ifndef RETORT_ADAPT_SERVICE_REPORT_H
#define RETORT_ADAPT_SERVICE_REPORT_H

#include "adapt/adapter_account.h"
#include "adapt/server_numbers.h"
#include "event/timer.h"
#include "service/module.h"
#include "settings/settings.h"

#include <time.h>

/* SERVICE_TEXT: for a name, a product or a version that a service states; cut there. */
enum { SERVICE_TEXT = 256, SERVICE_REPORT_NOTICE = 512, SERVICE_ERROR = 448 };

/* TRIAL: it was down, and one transaction is let through to see whether it is up. UNLOADED: it is
 * disabled. */
enum service_state { SERVICE_UNKNOWN, SERVICE_DOWN, SERVICE_TRIAL, SERVICE_UP, SERVICE_UNLOADED };
enum { SERVICE_STATES = SERVICE_UNLOADED + 1 };

const char *service_state_name(enum service_state state);

/* One place where the service runs, in the order of the settings. */
struct service_endpoint_report {
    enum service_state state;
    time_t since;              /* of that state */
    uint64_t retry_at;         /* while it is down: when it is tried next; TIMER_NEVER: it is not */
    char error[SERVICE_ERROR]; /* why it is down, or failed last */
    char notice
        [SERVICE_REPORT_NOTICE]; /* what it has to say to whoever runs the proxy; empty: nothing */
    unsigned connections;
    struct server_report server; /* what its server says of itself */
};

/* A thread or process of a service inside the proxy. */
struct service_runner_report {
    bool up;
    time_t since;
    pid_t pid;         /* 0: a thread, or none */
    uint64_t starts;   /* processes up to now */
    uint64_t hangs;    /* how often it did not answer for hang_timeout */
    uint64_t retry_at; /* as of an endpoint */
    char error[SERVICE_ERROR];
};

enum { SERVICE_RUNNERS = 64 };

/* A counter of the service itself. */
struct service_own_count {
    const char *name; /* a constant */
    uint64_t count;
};

/* What it has to do with the content of the cache (cache/content_numbers.h). */
struct content_report {
    uint64_t started, refused, failed, fetched, injected_bytes, read_bytes, open, held_bytes;
};

/* Texts are as the service stated them, or empty. */
struct service_report {
    enum service_state state; /* of its best endpoint */
    unsigned connections;     /* open now */
    unsigned pending;         /* transactions that wait for a connection */
    char version[SERVICE_TEXT], product[SERVICE_TEXT], id[SERVICE_TEXT];
    struct service_endpoint_report endpoints[ICAP_ENDPOINTS_MAX];
    struct adapter_account account; /* since the start */
    struct service_own_count own[SERVICE_MODULE_COUNTERS];
    unsigned own_count;
    struct content_report content;
    enum service_runs runs; /* inside the proxy */
    struct service_runner_report runners[SERVICE_RUNNERS];
    unsigned runner_count;
    uint64_t bypassed;      /* messages that passed without it since `bypassed_since` */
    int64_t bypassed_since; /* seconds since 1970; 0: none do now */
};

/* Adds what one worker has. */
void service_report_add(struct service_report *report, const struct service_report *seen);

#endif
