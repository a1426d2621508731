/*
 * The command line of retort-service-test, read once.
 *
 *     struct tester_options options;
 *     tester_options_read(&options, argc, argv);            ends the program when it is wrong
 *     ... options.module ... options.files[0] ...
 *     tester_options_release(&options);
 *
 * The table of the options is options.def; the help and the completions of shells are printed from
 * it. Threads: read-only after reading.
 */
#ifndef RETORT_TESTER_OPTIONS_H
#define RETORT_TESTER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TESTER_KEPT = 0,    /* all promises were kept */
    TESTER_BROKEN = 1,  /* at least one was not */
    TESTER_NOT_RUN = 2, /* used wrongly, or nothing could be tested */
};

struct tester_options {
    const char *module;
    char **files; /* of messages; ends with NULL */
    char **settings;
    unsigned setting_count;
    char **helpers; /* "POOL=COMMAND" */
    unsigned helper_count;
    const char *helperd, *arguments, *client, *user, *plan;
    uint64_t cuts, messages, deadline; /* deadline: milliseconds */
    bool may_fail, valgrind, json, verbose;
    int worker; /* the descriptor of the report, in a worker; else -1 */
};

void tester_options_read(struct tester_options *options, int argc, char **argv);
void tester_options_release(struct tester_options *options);

#endif
