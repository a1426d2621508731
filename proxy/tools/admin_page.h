/*
 * Pages of the admin plane for commands. The proxy makes the text that people see, so most commands
 * only print it.
 *
 *     return admin_page_command(where, line);              a call of the table: its exit status
 *
 *     struct http_request request = {.method = "POST", .target = "/settings", .body = ...};
 *     return admin_page_ask(where, line->json, &request);
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TOOLS_ADMIN_PAGE_H
#define RETORT_TOOLS_ADMIN_PAGE_H

#include "tools/command.h"
#include "tools/http_call.h"

#include <jansson.h>

/* Asks for the page of the command, with arguments and options as its parameters. */
int admin_page_command(const char *where, const struct command_line *line);
/* The path of the page with these parameters, as far as it has them. `skip`: those that are left out,
 * with blanks between; NULL: none. The caller frees it. */
char *admin_page_target(const struct command_line *line, const char *skip);
/* Writes NAME=VALUE& for a query, with escapes; nothing when the value is NULL. */
void admin_page_put(FILE *out, const char *name, const char *value);
/* Prints the answer as text or JSON, and complaints to stderr. `request` needs no Accept. */
int admin_page_ask(const char *where, bool json, const struct http_request *request);
/* Likewise, with what `print` does with a text that is no refusal. */
int admin_page_ask_for(const char *where, const struct http_request *request,
                       void (*print)(void *arg, const char *text, size_t length), void *arg);
/* Prints a message about an answer in JSON that is a refusal. Returns EXIT_FAILURE. */
int admin_page_refused(const struct http_answer *answer);

/* Members of JSON: "" and 0 where there is none. */
const char *admin_page_text(const json_t *object, const char *name);
long long admin_page_number(const json_t *object, const char *name);

#endif
