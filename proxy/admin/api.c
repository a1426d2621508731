#include "admin/api.h"

#include "admin/access_page.h"
#include "admin/cache_object_page.h"
#include "admin/cache_page.h"
#include "admin/dns_page.h"
#include "admin/events_page.h"
#include "admin/helpers_page.h"
#include "admin/history_page.h"
#include "admin/inspect_page.h"
#include "admin/intercept_page.h"
#include "admin/limits_page.h"
#include "admin/metrics_page.h"
#include "admin/openapi.h"
#include "admin/origins_page.h"
#include "admin/record_page.h"
#include "admin/service_control_page.h"
#include "admin/services_page.h"
#include "admin/settings_page.h"
#include "admin/whoami_page.h"
#include "record/inspections.h"

#include <stdio.h>
#include <strings.h>

enum { API_BODY = 64 << 10, API_INJECTED = 64 << 20 };

/* clang-format off */

#define TEXT(name, what)                {name, API_TEXT, false, what, 0, 0, 0}
#define NEEDED(name, what)              {name, API_TEXT, true, what, 0, 0, 0}
#define NUMBER(name, what, least, most) {name, API_NUMBER, false, what, least, most, 0}
#define PLACE(name, what)               {name, API_PLACE, false, what, 0, INT64_MAX, 0}
#define FLAG(name, what)                {name, API_FLAG, false, what, 0, 0, 0}
#define END                             {NULL, API_END, false, NULL, 0, 0, 0}
#define URL                             NEEDED("url", "the URL")
#define SAVE                            FLAG("save", "whether the change outlives the process")
#define FILTERS                                                                                    \
    TEXT("prefix", "the beginning of URLs"), TEXT("host", "the host"),                             \
    TEXT("tag", "the key of Surrogate-Key or Cache-Tag"), TEXT("regex", "the expression for URLs")

#define SHOWS_TO(least) .method = "GET", .role = OPERATOR_##least, .body_max = API_BODY
#define CHANGES_BY(least, by)                                                                      \
    .method = by, .role = OPERATOR_##least, .changes = true, .body_max = API_BODY
#define READS   SHOWS_TO(READ)
#define CHANGES CHANGES_BY(OPERATE, "POST")

const struct api_route api_routes[] = {
    {READS, .path = "/status", .show = page_status,
     .answer = "version string, pid integer, uptime number, state string, workers integer, "
               "workers_silent integer, file string, cache object, disk any, icap_services array, "
               "counters object, certificates array, trust array",
     .summary = "Shows the state, the cache, the services, the certificates and all counters.",
     .parameters = {END}},
    {READS, .path = "/whoami", .ask = whoami_page_make,
     .answer = "name string, role string, from string, certificate string, version string, pid "
               "integer",
     .summary = "Says who the caller is, and what his role is.", .parameters = {END}},
    {READS, .path = "/history", .ask = history_page_make,
     .answer = "step integer, now integer, names array, samples array",
     .summary = "Shows the traffic of the last hours.",
     .parameters = {NUMBER("after", "the time in milliseconds that samples are later than", 0,
                           INT64_MAX),
                    FLAG("day", "whether minutes of a day are shown, not steps of six hours"),
                    END}},
    {READS, .path = "/helpers", .show = helpers_page_show, .answer = "pools array",
     .summary = "Shows the pools of helper processes. 503: retort-helperd does not answer.",
     .parameters = {END}},
    {CHANGES, .path = "/helpers/renice", .ask = helpers_page_renice,
     .answer = "pool string, nice integer", .summary = "Changes the priority of a pool.",
     .parameters = {NEEDED("pool", "the name of the pool"),
                    {"nice", API_NUMBER, true, "the nice level", 0, HELPERS_NICE_MOST, 0}, END}},
    {CHANGES, .path = "/helpers/resize", .ask = helpers_page_resize,
     .answer = "pool string, processes integer",
     .summary = "Changes the number of processes of a pool.",
     .parameters = {NEEDED("pool", "the name of the pool"),
                    {"processes", API_NUMBER, true, "the number of processes", 1,
                     HELPERS_PROCESSES_MOST, 0},
                    END}},
    {READS, .path = "/metrics", .ask = metrics_page_make, .type = "text/plain",
     .summary = "Shows all metrics in the format of Prometheus.", .parameters = {END}},
    {READS, .path = "/origins", .show = origins_page_make, .answer = "origins array",
     .summary = "Shows the groups of origins and the state of their servers.",
     .parameters = {END}},
    {READS, .path = "/services", .show = page_services, .answer = "services array",
     .summary = "Shows the services of both kinds with their endpoints, counts and times.",
     .parameters = {END}},
    {CHANGES, .path = "/services/bump", .ask = services_page_bump, .answer = "bumped string",
     .summary = "Makes all earlier results of a service old.",
     .parameters = {NEEDED("name", "the name of the service"), END}},
    {CHANGES_BY(ADMIN, "POST"), .shared = true, .path = "/services/load", .ask = service_control_page_load,
     .answer = "service string, loaded boolean, notes array, changed array, "
               "waits_for_restart array, refused array, saved boolean",
     .summary = "Starts a service anew: its section, its lists and its module are read again.",
     .parameters = {NEEDED("name", "the name of the service"), SAVE, END}},
    {CHANGES_BY(ADMIN, "POST"), .shared = true, .path = "/services/unload", .ask = service_control_page_unload,
     .answer = "service string, loaded boolean, notes array, changed array, "
               "waits_for_restart array, refused array, saved boolean",
     .summary = "Takes a service out of all chains.",
     .parameters = {NEEDED("name", "the name of the service"), SAVE, END}},
    {CHANGES_BY(ADMIN, "POST"), .shared = true, .path = "/services/order", .ask = service_control_page_order,
     .answer = "class string, services array, changed array, waits_for_restart array, "
               "refused array, saved boolean",
     .summary = "Changes the order of the services of a class.",
     .parameters = {NEEDED("class", "the URL class of the adapt section"),
                    NEEDED("services", "the names of all its services, with commas between"), SAVE,
                    END}},
    {READS, .path = "/settings", .show = settings_page_show, .answer = "",
     .summary = "Shows the settings in use, with defaults and without secrets.",
     .parameters = {END}},
    {CHANGES_BY(ADMIN, "POST"), .path = "/settings", .ask = settings_page_set, .takes_json = true,
     .answer = "changed array, waits_for_restart array, refused array, saved boolean",
     .summary = "Changes options at run time: the body has names and values.",
     .parameters = {SAVE, END}},
    {CHANGES_BY(ADMIN, "DELETE"), .path = "/settings", .ask = settings_page_unset,
     .answer = "changed array, waits_for_restart array, refused array, saved boolean",
     .summary = "Makes options again what the files say.",
     .parameters = {TEXT("name", "the name of the option"),
                    FLAG("all", "whether all options are meant"), SAVE, END}},
    {READS, .path = "/settings/options", .ask = settings_page_list, .answer = "options array",
     .summary = "Lists options with values, and where each comes from.",
     .parameters = {TEXT("name", "the name of an option or a section"), END}},
    {READS, .path = "/settings/changes", .show = settings_page_changes, .answer = "changes array",
     .summary = "Lists what was changed at run time.", .parameters = {END}},
    {READS, .path = "/settings/effective", .show = settings_page_effective,
     .answer = "from object", .summary = "As /settings, and says where each value comes from.",
     .parameters = {END}},
    {READS, .path = "/settings/schema", .show = settings_page_schema, .answer = "",
     .summary = "Describes the settings (JSON schema, draft 7).", .parameters = {END}},
    {CHANGES, .shared = true, .path = "/reload", .show = settings_page_reload,
     .answer = "reloaded boolean, changed array, waits_for_restart array, refused array, "
               "not_applied array",
     .summary = "Reads the configuration again. 409: it is refused, or something in it.",
     .parameters = {END}},
    {CHANGES_BY(ADMIN, "POST"), .path = "/drain", .show = page_drain,
     .answer = "draining boolean",
     .summary = "Accepts no more connections, finishes what is under way, and exits.",
     .parameters = {END}},
    {READS, .path = "/access", .show = access_page_make, .answer = "access array",
     .summary = "Shows the access sections and how often each has decided.",
     .parameters = {END}},
    {READS, .path = "/access/test", .ask = access_page_test,
     .answer = "outcome string, status integer, why string, sections array",
     .summary = "Says which access section would decide about a request.",
     .parameters = {URL, TEXT("method", "the method"), TEXT("client", "the address of the client"),
                    TEXT("user", "the name of the user"), TEXT("group", "the groups of the user"),
                    TEXT("listener", "the listener"), TEXT("header", "the header fields"),
                    TEXT("destination", "the addresses of the host"), TEXT("sni", "the SNI"),
                    TEXT("certificate", "the subject of the client's certificate"),
                    TEXT("authenticator", "the authenticator"), END}},
    {READS, .path = "/limits", .ask = limits_page_show,
     .answer = "entries integer, sections array, list array",
     .summary = "Shows the limit sections, and who has used how much of them.",
     .parameters = {TEXT("section", "the limit section"), TEXT("client", "the client"), END}},
    {CHANGES, .path = "/limits/clear", .ask = limits_page_clear, .answer = "cleared integer",
     .summary = "Lets clients begin anew.",
     .parameters = {TEXT("section", "the limit section"), TEXT("client", "the client"), END}},
    {READS, .path = "/dns", .ask = dns_page_make,
     .answer = "names array, left_off integer, workers_silent integer",
     .summary = "Shows the names that are remembered.",
     .parameters = {TEXT("name", "the name"), END}},
    {CHANGES, .path = "/dns/clear", .ask = dns_page_make, .answer = "cleared integer",
     .summary = "Forgets a name, or all names.",
     .parameters = {TEXT("name", "the name"), FLAG("all", "whether all names are forgotten"), END}},
    {READS, .path = "/intercept", .show = intercept_page_make,
     .answer = "refusals array, asking array",
     .summary = "Shows what was learnt of certificates that clients refuse.",
     .parameters = {END}},
    {CHANGES, .path = "/intercept/clear", .ask = intercept_page_clear, .answer = "cleared integer",
     .summary = "Forgets what was learnt, so that connections are opened again.",
     .parameters = {TEXT("client", "the client"), TEXT("host", "the host"), END}},

    {READS, .path = "/cache/object", .cache = cache_object_page_show, .answer = "variants array",
     .summary = "Shows the stored variants of a URL.", .parameters = {URL, END}},
    {.method = "PUT", .role = OPERATOR_ADMIN, .changes = true, .body_max = API_INJECTED,
     .path = "/cache/object", .cache = cache_object_page_inject, .answer = "",
     .summary = "Stores the response that the body is.",
     .parameters = {URL, NUMBER("lifetime", "the lifetime in seconds", 0, INT32_MAX), END}},
    {CHANGES_BY(OPERATE, "DELETE"), .path = "/cache/object", .cache = cache_page_delete,
     .answer = "purged integer", .summary = "Removes all variants of a URL.",
     .parameters = {URL, FLAG("soft", "whether objects only become stale"), END}},
    {SHOWS_TO(OPERATE), .path = "/cache/content", .shared = true, .cache = cache_object_page_content,
     .type = "application/http", .summary = "Shows the head and the body of a variant.",
     .parameters = {URL, NUMBER("variant", "the number of the variant", 0, 1000), END}},
    {READS, .path = "/cache/objects", .shared = true, .cache = cache_page_objects,
     .answer = "objects array, next place",
     .summary = "Lists stored objects. next: where to go on; there may be more also when objects is "
                "empty.",
     .parameters = {FILTERS, NUMBER("limit", "the number of objects", 0, 1000),
                    PLACE("after", "the place to go on from"), END}},
    {CHANGES, .path = "/cache/purge", .shared = true, .cache = cache_page_purge,
     .answer = "purged integer, counted boolean", .summary = "Removes matching objects at once.",
     .parameters = {FILTERS, FLAG("all", "whether everything is removed"),
                    FLAG("soft", "whether objects only become stale"), END}},
    {READS, .path = "/cache/bans", .cache = cache_page_bans, .answer = "bans array",
     .summary = "Lists the bans.", .parameters = {END}},
    {CHANGES, .path = "/cache/bans", .cache = cache_page_ban, .answer = "number integer",
     .summary = "Removes matching objects when they are next looked up.",
     .parameters = {NEEDED("regex", "the expression for URLs"), END}},
    {CHANGES, .path = "/cache/lifetime", .cache = cache_page_lifetime, .answer = "changed integer",
     .summary = "Makes the object stale after so many seconds.",
     .parameters = {URL, {"seconds", API_NUMBER, true, "the lifetime in seconds", 0, INT32_MAX, 0},
                    END}},
    {CHANGES, .path = "/cache/pin", .cache = cache_page_pin, .answer = "changed integer",
     .summary = "Protects the object from eviction.", .parameters = {URL, END}},
    {CHANGES, .path = "/cache/unpin", .cache = cache_page_unpin, .answer = "changed integer",
     .summary = "Allows eviction of the object again.", .parameters = {URL, END}},

    {CHANGES, .path = "/icap/record", .ask = record_page_begin, .answer = "recording integer",
     .summary = "Starts a recording of what services get and make, of both kinds. 409: there is another one, or an "
                "inspection that still takes transactions.",
     .parameters = {TEXT("service", "the service"), TEXT("point", "the point"),
                    TEXT("host", "the host"), TEXT("prefix", "the beginning of URLs"),
                    TEXT("regex", "the expression for URLs"), TEXT("verdict", "the verdict"),
                    TEXT("status", "the status"), TEXT("sample", "the sample"),
                    NUMBER("body", "the recorded bytes of a body", 0, RECORDED_BODY_MAX),
                    NUMBER("memory", "the bytes of memory", 1, (uint64_t)1 << 30),
                    NUMBER("exchanges", "the number of exchanges", 1, 1000000),
                    NUMBER("seconds", "the number of seconds", 1, 86400),
                    {"unmasked", API_FLAG, false, "whether secrets are recorded", 0, 0,
                     OPERATOR_ADMIN},
                    END}},
    {CHANGES, .path = "/icap/record/take", .ask = record_page_take,
     .type = "application/octet-stream",
     .summary = "Takes the records that wait. 403: they have secrets, and are for an admin.",
     .parameters = {NEEDED("recording", "the number of the recording"), END}},
    {CHANGES, .path = "/icap/record/stop", .ask = record_page_end, .answer = "stopped boolean",
     .summary = "Ends a recording.",
     .parameters = {NEEDED("recording", "the number of the recording"), END}},

    {SHOWS_TO(OPERATE), .changes = true, .shared = true, .path = "/events",
     .ask = events_page_open, .type = "text/event-stream",
     .summary = "Streams an event for each transaction that ends. Its opening is in the audit log.",
     .parameters = {TEXT("class", "the URL class"),
                    TEXT("status", "the statuses, such as 404,5xx"), TEXT("method", "the methods"),
                    TEXT("result", "the results, such as HIT,MISS"),
                    TEXT("service", "the services"), TEXT("client", "the addresses or networks"),
                    TEXT("user", "the user"), TEXT("host", "the hosts; .example.org is a domain"),
                    TEXT("url", "a part of the URL"),
                    NUMBER("min_ms", "the least duration in milliseconds", 0, 86400000), END}},
    {SHOWS_TO(OPERATE), .path = "/inspect", .show = inspect_page_list,
     .answer = "under_way boolean, left integer, seconds_left integer, memory integer, "
               "evicted integer, left_out integer, transactions array",
     .summary = "Shows how the inspection stands, and the transactions that are kept.",
     .parameters = {END}},
    {CHANGES, .path = "/inspect", .ask = inspect_page_begin, .answer = "inspection integer",
     .summary = "Inspects the next transactions. 409: a recording or an inspection is in progress.",
     .parameters = {NUMBER("transactions", "the number of transactions", 1, INSPECTIONS_KEPT),
                    NUMBER("seconds", "the number of seconds", 1, 86400),
                    TEXT("host", "the host"), TEXT("prefix", "the beginning of URLs"),
                    TEXT("regex", "the expression for URLs"),
                    TEXT("client", "the address of the client"),
                    NUMBER("body", "the kept bytes of a body", 0, RECORDED_BODY_MAX),
                    {"unmasked", API_FLAG, false, "whether secrets are kept", 0, 0,
                     OPERATOR_ADMIN},
                    END}},
    {CHANGES, .path = "/inspect/stop", .show = inspect_page_stop, .answer = "stopped boolean",
     .summary = "Inspects no more transactions.", .parameters = {END}},
    {CHANGES, .path = "/inspect/clear", .show = inspect_page_clear, .answer = "cleared integer",
     .summary = "Forgets the inspected transactions that have ended.", .parameters = {END}},
    {SHOWS_TO(OPERATE), .path = "/inspect/transaction", .ask = inspect_page_transaction,
     .answer = "id string, at integer, steps array, services array, heads object, "
               "exchanges array",
     .summary = "Shows what became of an inspected transaction.",
     .parameters = {NEEDED("id", "the id of the transaction"), END}},
    {SHOWS_TO(OPERATE), .path = "/inspect/body", .ask = inspect_page_body,
     .type = "application/octet-stream",
     .summary = "Shows the body that a service got, or that it made.",
     .parameters = {NEEDED("id", "the id of the transaction"),
                    {"exchange", API_NUMBER, true, "the number of the exchange", 0,
                     INSPECTED_RECORDS, 0},
                    NEEDED("part", "the part"), END}},

    {READS, .path = "/openapi.json", .show = openapi_make, .answer = "",
     .summary = "Describes these pages (OpenAPI 3.0).", .parameters = {END}},
    {READS, .path = "/help", .show = openapi_help, .type = "text/plain",
     .summary = "Lists these pages with their roles and arguments.", .parameters = {END}},
    {.path = NULL},
};

/* clang-format on */

const char *api_path(const char *path, bool *strict) {
    *strict = strncmp(path, "/v1/", 4) == 0;
    return *strict ? path + 3 : path;
}

const struct api_route *api_find(const char *method, const char *path, char allow[API_ALLOW]) {
    const char *asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    size_t length = 0;
    allow[0] = '\0';
    for (const struct api_route *route = api_routes; route->path != NULL; route++) {
        if (strcmp(route->path, path) != 0)
            continue;
        if (strcmp(route->method, asked) == 0)
            return route;
        length += (size_t)snprintf(allow + length, API_ALLOW - length, "%s%s",
                                   length > 0 ? ", " : "", route->method);
    }
    return NULL;
}

/* libmicrohttpd finds HOST as host. /v1 takes only host; the older paths take all, and each counts
 * when they look for one that is there twice. */
static const struct api_parameter *parameter_find(const struct api_route *route, bool strict,
                                                  const char *name) {
    const struct api_parameter *parameter = route->parameters;
    int (*compare)(const char *, const char *) = strict ? strcmp : strcasecmp;
    while (parameter->name != NULL && compare(parameter->name, name) != 0)
        parameter++;
    return parameter->name == NULL ? NULL : parameter;
}

/* {"error": what is wrong, "parameter": its name} */
static bool refuse_parameter(struct page *page, const char *name, const char *reason) {
    json_t *json =
        json_pack("{s:s, s:o}", "error", reason, "parameter", cache_call_text(slice_from(name)));
    page_json(page, 400, json);
    return false;
}

/* The older names of the pages take 1 and 0 too. */
static bool is_flag(const char *value, bool strict) {
    bool number = strcmp(value, "1") == 0 || strcmp(value, "0") == 0;
    return strcmp(value, "yes") == 0 || strcmp(value, "no") == 0 || (number && !strict);
}

static bool parameter_check(const struct api_parameter *parameter, bool strict, const char *value,
                            struct page *page) {
    char reason[200];
    uint64_t number;
    bool empty = value != NULL && value[0] == '\0';
    if (value == NULL || (empty && (parameter->type == API_TEXT || !strict))) {
        snprintf(reason, sizeof reason, "%s is missing", parameter->what);
        return !parameter->required || refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == API_FLAG && !is_flag(value, strict)) {
        snprintf(reason, sizeof reason, "%s must be yes or no", parameter->what);
        return refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == API_PLACE &&
        (!slice_to_uint64(slice_from(value), &number) || number > parameter->most)) {
        snprintf(reason, sizeof reason, "%s must be the next of an earlier answer",
                 parameter->what);
        return refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == API_NUMBER && (!slice_to_uint64(slice_from(value), &number) ||
                                          number < parameter->least || number > parameter->most)) {
        snprintf(reason, sizeof reason, "%s must be a number from %llu to %llu", parameter->what,
                 (unsigned long long)parameter->least, (unsigned long long)parameter->most);
        return refuse_parameter(page, parameter->name, reason);
    }
    return true;
}

/* The arguments of a request, seen one by one. */
struct seen {
    const struct api_route *route;
    bool strict;
    struct page *page;
    bool given[API_PARAMETERS];
    bool good;
};

static bool see_argument(void *arg, const char *name, const char *value) {
    struct seen *seen = arg;
    (void)value;
    const struct api_parameter *parameter = parameter_find(seen->route, seen->strict, name);
    if (parameter == NULL && !seen->strict)
        return true;
    if (parameter == NULL) {
        seen->good = refuse_parameter(seen->page, name,
                                      "this page has no parameter of that name; see /v1/help");
    } else if (seen->given[parameter - seen->route->parameters]) {
        seen->good = refuse_parameter(seen->page, name, "the parameter is there twice");
    } else {
        seen->given[parameter - seen->route->parameters] = true;
    }
    return seen->good;
}

bool api_check(const struct api_route *route, bool strict, const struct page_request *request,
               struct page *page) {
    struct seen seen = {.route = route, .strict = strict, .page = page, .good = true};
    page_each_argument(request, see_argument, &seen);
    for (const struct api_parameter *parameter = route->parameters;
         seen.good && parameter->name != NULL; parameter++)
        seen.good =
            parameter_check(parameter, strict, page_argument(request, parameter->name), page);
    return seen.good;
}

enum operator_role api_role(const struct api_route *route, const struct page_request *request) {
    enum operator_role needed = route->role;
    for (const struct api_parameter *parameter = route->parameters; parameter->name != NULL;
         parameter++) {
        const char *value = page_argument(request, parameter->name);
        if (value != NULL && parameter->role > needed && strcmp(value, "no") != 0 &&
            strcmp(value, "0") != 0)
            needed = parameter->role;
    }
    return needed;
}

static void make_of_cache(const struct api_route *route, struct page *page,
                          const struct admin_calls *calls, const struct page_request *request) {
    struct arena arena;
    const struct cache_call call = {page, calls, request, calls->cache, calls->disk, &arena};
    if (calls->cache == NULL) {
        page_error(page, 404, "there is no cache");
        return;
    }
    arena_init(&arena);
    route->cache(&call);
    arena_release(&arena);
}

void api_make(const struct api_route *route, struct page *page, const struct admin_calls *calls,
              const struct page_request *request) {
    if (route->show != NULL)
        route->show(page, calls);
    else if (route->ask != NULL)
        route->ask(page, calls, request);
    else
        make_of_cache(route, page, calls, request);
}
