/*
 * What the variables of a text (rewrite/text_template.h) stand for in a transaction.
 *
 *     struct slice value = text_template_write(template, transaction_variable, transaction,
 *                                              TEXT_HTML, &transaction->arena);
 *
 * Threads: the worker's. Memory: the transaction's arena, or what the transaction refers to.
 */
#ifndef RETORT_TRANSACTION_VARIABLES_H
#define RETORT_TRANSACTION_VARIABLES_H

#include "rewrite/text_template.h"

/* An empty slice: the transaction has no such thing, or has it not yet. The argument is the struct
 * transaction. */
struct slice transaction_variable(void *transaction, enum variable variable);

#endif
