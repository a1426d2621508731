/*
 * The admin plane: HTTP and JSON on a Unix socket or a loopback address, served by libmicrohttpd in
 * threads of its own. retortctl uses it. The proxy has no other protocol for operators.
 *
 *     GET  /status      {"version", "pid", "uptime", "workers", "state", "counters": {...}, ...}
 *     GET  /metrics     the counters as Prometheus text
 *     GET  /origins     {"origins": [{"name", "queued", "servers": [{"url", "state", ...}]}]}
 *     GET  /services    {"services": [{"name", "state", "endpoints": [...], "requests", ...}]}
 *     POST /services/bump?name=             makes all results of the service old: {"bumped": NAME}
 *     GET  /settings    the loaded settings
 *     GET  /dns?name=                       {"names": [{"name", "addresses", "expires_in", ...}]}
 *     POST /dns/clear?name= or all=yes      forgets what is remembered: {"cleared": N}
 *     POST /reload      reads the configuration again; 200, or 409 with {"error": "FILE:LINE: ..."}
 *     POST /drain       stops accepting, finishes what is under way, exits
 *
 * Pages for the content of the cache. Arguments are in the query. A page with url= refers to all
 * variants of the URL and answers 404 when nothing is stored for it.
 *
 *     GET    /cache/object?url=             {"variants": [{"state", "age", "fresh_for", ...}]}
 *     GET    /cache/content?url=&variant=   head and body of one, as application/http
 *     PUT    /cache/object?url=&lifetime=   stores the response that the body is
 *     DELETE /cache/object?url=&soft=yes    {"purged": N}
 *     GET    /cache/objects?prefix=&host=&tag=&regex=&limit=&after=
 *                                           {"objects": [...], "next": AFTER or null}
 *     POST   /cache/purge?...               the same filters, or all=yes; and soft=yes
 *     GET    /cache/bans                    {"bans": [{"number", "regex", "made"}]}
 *     POST   /cache/bans?regex=             {"number": N}; see cache/ban.h
 *     POST   /cache/lifetime?url=&seconds=  {"changed": N}
 *     POST   /cache/pin?url=, /cache/unpin?url=
 *
 * Pages to record ICAP exchanges (record/recorded_exchange.h), for retortctl:
 *
 *     POST /icap/record?FILTERS&body=&memory=&exchanges=&seconds=&unmasked=yes
 *                                           {"recording": NUMBER}; 409 while there is another
 *     POST /icap/record/take?recording=     records that wait, none or some
 *     POST /icap/record/stop?recording=     ends it; what is left is to be taken, up to the END
 *
 *     struct admin *admin = admin_start(settings, &calls, error);
 *     ...
 *     admin_stop(&admin);
 *
 * Threads: `calls` are called from the threads of the admin plane, one at a time; they reach the
 * workers by messages.
 */
#ifndef RETORT_ADMIN_ADMIN_H
#define RETORT_ADMIN_ADMIN_H

#include "admin/report.h"
#include "base/findings.h"
#include "net/resolver_report.h"
#include "settings/settings.h"

struct admin;
struct interception;
struct limits;
struct recorder;
struct origin_groups;

struct admin_calls {
    void *context;
    void (*report)(void *context, struct admin_report *report);
    /* Returns false when the file is refused and nothing has changed. `left` lists changes that
     * were not applied. */
    bool (*reload)(void *context, char error[SETTINGS_ERROR], struct findings *left);
    void (*drain)(void *context);
    unsigned worker_count;
    /* What the resolver of a worker remembers, or forgets. False: the worker does not answer. NULL:
     * there are no resolvers. */
    bool (*names)(void *context, unsigned worker, const struct resolver_wish *wish,
                  struct resolver_report *report);
    /* See service_tag_bump. `kept` is true when a restart does not undo it. Returns false when
     * there is no such service. NULL: there are no services. */
    bool (*bump)(void *context, const char *service, bool *kept);
    struct interception *interception;           /* NULL: there is none */
    struct limits *limits;                       /* NULL: there are none */
    struct cache *cache;                         /* NULL: there are no pages about the cache */
    struct disk *disk;                           /* NULL: there is none */
    struct settings *(*settings)(void *context); /* the current ones, referenced */
    /* Likewise; NULL: there are none. */
    struct origin_groups *(*origins)(void *context);
    void (*record)(void *context, struct recorder *recorder); /* all workers use the recorder
                                                               * from now on */
    struct recorder *(*recorder)(void *context);              /* the latest, likewise */
};

/* Returns NULL with a message in error after a failure. Returns an admin without a socket when
 * settings->admin.listen is NULL. */
struct admin *admin_start(const struct settings *settings, const struct admin_calls *calls,
                          char error[SETTINGS_ERROR]);
/* Checks whether this user could open the address if no other process used it. Returns false
 * with a message. */
bool admin_possible(const struct settings *settings, char error[SETTINGS_ERROR]);
void admin_stop(struct admin **adminp);

#endif
