#include "admin/api.h"

#include "admin/cache_object_page.h"
#include "admin/cache_page.h"
#include "admin/dns_page.h"
#include "admin/guard.h"
#include "admin/helpers_page.h"
#include "admin/history.h"
#include "admin/metrics_page.h"
#include "admin/openapi.h"
#include "admin/origins_page.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "admin/service_control_page.h"
#include "admin/services_page.h"
#include "admin/settings_page.h"
#include "base/assert.h"
#include "config.h"
#include "record/recorded_exchange.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

/* Who the caller is: the web page offers what his role allows. */

static void whoami_page_make(struct page *page, const struct admin_calls *calls,
                             const struct page_request *request) {
    const struct admin_caller *caller = request->caller;
    (void)calls;
    page_json(page, 200,
              json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "name", caller->name, "role",
                        operator_role_name(caller->role), "from", caller->from, "certificate",
                        caller->certificate, "version", PACKAGE_VERSION, "pid", (int)getpid()));
}

#define CALL(...) {__VA_ARGS__},
#define PAGE(...) __VA_ARGS__,
#define WORDS(...)
#define COMMAND(...)

const struct call api_calls[] = {
#include "admin/calls.def"
    {.path = NULL}};

const struct call *api_next(const struct call *call) {
    while (call->path != NULL && call->part != PART_CORE && part_pages_table[call->part] == NULL)
        call++;
    return call->path != NULL ? call : NULL;
}

const char *api_path(const char *path, bool *strict) {
    *strict = strncmp(path, "/v1/", 4) == 0;
    return *strict ? path + 3 : path;
}

const struct call *api_find(const char *method, const char *path, char allow[PAGE_ALLOW]) {
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    const char *asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    size_t length = 0;
    allow[0] = '\0';
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct call *call = api_next(api_calls);
        while (call != NULL &&
               (strcmp(call->path, path) != 0 || strcmp(call->method, methods[i]) != 0))
            call = api_next(call + 1);
        if (call == NULL)
            continue;
        if (strcmp(methods[i], asked) == 0)
            return call;
        length += (size_t)snprintf(allow + length, PAGE_ALLOW - length, "%s%s",
                                   length > 0 ? ", " : "", methods[i]);
        ASSERT(length < PAGE_ALLOW);
    }
    return NULL;
}

/* libmicrohttpd finds HOST as host. /v1 takes only host; the older paths take all, and each counts
 * when they look for one that is there twice. */
static const struct call_parameter *parameter_find(const struct call *route, bool strict,
                                                   const char *name) {
    const struct call_parameter *parameter = route->parameters;
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

static bool parameter_check(const struct call_parameter *parameter, bool strict, const char *value,
                            struct page *page) {
    char reason[200];
    uint64_t number;
    bool empty = value != NULL && value[0] == '\0';
    if (value == NULL || (empty && (parameter->type == CALL_TEXT || !strict))) {
        snprintf(reason, sizeof reason, "%s is missing", parameter->what);
        return !parameter->required || refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == CALL_FLAG && !is_flag(value, strict)) {
        snprintf(reason, sizeof reason, "%s must be yes or no", parameter->what);
        return refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == CALL_PLACE &&
        (!slice_to_uint64(slice_from(value), &number) || number > parameter->most)) {
        snprintf(reason, sizeof reason, "%s must be the next of an earlier answer",
                 parameter->what);
        return refuse_parameter(page, parameter->name, reason);
    }
    if (parameter->type == CALL_NUMBER && (!slice_to_uint64(slice_from(value), &number) ||
                                           number < parameter->least || number > parameter->most)) {
        snprintf(reason, sizeof reason, "%s must be a number from %llu to %llu", parameter->what,
                 (unsigned long long)parameter->least, (unsigned long long)parameter->most);
        return refuse_parameter(page, parameter->name, reason);
    }
    return true;
}

/* The arguments of a request, seen one by one. */
struct seen {
    const struct call *route;
    bool strict;
    struct page *page;
    bool given[CALL_PARAMETERS];
    bool good;
};

static bool see_argument(void *arg, const char *name, const char *value) {
    struct seen *seen = arg;
    (void)value;
    const struct call_parameter *parameter = parameter_find(seen->route, seen->strict, name);
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

bool api_check(const struct call *route, bool strict, const struct page_request *request,
               struct page *page) {
    struct seen seen = {.route = route, .strict = strict, .page = page, .good = true};
    page_each_argument(request, see_argument, &seen);
    for (const struct call_parameter *parameter = route->parameters;
         seen.good && parameter->name != NULL; parameter++)
        seen.good =
            parameter_check(parameter, strict, page_argument(request, parameter->name), page);
    return seen.good;
}

enum operator_role api_role(const struct call *route, const struct page_request *request) {
    enum operator_role needed = route->role;
    for (const struct call_parameter *parameter = route->parameters; parameter->name != NULL;
         parameter++) {
        const char *value = page_argument(request, parameter->name);
        if (value != NULL && parameter->role > needed && strcmp(value, "no") != 0 &&
            strcmp(value, "0") != 0)
            needed = parameter->role;
    }
    return needed;
}

void api_make(const struct call *route, struct page *page, const struct admin_calls *calls,
              const struct page_request *request) {
    if (route->show != NULL)
        route->show(page, calls);
    else if (route->ask != NULL)
        route->ask(page, calls, request);
    else if (route->cache != NULL)
        cache_call_make(route->cache, page, calls, request);
    else
        part_pages_table[route->part]->answer(page, calls, request);
}
