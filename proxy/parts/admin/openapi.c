#include "admin/openapi.h"

#include "admin/api.h"
#include "config.h"

#include <ctype.h>
#include <string.h>

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
        bool any = strcmp(member->type, "any") == 0;
        bool place = strcmp(member->type, "place") == 0;
        json_t *schema = any     ? json_object()
                         : place ? json_pack("{s:s, s:b}", "type", "string", "nullable", 1)
                                 : json_pack("{s:s}", "type", member->type);
        if (strcmp(member->type, "array") == 0)
            json_object_set_new(schema, "items", json_object());
        json_object_set_new(properties, member->name, schema);
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

void openapi_make(struct page *page, const struct admin_calls *calls) {
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

void openapi_help(struct page *page, const struct admin_calls *calls) {
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
