/*
 * A group of origin servers that serve the same content: its members, the health of each of them,
 * and the requests that wait for one. A request uses a member through a slot (origin/slot.h).
 *
 *     struct origin_groups *groups = origin_groups_new(settings, NULL);
 *     struct origin_group *group = groups->list[map->origins - settings->origins_groups];
 *     ...
 *     struct origin_groups *next = origin_groups_new(new_settings, groups);       a reload
 *     origin_groups_release(&groups);
 *
 * A group is kept over reloads if its name stays, and a member if its URL stays (one that DNS names
 * also needs the same name= and local_destinations). So the health of a member and the requests under way at it still count. Requests that began under the old settings
 * see the group as the new settings define it.
 *
 * The settings name the members, or a name whose SRV records do (origin/source.h, origin/lookup.h).
 * Then the members change while the group is in use, and there may be none: a request is told so,
 * but waits like one for a full server until the name servers have said something for the first
 * time. Members that stay keep their health and their requests.
 *
 * A member goes down after max_failures failures in a row. It gets no requests for down_min. Then
 * one request (the probe) may go to it; the outcome brings the member up, or doubles the pause. In
 * a group with a health check, the check takes the place of the probe. While no member is up,
 * requests go to the member whose last failure is longest ago.
 *
 * Threads: all workers share the groups. Each group has one lock, held for a walk over its members;
 * under it no other lock is taken but mailboxes are posted to. Units: milliseconds of the loops'
 * clock.
 */
#ifndef RETORT_ORIGIN_GROUP_H
#define RETORT_ORIGIN_GROUP_H

#include "event/waiter.h"
#include "origin/member.h"
#include "origin/source.h"
#include "settings/settings.h"

struct origin_group {
    unsigned magic;
#define ORIGIN_GROUP_MAGIC 0x04199409u
    char *name;
    _Atomic unsigned references; /* by snapshots, or its origin_host's */
    pthread_mutex_t lock;
    struct origins_rules rules;
    bool checked;                 /* has a health check */
    struct origin_place *entries; /* what the settings list: servers, and sources of servers */
    size_t entry_count;
    struct origin_member **members; /* in the order of their tiers (origin/member.h) */
    size_t member_count;
    unsigned tiers;
    unsigned changes;       /* how often the members have become others */
    struct list_link queue; /* of slots, the oldest first */
    unsigned queued;
    uint64_t turns;
};

/* The groups of one snapshot of the settings, in the order of settings->origins_groups. */
struct origin_groups {
    unsigned magic;
#define ORIGIN_GROUPS_MAGIC 0x0419957eu
    _Atomic unsigned references;
    struct settings *settings; /* referenced */
    size_t count;
    struct origin_group **list;
};

/* Groups that `before` (may be NULL) has by the same name are taken over and changed. */
struct origin_groups *origin_groups_new(struct settings *settings, struct origin_groups *before);
struct origin_groups *origin_groups_reference(struct origin_groups *groups);
void origin_groups_release(struct origin_groups **groupsp);

/* What the admin plane shows of a group. */
struct origin_member_report {
    char *url;
    const char *state; /* "up", "down", "trying", "drain" */
    bool down;         /* also one that is being tried, or drained */
    char *error;       /* of the last failure; NULL: none yet */
    char *source;      /* the URL that the settings have for it; NULL: its own */
    unsigned weight, priority, active, failures;
    bool backup;
    uint64_t requests, failed, downs;
    uint64_t retry_in; /* milliseconds, when it is down; TIMER_NEVER: a check decides */
};

/* A name whose SRV records name members. */
struct origin_source_report {
    char *url, *named;
    const char *state; /* "asking", "found", "none", "unknown" */
    bool drain;        /* its servers get no new requests */
    bool failing;      /* the name servers do not answer, and the servers are those from before */
    const char *error; /* static text: why there are no servers, or why it is failing; NULL: none */
    unsigned servers, left_out;
    uint64_t ttl, ask_in; /* milliseconds */
};

struct origin_group_report {
    unsigned queued;
    size_t count, source_count;
    struct origin_member_report *members;
    struct origin_source_report *sources;
};

void origin_group_report(struct origin_group *group, uint64_t now,
                         struct origin_group_report *report);
void origin_group_report_release(struct origin_group_report *report);

/* The outcome of a health check. Error NULL: it went well. True: the member has gone down. */
bool origin_group_checked(struct origin_group *group, struct origin_member *member, uint64_t now,
                          const struct loop *loop, const char *error);
/* References to the members, for as long as the caller wants; they end with NULL. */
struct origin_member **origin_group_hold_members(struct origin_group *group);
void origin_group_drop_member(struct origin_group *group, struct origin_member **memberp);

/* References to the sources, likewise. */
struct origin_source **origin_group_hold_sources(struct origin_group *group);
void origin_group_drop_source(struct origin_group *group, struct origin_source **sourcep);

/* What an answer of a name server, or none, has changed in the group. */
struct origin_news {
    bool changed;               /* the group has other members, or uses them otherwise */
    bool failed;                /* the answer was of no use, so nothing has changed */
    unsigned members, left_out; /* of the source */
    const char *error;          /* static text; NULL: none */
    uint64_t ask_at; /* when to ask again; TIMER_NEVER: the settings have no such source now */
};

/* `answer` NULL: there is none, and `error` (static text) says why. */
void origin_group_heard(struct origin_group *group, struct origin_source *source,
                        const struct dns_targets *answer, const char *error, uint64_t now,
                        const struct loop *loop, struct origin_news *news);

/* Inside origin/. */

/* A group with these members that belongs to no snapshot; one reference. */
struct origin_group *origin_group_new(const struct origins_settings *settings);
void origin_group_release(struct origin_group **groupp);

/* The rest with the lock held. */

struct origin_slot;

/* What a request wants of the member that is chosen for it. */
struct origin_wish {
    uint64_t hash;         /* of what a consistent hash is of */
    const uint64_t *tried; /* numbers of members that have been tried */
    unsigned tried_count;
    bool repeatable; /* may be a probe before others may */
    bool only_up;    /* rather none than one that is down */
};

enum origin_choice {
    ORIGIN_CHOSEN,
    ORIGIN_CHOSEN_PROBE,
    ORIGIN_ALL_FULL, /* wait */
    ORIGIN_NONE_LEFT,
};

enum origin_choice origin_choose(struct origin_group *group, const struct origin_wish *wish,
                                 uint64_t now, struct origin_member **chosen);
/* 256 for each unit of weight, less while it starts slowly. */
uint64_t origin_member_share(const struct origin_group *group, const struct origin_member *member,
                             uint64_t now);
void origin_member_succeeded(struct origin_group *group, struct origin_member *member,
                             uint64_t now);
/* True: it has gone down. */
bool origin_member_failed(struct origin_group *group, struct origin_member *member, uint64_t now,
                          bool probe, const char *error);
/* The group may have members that are not known yet. */
bool origin_group_is_awaited(const struct origin_group *group);
/* Gives what has become free to those who wait. */
void origin_group_serve_queue(struct origin_group *group, uint64_t now, const struct loop *loop);

#endif
