/*
 * Origin hosts: the origins that requests name by URL, each known by its scheme, host and port. An origin
 * host is there while requests are under way at it or wait for it. It has a group of one server, so
 * that a limit of connections and a queue work as they do for configured groups. It is only used
 * where origin.max_connections is set.
 *
 *     struct origin_host *host = origin_host_enter(hosts, &url, settings);
 *     ... a slot of host->group (origin/slot.h) ...
 *     origin_host_leave(&host);
 *
 * Threads: any. Locks: those of a shared table (base/shared_table.h), taken before a group's.
 */
#ifndef RETORT_ORIGIN_HOST_H
#define RETORT_ORIGIN_HOST_H

#include "base/shared_table.h"
#include "origin/group.h"

struct origin_hosts;

struct origin_host {
    struct shared_entry entry;
    unsigned magic;
#define ORIGIN_HOST_MAGIC 0x041991acu
    struct origin_hosts *hosts;
    unsigned references; /* under the lock of its part of the table */
    struct origin_group *group;
};

struct origin_hosts *origin_hosts_new(void);
void origin_hosts_free(struct origin_hosts **hostsp);

/* Uses the scheme, host and port of the URL, and the limits in the section "origin" of the settings. */
struct origin_host *origin_host_enter(struct origin_hosts *hosts, const struct url *url,
                                      const struct settings *settings);
/* Close the slots of its group first. */
void origin_host_leave(struct origin_host **hostp);

#endif
