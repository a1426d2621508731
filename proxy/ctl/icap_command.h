/*
 * The commands of retortctl for messages between the proxy and ICAP services:
 *
 *     return icap_command("/run/retort/retort.sock", &line);      of the table: "icap ..."
 *
 * `record` has a running proxy record exchanges and writes them to a file
 * (record/recorded_exchange.h); `show` shows the content of the file; `replay` sends the recorded
 * messages to a service again and compares its answers.
 *
 * Returns the exit status: 0 for success. 1 means a difference for replay, and a failure for the
 * other commands. 2 means wrong usage; replay also returns it when it could not compare all
 * exchanges. Blocks.
 */
#ifndef RETORT_CTL_ICAP_COMMAND_H
#define RETORT_CTL_ICAP_COMMAND_H

#include "ctl/command.h"
#include "record/file.h"
#include "record/filter.h"

enum { RECORD_FILTERS_MAX = 16, ICAP_IGNORED_MAX = 32, ICAP_EXIT_TROUBLE = 2 };

struct icap_choices {
    const char *admin;
    bool json, unmasked;
    char **words; /* the arguments; NULL behind the last */
    struct {
        const char *name, *value;
    } filters[RECORD_FILTERS_MAX];
    unsigned filter_count;
    struct record_filter filter; /* the same */
    const char *ignored[ICAP_IGNORED_MAX];
    unsigned ignored_count;
    const char *service, *ca, *exchanges, *seconds; /* NULL: not given */
    bool body_given, memory_given;
    uint64_t body, memory, preview, concurrency, timeout; /* bytes; timeout in seconds */
};

int icap_command(const char *admin, const struct command_line *line);

/* Inside ctl/. */
int icap_record(const struct icap_choices *options);
int icap_show(struct icap_choices *options);
int icap_replay(struct icap_choices *options);
int icap_complain(int status, const char *message);
/* Prints text from a file that may come from elsewhere. Control bytes become '?'. */
void icap_print(FILE *out, struct slice text);

#endif
