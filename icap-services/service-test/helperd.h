/*
 * A retort-helperd for the service under test, with the pools that the user names.
 *
 *     struct test_helperd helperd;
 *     if (!test_helperd_start(&helperd, &options, error, sizeof error)) ...    a sentence
 *     ... helperd.setting ...                                "Helperd=/tmp/.../helperd.sock"
 *     test_helperd_stop(&helperd);
 *
 * Its configuration and its socket are in a folder that is removed with it. It ends when this
 * program ends. Threads: one.
 */
#ifndef RETORT_TESTER_HELPERD_H
#define RETORT_TESTER_HELPERD_H

#include "service-test/options.h"

#include <stddef.h>
#include <sys/types.h>

struct test_helperd {
    pid_t process; /* 0: none */
    char folder[96], configuration[128], socket[128], log[128], setting[160];
};

bool test_helperd_start(struct test_helperd *helperd, const struct tester_options *options,
                        char *error, size_t error_size);
void test_helperd_stop(struct test_helperd *helperd);

#endif
