/*
 * What the variables of a text (text/text_template.h) stand for in a transaction.
 *
 *     struct slice value = text_template_write(template, transaction_variable, transaction,
 *                                              TEXT_HTML, &transaction->arena);
 *
 * Threads: the worker's. Memory: the transaction's arena, or what the transaction refers to.
 */
#ifndef RETORT_TRANSACTION_VARIABLES_H
#define RETORT_TRANSACTION_VARIABLES_H

#include "text/text_template.h"

/* An empty slice: the transaction has no such thing, or has it not yet. The argument is the struct
 * transaction. A field of the request is as services and request_headers sections have left it, one
 * of the response as the cache has it or would have it; several lines count as one, with commas. */
struct slice transaction_variable(void *transaction, enum variable variable, struct slice field);

#endif
