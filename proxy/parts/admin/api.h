/*
 * The pages of the table of calls (admin/call.h): they are found, their arguments and roles are checked, and they are made.
 *
 *     const struct call *route = api_find(method, path, &allow);
 *     if (route == NULL) ... 404, or 405 if allow is not empty ...
 *     if (api_check(route, strict, &request, &page))
 *         api_make(route, &page, &calls, &request);
 *
 * Threads: constants.
 */
#ifndef RETORT_ADMIN_API_H
#define RETORT_ADMIN_API_H

#include "admin/cache_call.h"
#include "admin/call.h"

/* The pages. Ends with a row whose path is NULL. */
extern const struct call api_calls[];

/* The first page at `call` or behind it that this retort has; NULL: there is none. */
const struct call *api_next(const struct call *call);
#define API_FOR_EACH(route)                                                                        \
    for (const struct call *route = api_next(api_calls); route != NULL; route = api_next(route + 1))

/* The path without "/v1" at its front. `strict`: it had it. */
const char *api_path(const char *path, bool *strict);
/* NULL: there is none. `allow` gets the methods of the path; empty: there is no such path. HEAD is
 * found as GET. */
const struct call *api_find(const char *method, const char *path, char allow[PAGE_ALLOW]);
/* Checks the arguments. False: an answer has been made. An argument that is there twice is refused:
 * the page would use one, and the audit log might show the other. `strict`: each must be known. */
bool api_check(const struct call *route, bool strict, const struct page_request *request,
               struct page *page);
/* The role that this request needs. */
enum operator_role api_role(const struct call *route, const struct page_request *request);
void api_make(const struct call *route, struct page *page, const struct admin_calls *calls,
              const struct page_request *request);

#endif
