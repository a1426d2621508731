/*
 * The admin plane: HTTP and JSON on a Unix socket (or a loopback address), served by libmicrohttpd
 * in a thread of its own. Nothing else speaks a private protocol to the proxy; retortctl uses this.
 *
 *     GET  /status      {"version", "pid", "uptime", "workers", "state", "counters": {...}, ...}
 *     GET  /metrics     the counters as Prometheus text
 *     GET  /origins     {"origins": [{"name", "queued", "servers": [{"url", "state", ...}]}]}
 *     GET  /services    {"services": [{"name", "state", "endpoints": [...], "requests", ...}]}
 *     POST /services/bump?name=             makes all results of the service old: {"bumped": NAME}
 *     GET  /settings    the loaded settings
 *     POST /reload      reads the configuration again; 200, or 409 with {"error": "FILE:LINE: ..."}
 *     POST /drain       stops accepting, finishes what is under way, exits
 *
 * The cache's content; arguments stand in the query. Those with url= answer 404 when nothing is
 * stored for it, and mean all its variants.
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
 * What passes between the proxy and ICAP services (record/recorded_exchange.h), for retortctl:
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
#include "settings/settings.h"

struct admin;
struct recorder;
struct origin_groups;

struct admin_calls {
    void *context;
    void (*report)(void *context, struct admin_report *report);
    /* False: refused, nothing has changed. `left`: what of it was not applied. */
    bool (*reload)(void *context, char error[SETTINGS_ERROR], struct findings *left);
    void (*drain)(void *context);
    /* See service_tag_bump; kept: a restart does not undo it. False: there is no such service. NULL:
     * there are none. */
    bool (*bump)(void *context, const char *service, bool *kept);
    struct cache *cache;                         /* NULL: there are no pages about it */
    struct disk *disk;                           /* NULL: there is none */
    struct settings *(*settings)(void *context); /* the current ones, referenced */
    /* Likewise; NULL: there are none. */
    struct origin_groups *(*origins)(void *context);
    void (*record)(void *context, struct recorder *recorder); /* from now on, everywhere */
    struct recorder *(*recorder)(void *context);              /* the latest, likewise */
};

/* NULL with a message in error. Does nothing and returns an inert admin when settings->admin.listen
 * is NULL. */
struct admin *admin_start(const struct settings *settings, const struct admin_calls *calls,
                          char error[SETTINGS_ERROR]);
/* Could this user open it, once nobody else has it? False: and a message. */
bool admin_possible(const struct settings *settings, char error[SETTINGS_ERROR]);
void admin_stop(struct admin **adminp);

#endif
