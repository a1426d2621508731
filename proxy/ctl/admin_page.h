/*
 * A page of the admin plane for a command: asks for it, and shows the answer or the reason why
 * there is none.
 *
 *     char *path = admin_page_path("/dns?", "name", name, NULL);         "/dns?name=a.org"
 *     const struct admin_page page = {.method = "GET", .path = path, .show = show_names};
 *     int status = admin_page_ask(where, line->json, &page);      the exit status of retortctl
 *     free(path);
 *
 * With `json` the answer is printed as it came, also that of an error.
 *
 * Threads: any.
 */
#ifndef RETORT_CTL_ADMIN_PAGE_H
#define RETORT_CTL_ADMIN_PAGE_H

#include "ctl/http_call.h"

#include <jansson.h>

struct admin_page {
    const char *method, *path;
    const char *body;                  /* JSON; NULL: none */
    int (*show)(const json_t *answer); /* returns the exit status */
    /* Whether this status of an error has an answer to show all the same; 0: none has. */
    unsigned shown_status;
};

int admin_page_ask(const char *where, bool json, const struct admin_page *page);
/* Pairs of a name and a value; a pair whose value is NULL is left out. The caller frees it. */
char *admin_page_path(const char *begin, ...) __attribute__((sentinel));
/* The text of a member; "" when there is none. */
const char *admin_page_text(const json_t *object, const char *name);
long long admin_page_number(const json_t *object, const char *name);
/* Prints why an answer is an error. Returns EXIT_FAILURE. */
int admin_page_refused(const struct http_answer *answer);
void admin_page_print(const struct http_answer *answer);

#endif
