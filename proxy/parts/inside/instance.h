/*
 * An instance of a service inside the proxy: its module, its settings, and what its start has made of
 * them. All workers use one instance at once (service.h, Threads).
 *
 *     struct inside_instance *instance = inside_instance_start(settings, NULL, workers, error);
 *     if (instance == NULL) ...                             error says why
 *     void *state = instance->ops->begin(instance->service, &exchange);
 *     inside_instance_release(&instance);                   the last reference stops the service
 *
 * Where the service runs in threads or processes of its own (inside/runners.h), `ops` are functions
 * that hand the work over (inside/remote.h). The last reference then lets those end, and they end the
 * instance; nobody waits for that.
 *
 * A reload starts a new instance, which reads its lists anew; exchanges that are under way go on
 * with the old one.
 *
 * Threads: started by one thread; references and counts are atomic. Errors: NULL and a sentence
 * "FILE:LINE: service NAME: ..." without a full stop.
 */
#ifndef RETORT_INSIDE_INSTANCE_H
#define RETORT_INSIDE_INSTANCE_H

#include "cache/content_numbers.h"
#include "inside/child.h"
#include "service/start.h"

#include <stdatomic.h>

/* INSIDE_SLOW: microseconds that a call of a service may take. */
enum { INSIDE_ERROR = 1000, INSIDE_VERSION = 64, INSIDE_SLOW = 5000 };

struct inside_watches;

/* What a service counts itself, by the indices of ops->counters. The instances of one service after
 * another share it, so that a reload loses nothing. */
struct inside_counts {
    unsigned magic;
#define INSIDE_COUNTS_MAGIC 0x1451dec7u
    _Atomic unsigned references;
    /* As ops->counters; other code may count other things. */
    const char *names[SERVICE_MODULE_COUNTERS + 1];
    _Atomic uint64_t counts[SERVICE_MODULE_COUNTERS];
    struct content_numbers *content; /* what it does with the content of the cache; referenced */
};

struct inside_instance {
    unsigned magic;
#define INSIDE_INSTANCE_MAGIC 0x1451de00u
    _Atomic unsigned references;
    const struct service_ops *ops;    /* what workers call */
    const struct service_ops *module; /* the module's own; NULL: it is in other processes */
    const void *identity;             /* of the module: equal for all instances of it */
    void *service;
    struct service_start start;
    struct inside_thread *end; /* that stops it */
    struct service_host host;
    char *name;                   /* of the section */
    const char *kept_name;        /* the same, for good */
    char version[INSIDE_VERSION]; /* which results are equal: as an ISTag says it in ICAP */
    _Atomic(struct inside_counts *) counts; /* referenced */
    struct inside_watches *watches;         /* the first worker's alone; NULL: there are none */
    unsigned counter_count;                 /* that have a name */
    struct content_account *content;        /* NULL: it has not started, or there is no cache */
    _Atomic int64_t log_second;
    _Atomic unsigned log_lines;
    /* Where it does not run in the workers */
    struct inside_runners *runners; /* NULL: it does */
    struct service_ops remote_ops;
    struct inside_event_calls told; /* by the first process */
    const char *counter_names[SERVICE_MODULE_COUNTERS + 1];
    _Atomic uint64_t fingerprint; /* as the process that was started last said it */
};

/* `before`: what instances of this service have counted; NULL: there was none. `workers`: that will
 * call it, each with its number below that. */
struct inside_instance *inside_instance_start(const struct service_settings *settings,
                                              struct inside_counts *before, unsigned workers,
                                              char error[INSIDE_ERROR]);
/* The version now; it may be written into `version`. */
const char *inside_instance_version(const struct inside_instance *instance,
                                    char version[INSIDE_VERSION]);
/* The version of what is made by who has that fingerprint. */
void inside_version_write(uint64_t fingerprint, char version[INSIDE_VERSION]);
/* What the service has counted itself. */
uint64_t inside_instance_count(const struct inside_instance *instance, unsigned counter);
struct inside_instance *inside_instance_reference(struct inside_instance *instance);
/* NULL is one as well. */
struct inside_counts *inside_counts_reference(struct inside_counts *counts);
void inside_counts_release(struct inside_counts **countsp);
void inside_instance_release(struct inside_instance **instancep);

/* Writes a line about the service, unless it has had too many this second. */
void inside_instance_complain(struct inside_instance *instance, const char *text);
/* A call of the service took so many microseconds, and the worker did nothing else meanwhile. */
void inside_instance_tell_slow(struct inside_instance *instance, const char *what,
                               uint64_t microseconds);

#endif
