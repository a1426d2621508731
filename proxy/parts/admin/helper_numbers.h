/*
 * The numbers of helper pools for /metrics. They belong to retort-helperd; the admin plane asks for
 * them at each socket that the settings name: admin.helpers, and authenticator.helpers.
 *
 *     struct helper_numbers *numbers = helper_numbers_new();
 *     helper_numbers_print_metrics(numbers, out, settings);
 *     helper_numbers_free(&numbers);
 *
 * A socket is asked again when its answer is HELPER_NUMBERS_FRESH old. It has
 * HELPER_NUMBERS_PATIENCE to answer; one that does not is left alone for HELPER_NUMBERS_PAUSE. An
 * answer counts only as a whole: when anything in it can't be a number of a pool, the failure is
 * counted, and nothing of it is shown. No worker waits.
 *
 * Units: milliseconds. Threads: any.
 */
#ifndef RETORT_ADMIN_HELPER_NUMBERS_H
#define RETORT_ADMIN_HELPER_NUMBERS_H

#include "settings/settings.h"

#include <stdio.h>

enum {
    HELPER_NUMBERS_FRESH = 1000,
    HELPER_NUMBERS_PATIENCE = 250,
    HELPER_NUMBERS_PAUSE = 5000,
    HELPER_NUMBERS_ANSWER = 1 << 20, /* bytes */
    HELPER_NUMBERS_SOCKETS = 8,      /* further ones are not asked */
};

struct helper_numbers;

struct helper_numbers *helper_numbers_new(void);
void helper_numbers_free(struct helper_numbers **numbersp);
void helper_numbers_print_metrics(struct helper_numbers *numbers, FILE *out,
                                  const struct settings *settings);

#endif
