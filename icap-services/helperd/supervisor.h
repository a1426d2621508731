/*
 * The supervisor: everything that retort-helperd as a whole holds. Threads: one, with one loop.
 *
 *     struct supervisor supervisor;
 *     if (supervisor_start(&supervisor, path, &settings)) supervisor_run(&supervisor);
 *     supervisor_release(&supervisor);
 */
#ifndef RETORT_HELPERD_SUPERVISOR_H
#define RETORT_HELPERD_SUPERVISOR_H

#include "base/list.h"
#include "event/loop.h"
#include "helperd/pool.h"
#include "helperd/settings.h"

struct supervisor {
    unsigned magic;
#define SUPERVISOR_MAGIC 0x53757065u
    struct loop loop;
    const char *path; /* of the configuration */
    struct helperd_settings *settings;
    int listen_fd, signal_fd;
    struct event listen_event, signal_event;
    struct timer listen_timer; /* until connections are accepted again */
    struct list_link pools, clients;
    unsigned client_count;
    bool stopping;
    uint64_t started;
};

/* Takes over the settings. False when the socket can't be had; the reason is logged. */
bool supervisor_start(struct supervisor *supervisor, const char *path,
                      struct helperd_settings **settingsp);
void supervisor_run(struct supervisor *supervisor);
void supervisor_release(struct supervisor *supervisor);

struct pool *supervisor_pool(struct supervisor *supervisor, const char *name);
/* Reads the configuration and opens the log again. False: the configuration is bad and the old one
 * stays; the log says why. `left` gets what was not applied. */
bool supervisor_reload(struct supervisor *supervisor, struct findings *left);

#endif
