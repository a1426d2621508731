#include "admin/api.h"

#include "admin/cache_object_page.h"
#include "admin/cache_page.h"
#include "admin/dns_page.h"
#include "admin/guard.h"
#include "admin/helpers_page.h"
#include "admin/history.h"
#include "admin/metrics_page.h"
#include "admin/origins_page.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "admin/service_control_page.h"
#include "admin/settings_page.h"
#include "base/assert.h"
#include "config.h"
#include "record/recorded_exchange.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/*
 * The description of the calls, made from their table: for programs as OpenAPI 3.0 (GET /v1/openapi.json),
 * and for people as text (GET /v1/help).
 */

static json_t *parameter_schema(const struct call_parameter *parameter) {
    switch (parameter->type) {
    case CALL_NUMBER:
        return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
                         (json_int_t)parameter->least, "maximum", (json_int_t)parameter->most);
    case CALL_PLACE:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-8]?[0-9]{1,18}$");
    case CALL_FLAG: return json_pack("{s:s, s:[s, s]}", "type", "string", "enum", "yes", "no");
    default:
        return parameter->required ? json_pack("{s:s, s:i}", "type", "string", "minLength", 1)
                                   : json_pack("{s:s}", "type", "string");
    }
}

static json_t *parameters_json(const struct call *route) {
    json_t *list = json_array();
    for (const struct call_parameter *parameter = route->parameters; parameter->name != NULL;
         parameter++) {
        json_t *one = json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", parameter->name, "in", "query",
                                "required", (int)parameter->required, "description",
                                parameter->what, "schema", parameter_schema(parameter));
        if (parameter->role != 0)
            json_object_set_new(one, "x-role", json_string(operator_role_name(parameter->role)));
        json_array_append_new(list, one);
    }
    return list;
}

/* The schema of an object with these members. */
static json_t *answer_schema(const struct call_member *member) {
    json_t *properties = json_object(), *required = json_array();
    for (; member->name != NULL; member++) {
        struct slice type = slice_make(member->type, strcspn(member->type, "?"));
        bool any = slice_equal(type, SLICE("any")), place = slice_equal(type, SLICE("place"));
        json_t *schema = any     ? json_object()
                         : place ? json_pack("{s:s, s:b}", "type", "string", "nullable", 1)
                                 : json_pack("{s:s%}", "type", type.base, type.length);
        if (slice_equal(type, SLICE("array")))
            json_object_set_new(schema, "items", json_object());
        json_object_set_new(properties, member->name, schema);
        if (strchr(member->type, '?') == NULL)
            json_array_append_new(required, json_string(member->name));
    }
    json_t *schema = json_pack("{s:s, s:o}", "type", "object", "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set_new(schema, "required", required);
    else
        json_decref(required);
    return schema;
}

static json_t *responses_json(const struct call *route) {
    json_t *schema = route->answer != NULL
                         ? answer_schema(route->answer)
                         : json_pack("{s:s, s:s}", "type", "string", "format", "binary");
    if (route->type != NULL && strcmp(route->type, "text/plain") == 0)
        json_object_del(schema, "format");
    return json_pack("{s:{s:s, s:{s:{s:o}}}, s:{s:s}}", "200", "description", "It was done.",
                     "content", route->type != NULL ? route->type : "application/json", "schema",
                     schema, "default", "$ref", "#/components/responses/Error");
}

/* "getCacheObject" */
static json_t *operation_id(const struct call *route) {
    char id[80];
    size_t length = 0;
    for (const char *at = route->method; *at != '\0'; at++)
        id[length++] = (char)tolower((unsigned char)*at);
    bool upper = false;
    for (const char *at = route->path; *at != '\0' && length + 1 < sizeof id; at++) {
        if (isalnum((unsigned char)*at))
            id[length++] = (char)(upper ? toupper((unsigned char)*at) : *at);
        upper = !isalnum((unsigned char)*at);
    }
    return json_stringn(id, length);
}

static json_t *operation_json(const struct call *route) {
    json_t *operation =
        json_pack("{s:o, s:s, s:s, s:o, s:o}", "operationId", operation_id(route), "summary",
                  route->summary, "x-role", operator_role_name(route->role), "parameters",
                  parameters_json(route), "responses", responses_json(route));
    if (strcmp(route->method, "PUT") == 0)
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:b, s:{s:{s:{s:s, s:s}}}}", "required", 1, "content",
                                      "application/octet-stream", "schema", "type", "string",
                                      "format", "binary"));
    if (route->takes_json)
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:b, s:{s:{s:{s:s, s:i}}}}", "required", 1, "content",
                                      "application/json", "schema", "type", "object",
                                      "minProperties", 1));
    return operation;
}

static json_t *paths_json(void) {
    json_t *paths = json_object();
    API_FOR_EACH (route) {
        char path[80], method[16];
        size_t i = 0;
        snprintf(path, sizeof path, "/v1%s", route->path);
        for (; route->method[i] != '\0'; i++)
            method[i] = (char)tolower((unsigned char)route->method[i]);
        method[i] = '\0';
        json_t *item = json_object_get(paths, path);
        if (item == NULL) {
            json_object_set_new(paths, path, json_object());
            item = json_object_get(paths, path);
        }
        json_object_set_new(item, method, operation_json(route));
    }
    return paths;
}

static json_t *error_response(void) {
    json_t *schema =
        json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:{s:s}}}, s:[s]}", "type", "object",
                  "properties", "error", "type", "string", "parameter", "type", "string", "errors",
                  "type", "array", "items", "type", "string", "required", "error");
    return json_pack(
        "{s:s, s:{s:{s:o}}}", "description",
        "The error says what is wrong and what to do; parameter names what it is about.", "content",
        "application/json", "schema", schema);
}

static void openapi_make(struct page *page, const struct admin_calls *calls) {
    (void)calls;
    json_t *info = json_pack(
        "{s:s, s:s, s:s}", "title", "Retort's admin plane", "version", PACKAGE_VERSION,
        "description", "x-role is the least role that a caller needs, for a call or a parameter.");
    json_t *components =
        json_pack("{s:{s:{s:s, s:s}}, s:{s:o}}", "securitySchemes", "token", "type", "http",
                  "scheme", "bearer", "responses", "Error", error_response());
    page_json(page, 200,
              json_pack("{s:s, s:o, s:[{s:[]}, {}], s:o, s:o}", "openapi", "3.0.3", "info", info,
                        "security", "token", "paths", paths_json(), "components", components));
}

static void print_route(FILE *out, const struct call *route) {
    fprintf(out, "%-6s /v1%-20s %-8s %s\n", route->method, route->path,
            operator_role_name(route->role), route->summary);
    for (const struct call_parameter *parameter = route->parameters; parameter->name != NULL;
         parameter++)
        fprintf(out, "           %-18s %s%s\n", parameter->name, parameter->what,
                parameter->required ? " (required)" : "");
}

static void openapi_help(struct page *page, const struct admin_calls *calls) {
    (void)calls;
    FILE *out = open_memstream(&page->text, &page->length);
    if (out != NULL) {
        fputs("METHOD PAGE                    ROLE     WHAT IT IS FOR\n", out);
        API_FOR_EACH (route)
            print_route(out, route);
    }
    if (!page_end_text(page, out))
        return;
    page->status = 200;
    page->content_type = "text/plain; charset=utf-8";
}

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
