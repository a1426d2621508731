/*
 * The processes of an instance (`runs = process`): each has a thread that starts it, watches over it,
 * and starts it again when it has ended.
 *
 *     const struct inside_children children = {.settings = settings, .owner = instance, ...};
 *     struct inside_event_calls told;
 *     if (!inside_children_start(runners, &children, &told, error, &complete)) ...
 *
 * inside_children_start waits for the first word of each process, for at most start_timeout from when
 * the process has its turn: no more start at once than there are cores. Later on
 * a process that ends is started again after a second; each further time the pause doubles, up to a
 * minute, and it is a second again when a process has run for a minute. A process is ended, and counts
 * as one that has ended, when it writes what it may not write, and when it has not looked at its
 * memory for hang_timeout although messages are under way there.
 *
 * Nothing that a process says is taken for true: what it says of its module is checked, and after a
 * restart it has to say the same, but for the fingerprint.
 *
 * Threads: inside_children_start is called by one; the functions of the host are called by the threads
 * of the children. Errors: sentences without a full stop.
 */
#ifndef RETORT_INSIDE_CHILD_H
#define RETORT_INSIDE_CHILD_H

#include "inside/runners.h"
#include "service/module.h"
#include "service/start.h"

/* What a process says of its module. */
struct inside_event_calls {
    uint64_t fingerprint, answers_within;
    unsigned points, preview_size;
    bool wants_client_ip, has_events;
    char name[SERVICE_MODULE_NAME];
    char description[256];
    char notice[SERVICE_NOTICE];
    char counters[SERVICE_MODULE_COUNTERS][SERVICE_MODULE_NAME];
    unsigned counter_count;
};

struct inside_children {
    const struct service_settings *settings; /* read before inside_children_start returns */
    void *owner;                             /* of the functions; it outlives the runners */
    void (*log)(void *owner, enum log_level level, const char *text);
    void (*told)(void *owner, const struct inside_event_calls *told); /* each time one is started */
    /* What the service counted itself in a process that has ended. */
    void (*counted)(void *owner, const uint64_t counts[SERVICE_MODULE_COUNTERS]);
};

/* `complete`: the sentence says where the mistake is. */
bool inside_children_start(struct inside_runners *runners, const struct inside_children *children,
                           struct inside_event_calls *told, char error[SERVICE_START_ERROR],
                           bool *complete);

/* The same name, kept for good: reports outlive instances. After some hundreds, others become
 * "OTHER". */
const char *inside_name_keep(const char *name);

/* The words behind PROCESS_READY. False: that can't be. */
bool inside_event_calls_read(struct inside_event_calls *told, const char *bytes, size_t length);

#endif
