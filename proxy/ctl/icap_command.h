/*
 * The commands of retortctl about what passes between the proxy and ICAP services:
 *
 *     return icap_command("/run/retort/retort.sock", json, argc, argv);     argv[0] is "icap"
 *
 * `record` has a running proxy record exchanges and writes them to a file (record/recorded_exchange.h); `show`
 * tells what is in the file; `replay` sends what is in it to a service once more, and compares.
 *
 * Returns the exit status: 0; of replay 1 when something differs, of the others 1 when it did not
 * work; 2 on wrong usage, and of replay when it could not compare all. Blocks.
 */
#ifndef RETORT_CTL_ICAP_COMMAND_H
#define RETORT_CTL_ICAP_COMMAND_H

#include "record/file.h"
#include "record/filter.h"

enum { RECORD_FILTERS_MAX = 16, ICAP_IGNORED_MAX = 32, ICAP_EXIT_TROUBLE = 2 };

struct icap_choices {
    const char *admin;
    bool json, unmasked;
    const char *words[3]; /* those that are no options, behind the verb */
    int word_count;
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

int icap_command(const char *admin, bool json, int argc, char **argv);
void icap_command_help(FILE *out);

/* Inside ctl/. */
int icap_record(const struct icap_choices *options);
int icap_show(struct icap_choices *options);
int icap_replay(struct icap_choices *options);
int icap_complain(int status, const char *message);
/* Text from a file that need not be ours: control bytes as '?'. */
void icap_print(FILE *out, struct slice text);

#endif
