/*
 * The commands for messages between the proxy and services:
 *
 *     return icap_command("/run/retort/retort.sock", &line, icap_record);
 *
 * `record` has a running proxy record exchanges and writes them to a file
 * (record/recorded_exchange.h); `show` shows the content of the file. `replay`, a program of its own
 * (icap_replay.c), sends the recorded messages to a service again and compares its answers.
 *
 * Returns the exit status: 0 for success. 1 means a difference for replay, and a failure for the
 * other commands. 2 means wrong usage; replay also returns it when it could not compare all
 * exchanges. Blocks.
 */
#ifndef RETORT_TOOLS_ICAP_COMMAND_H
#define RETORT_TOOLS_ICAP_COMMAND_H

#include "match/record_filter.h"
#include "record/file.h"
#include "tools/command.h"

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

/* Reads the options, and runs the command. */
int icap_command(const char *admin, const struct command_line *line,
                 int (*run)(struct icap_choices *choices));
int icap_record(struct icap_choices *choices);
int icap_show(struct icap_choices *choices);

int icap_complain(int status, const char *message);
/* Prints text from a file that may come from elsewhere. Control bytes become '?'. */
void icap_print(FILE *out, struct slice text);

#endif
