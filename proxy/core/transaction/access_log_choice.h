/*
 * Which transactions somebody has chosen to see: an access log by its options, a consumer of the
 * event stream by its filter.
 *
 *     unsigned results = access_log_choice_results(names);           {"HIT", "MISS", NULL}
 *     if ((results >> journal->result & 1) != 0 &&
 *         access_log_choice_has_status(journal, statuses, count) &&
 *         access_log_choice_has_service(journal, services) && access_log_choice_is_in(journal, url_class)) ...
 *
 * What is not limited is NULL or 0, and lets all pass.
 *
 * Threads: pure.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_CHOICE_H
#define RETORT_TRANSACTION_ACCESS_LOG_CHOICE_H

#include "transaction/access_log_line.h"

/* A bit for each result of these names; NULL: all. */
unsigned access_log_choice_results(char *const *names);
bool access_log_choice_has_status(const struct journal *journal,
                                  const struct log_statuses *statuses, size_t count);
/* Is `name` in the list that ends with NULL? */
bool access_log_choice_names(char *const *names, const char *name);
/* Has one of the services seen the transaction, or was its remembered result used? */
bool access_log_choice_has_service(const struct journal *journal, char *const *services);
/* NULL matches nothing here. */
bool access_log_choice_is_in(const struct journal *journal, const struct url_class *url_class);

#endif
