/*
 * The admin plane: HTTP and JSON on a Unix socket, or on an address with or without TLS, served by
 * libmicrohttpd in threads of its own. retortctl uses it. The proxy has no other protocol for operators.
 *
 *     GET  /v1/status        {"version", "pid", "uptime", "workers", "state", "counters": {...}, ...}
 *     POST /v1/cache/purge?host=a.org        {"purged": 3, "counted": true}
 *     GET  /v1/help          all pages; the same for programs: /v1/openapi.json
 *
 * Arguments are in the query. An answer is JSON, and that of an error says what is wrong and what
 * to do: {"error": "...", "parameter": "url"}. The paths without /v1 are older names of the same
 * pages; they ignore arguments that they do not know. No argument may be there twice. admin/calls.def
 * has the table of all pages, admin/guard.h who may call them, admin/audit.h what is noted of
 * changes.
 *
 *     struct admin *admin = admin_start(settings, &calls, -1, error);
 *     ...
 *     admin_stop(&admin, false);
 *
 * Threads: `calls` are called from any thread of the admin plane; they reach the workers by messages. Who looks waits for
 * no change: what may wait is made apart (admin/apart.h), and a second change of settings is refused (admin/turn.h).
 */
#ifndef RETORT_ADMIN_ADMIN_H
#define RETORT_ADMIN_ADMIN_H

#include "admin/resolver_report.h"
#include "admin/worker_report.h"
#include "base/findings.h"
#include "cache/second_level.h"
#include "settings/settings.h"

/*
 * The state of the whole proxy at one moment: the sum of what its workers report, and what they share. Pages
 * are written from it. A value; milliseconds.
 *
 *     admin_report_begin(&report, settings);
 *     admin_report_add(&report, &worker_report);           for each worker that has answered
 *     admin_report_add_shared(&report, cache, second_level);
 *     admin_report_release(&report);
 */

struct admin_report {
    struct counters counters;
    struct durations durations;
    struct request_counts requests;
    struct settings *settings; /* used */
    const char *state;         /* "running", "draining" */
    uint64_t uptime;           /* milliseconds */
    uint64_t now;              /* the loops' clock */
    const char *under_way;     /* a change of settings; NULL: none is */
    uint64_t under_way_for;
    unsigned workers_silent; /* workers that did not answer in time */
    uint64_t cache_bytes, cache_objects, cache_limit, cache_evictions, cache_variants_dropped;
    uint64_t memory_returns;                                /* memory_shares_returns */
    const struct second_level_number *second_level_numbers; /* NULL: there is none */
    uint64_t second_level[SECOND_LEVEL_NUMBERS];
    struct admin_service *services; /* adapt/services_page.h */
    size_t service_count;
};

/* `state`,
 * `uptime` and `under_way` are the caller's to fill. */
void admin_report_begin(struct admin_report *report, struct settings *settings);
/* A worker that is about to reload has other services: only its counters are added. */
void admin_report_add(struct admin_report *report, const struct worker_report *worker);
/* second_level NULL: there is none. */
void admin_report_add_shared(struct admin_report *report, struct cache *cache,
                             struct second_level *second_level);
void admin_report_release(struct admin_report *report);

struct admin;
struct admin_service;
struct admin_connections;
struct admin_guard;
struct helper_numbers;
struct history;
struct origin_groups;
struct overrides;
struct settings_outcome;

struct admin_calls {
    void *context;
    void (*report)(void *context, struct admin_report *report);
    /* False: it is refused, and nothing has changed. The caller releases the outcome. */
    bool (*reload)(void *context, struct settings_outcome *outcome);
    /* Likewise, of changes at run time; `keep`: they shall outlive this process; `anew`: a service
     * that begins anew, NULL: none. */
    bool (*change)(void *context, const struct overrides *changes, bool keep, const char *anew,
                   struct settings_outcome *outcome);
    void (*drain)(void *context);
    unsigned worker_count;
    /* What the resolver of a worker remembers, or forgets. False: the worker does not answer. NULL:
     * there are no resolvers. */
    bool (*names)(void *context, unsigned worker, const struct resolver_wish *wish,
                  struct resolver_report *report);
    struct cache *cache;                         /* NULL: there are no pages about the cache */
    struct second_level *second_level;           /* NULL: there is none */
    struct settings *(*settings)(void *context); /* the current ones, referenced; not NULL */
    /* Likewise; NULL: there are none. */
    struct origin_groups *(*origins)(void *context);
    void *const *parts; /* the states of the parts, by number (part.h); NULL: there are none */
    /* Set by admin_start. */
    struct admin_guard *guard;
    struct helper_numbers *helpers;
    struct admin_connections *connections;
    struct history *history; /* NULL: there is none */
    uint64_t history_step;   /* milliseconds */
};

/* Returns NULL with a message in error after a failure. Returns an admin without a socket when
 * admin.listen is not set. `inherited`: a socket that listens at the
 * settings' address already and is owned from here on; -1: none. */
struct admin *admin_start(const struct settings *settings, const struct admin_calls *calls,
                          int inherited, char error[SETTINGS_ERROR]);
/* The listening socket, which still belongs to the admin plane; -1: there is none. */
int admin_socket(const struct admin *admin);
/* Accepts no more connections, and ends all feeds, so that their readers connect to the
 * process that has the socket now. The socket's file stays. */
void admin_give_away(struct admin *admin);
/* From now on the file of an inherited socket belongs to this process, which removes it at the end.
 * Before, it belongs to the process that has made it. */
void admin_own_file(struct admin *admin, const struct settings *settings);
/* Checks whether this user could open the address if no other process used it. Returns false
 * with a message. */
bool admin_possible(const struct settings *settings, char error[SETTINGS_ERROR]);
/* Answers who has connected before, for a moment, unless it is hurried. */
void admin_stop(struct admin **adminp, bool hurried);

#endif
