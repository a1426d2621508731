/*
 * The sections request_headers and response_headers at work (rewrite/field_rules.h): where each
 * head passes them.
 *
 *     if (!head_rules_change_request(transaction)) ...     431
 *
 * The request of the client is changed by the step REWRITE, before services and the cache; the core asks for the other
 * changes (transaction/head_changes.h).
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_REWRITE_HEAD_RULES_H
#define RETORT_REWRITE_HEAD_RULES_H

#include "transaction/head_changes.h"

/* False: the head can not be changed as the rules want it, because it has too many fields, a value
 * becomes too long, or an expression needs too much work. It must not be used then. */
bool head_rules_change_request(struct transaction *transaction);

extern const struct head_changes head_rules;
extern const struct step_row rewrite_step; /* step.c */

#endif
