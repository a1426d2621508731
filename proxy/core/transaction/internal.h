/*
 * The host "retort.internal": a few things that Retort serves itself, through the cache like
 * anything else.
 *
 *     if (internal_is_asked(transaction))
 *         internal_answer(transaction);        the response is there, as if an origin had sent it
 *
 *     http://retort.internal/...          neutral resources in place of advertisements (http/neutral.h)
 *     http://retort.internal/ca           for example: a page of a part (part.worker.answer_internal)
 *     http://retort.internal/proxy.pac    the file by which browsers find the proxy
 *
 * Called by the step FETCH in place of a call to an origin. A path that stands for nothing is answered
 * with 404; nothing else fails.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_INTERNAL_H
#define RETORT_TRANSACTION_INTERNAL_H

#include "settings/settings.h"
#include "transaction/step.h"

#include <stdbool.h>

/* An answer that Retort makes itself, as if an origin had sent it. */
bool internal_is_asked(const struct transaction *transaction);
void internal_answer(struct transaction *transaction);
/* Makes that answer; for pages of parts. */
void internal_respond(struct transaction *transaction, unsigned status, struct slice type,
                      struct slice cache_control, struct slice body);
/* Is this the path of the file by which browsers find the proxy, and is there one? */
bool internal_has_pac(const struct settings *settings, struct slice path);

#endif
