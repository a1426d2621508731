/*
 * An instance of a service inside the proxy: its module, its settings, and what its start has made of
 * them. All workers use one instance at once (service.h, Threads).
 *
 *     struct inside_instance *instance = inside_instance_start(settings, NULL, error);
 *     if (instance == NULL) ...                             error says why
 *     void *state = instance->ops->begin(instance->service, &exchange);
 *     inside_instance_release(&instance);                   the last reference stops the service
 *
 * A reload starts a new instance, which reads its lists anew; exchanges that are under way go on
 * with the old one.
 *
 * Threads: started by one thread; references and counts are atomic. Errors: NULL and a sentence
 * "FILE:LINE: service NAME: ..." without a full stop.
 */
#ifndef RETORT_INSIDE_INSTANCE_H
#define RETORT_INSIDE_INSTANCE_H

#include "content/account.h"
#include "service/module.h"
#include "settings/settings.h"

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
    const char *const *names; /* ops->counters; other code may count other things */
    _Atomic uint64_t counts[SERVICE_MODULE_COUNTERS];
    struct content_numbers *content; /* what it does with the content of the cache; referenced */
};

struct inside_instance {
    unsigned magic;
#define INSIDE_INSTANCE_MAGIC 0x1451de00u
    _Atomic unsigned references;
    const struct service_ops *ops;
    void *service, *settings;
    bool started;
    struct service_host host;
    char *name;                      /* of the section */
    char version[INSIDE_VERSION];    /* which results are equal: as an ISTag says it in ICAP */
    struct inside_counts *counts;    /* referenced */
    struct inside_watches *watches;  /* the first worker's alone; NULL: there are none */
    unsigned counter_count;          /* that have a name */
    struct content_account *content; /* NULL: it has not started, or there is no cache */
    _Atomic int64_t log_second;
    _Atomic unsigned log_lines;
};

/* `before`: what instances of this service have counted; NULL: there was none. */
struct inside_instance *inside_instance_start(const struct service_settings *settings,
                                              struct inside_counts *before,
                                              char error[INSIDE_ERROR]);
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
