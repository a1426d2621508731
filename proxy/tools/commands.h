/*
 * The commands that do more than to ask for their page, for main.c. Each returns the exit status: 0, 1 after a failure
 * (stderr says why), 2 for wrong usage. `admin` is what tools/transfer.h takes.
 *
 *     return cache_command("/run/retort/retort.sock", &line);          of the table: "cache ..."
 *
 * Threads: one at a time; they block.
 */
#ifndef RETORT_TOOLS_COMMANDS_H
#define RETORT_TOOLS_COMMANDS_H

#include "tools/command.h"

/* The authority for intercepted connections: works on files, and asks no proxy. */
int ca_command(const struct command_line *line);
/* The content of the cache. `fetch` and `revalidate` are requests to a listener, like those of clients, so that services see
 * the responses. */
int cache_command(const char *admin, const struct command_line *line);
/* Asks retort-helperd, over its Unix socket, and not the proxy. */
int helperd_client_command(const char *socket_path, const struct command_line *line);
/* All metrics, in JSON: [{"name": "a", "labels": {"b": "c"}, "value": 1}]. Lines that are no metrics are left out; a value
 * that JSON has no number for (NaN, +Inf) is a text. */
int metrics_json_command(const char *admin);
/* How a browser reaches the web page of the admin plane, and as whom. */
int page_command(const char *admin, bool json);
/* Transactions as they end, and who asks for how much of them. */
int tail_command(const char *admin, const struct command_line *line);
int top_command(const char *admin, const struct command_line *line);
/* Are they all NAME=VALUE? False: after a message. */
bool tail_filters_are_good(const struct command_line *line);

/* Those whose words are not the parameters of a page as they stand. */
int words_command_set(const char *admin, const struct command_line *line);
int words_command_unset(const char *admin, const struct command_line *line);
int words_command_config_show(const char *admin, const struct command_line *line);
int words_command_config_schema(const char *admin, const struct command_line *line);
int words_command_access_test(const char *admin, const struct command_line *line);
int words_command_intercept_clear(const char *admin, const struct command_line *line);
int words_command_dns_clear(const char *admin, const struct command_line *line);

#endif
