/*
 * Which transactions somebody has chosen to see: an access log by its options, a consumer of the
 * event stream by its filter.
 *
 *     unsigned results = access_log_choice_results(names);           {"HIT", "MISS", NULL}
 *     if ((results >> entry->result & 1) != 0 &&
 *         access_log_choice_has_status(entry, statuses, count) &&
 *         access_log_choice_has_service(entry, services) && access_log_choice_is_in(entry, url_class)) ...
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
bool access_log_choice_has_status(const struct access_entry *entry,
                                  const struct log_statuses *statuses, size_t count);
/* Is `name` in the list that ends with NULL? */
bool access_log_choice_names(char *const *names, const char *name);
/* Has one of the services seen the transaction, or was its remembered result used? */
bool access_log_choice_has_service(const struct access_entry *entry, char *const *services);
/* NULL matches nothing here. */
bool access_log_choice_is_in(const struct access_entry *entry, const struct url_class *url_class);

#endif
