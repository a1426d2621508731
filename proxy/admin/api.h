/*
 * The table of the admin plane's pages: path, method, the role it needs, its arguments, and what it
 * is for. The dispatch, the checks of arguments, /v1/openapi.json and the list at /v1 are made from
 * it. To add a page, write its function and a row in api_api.c.
 *
 *     const struct api_route *route = api_find(method, path, &allow);
 *     if (route == NULL) ... 404, or 405 if allow is not empty ...
 *     if (api_check(route, strict, &request, &page))
 *         api_make(route, &page, &calls, &request);
 *
 * Threads: constants.
 */
#ifndef RETORT_ADMIN_API_H
#define RETORT_ADMIN_API_H

#include "admin/cache_call.h"
#include "identity/operator_tokens.h"

enum api_parameter_type {
    API_TEXT,
    API_NUMBER,
    API_PLACE, /* a number that an earlier answer has as text */
    API_FLAG,  /* yes or no */
    API_END,   /* the last row */
};

struct api_parameter {
    const char *name;
    enum api_parameter_type type;
    bool required;
    const char *what; /* for people: "the lifetime in seconds" */
    uint64_t least, most;
    enum operator_role role; /* for a flag that is set; 0: that of the route */
};

enum { API_PARAMETERS = 16 };

struct api_route {
    const char *method, *path; /* without /v1 */
    enum operator_role role;
    bool changes;    /* something, or it shows what people do: it is in the audit log */
    bool shared;     /* may run beside other pages */
    bool takes_json; /* its body is a JSON object */
    size_t body_max;
    /* One of them. */
    void (*show)(struct page *page, const struct admin_calls *calls);
    void (*ask)(struct page *page, const struct admin_calls *calls,
                const struct page_request *request);
    void (*cache)(const struct cache_call *call);
    const char *answer; /* its members "purged integer, counted boolean"; NULL: no JSON */
    const char *type;   /* of the answer; NULL: JSON */
    const char *summary;
    struct api_parameter parameters[API_PARAMETERS];
};

/* Ends with a row whose path is NULL. */
extern const struct api_route api_routes[];

enum { API_ALLOW = 64 };

/* The path without "/v1" at its front. `strict`: it had it. */
const char *api_path(const char *path, bool *strict);
/* NULL: there is none. `allow` gets the methods of the path; empty: there is no such path. HEAD is
 * found as GET. */
const struct api_route *api_find(const char *method, const char *path, char allow[API_ALLOW]);
/* Checks the arguments. False: an answer has been made. An argument that is there twice is refused:
 * the page would use one, and the audit log might show the other. `strict`: each must be known. */
bool api_check(const struct api_route *route, bool strict, const struct page_request *request,
               struct page *page);
/* The role that this request needs. */
enum operator_role api_role(const struct api_route *route, const struct page_request *request);
void api_make(const struct api_route *route, struct page *page, const struct admin_calls *calls,
              const struct page_request *request);

#endif
