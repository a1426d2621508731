/*
 * The trace of a transaction: at log_level = debug, one line of the log for each step that it has
 * been through, with what the step found out and what is next; and one for a step that waits, with
 * what it waits for.
 *
 *     5f3a9c1e00000007 RECEIVE -> ADMIT: GET http://origin.example/a.js from 192.0.2.7
 *     5f3a9c1e00000007 ADMIT -> LOOKUP
 *     5f3a9c1e00000007 LOOKUP -> FETCH: nothing is stored
 *     5f3a9c1e00000007 FETCH waits for the origin origin.example:80
 *     5f3a9c1e00000007 FETCH -> RESPMOD: 200 from origin.example:80
 *     5f3a9c1e00000007 RESPMOD waits for the service gzip
 *     5f3a9c1e00000007 RESPMOD -> STORE: gzip MODIFIED after 3 ms
 *
 * Called by the loop that drives the steps; the inspection (a part) shows the same words to operators.
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_TRACE_H
#define RETORT_TRANSACTION_TRACE_H

#include "transaction/step.h"

enum { TRACE_TEXT = 1024 };

/* The text of a line: what the step of the transaction has found out, and what it waits for. */
void trace_found(struct transaction *transaction, char text[TRACE_TEXT]);
void trace_awaited(const struct transaction *transaction, char text[TRACE_TEXT]);
/* The step of the transaction has run and has returned the next one. A step that waits gets one
 * line, however often it is woken. */
void trace_step(struct transaction *transaction, enum step next);

#endif
