/*
 * The circuit breaker of a pool. When helpers die one after another, without a result between, it
 * refuses jobs for a while: such helpers do no work, and each start costs time.
 *
 *     breaker_init(&breaker, &pool->settings);
 *     if (breaker_note_death(&breaker, client, now)) ...    it opens, or is still open
 *     breaker_note_result(&breaker);                        closes it
 *     if (breaker_admits(&breaker, client, now)) ...        may a job come in?
 *
 * After `settings->breaker` deaths in a row the breaker opens, and jobs are refused. After
 * `settings->breaker_time` milliseconds one job is let through as a try. A result of the try closes
 * the breaker; another death of a helper begins the time anew. A try may also be cancelled, or
 * never reach a helper. Then the breaker learns nothing, and after the time it lets another job
 * through.
 *
 * If all these helpers died at jobs of one known client, the breaker is open for that client alone.
 * So no client loses the helpers because another client has found a picture that kills them.
 * `client` is a name as queue_set_client makes it; empty: not known; NULL: the helper had no job.
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_BREAKER_H
#define RETORT_HELPERD_BREAKER_H

#include "helperd/settings.h"
#include "service/helper_protocol.h"

/* CLOSED: jobs are taken. OPEN: jobs are refused. TRYING: one job is under way as a try. */
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRYING };

struct breaker {
    const struct pool_settings *settings;
    enum breaker_state state;
    unsigned deaths;                /* in a row, without a result */
    uint64_t ends;                  /* when one job may be tried; loop's milliseconds */
    uint64_t opened;                /* how often it has opened */
    char client[HELPER_CLIENT_MAX]; /* all deaths were at its jobs; empty: no such client */
};

void breaker_init(struct breaker *breaker, const struct pool_settings *settings);
/* True: the breaker is open now, for that client or for all clients. */
bool breaker_note_death(struct breaker *breaker, const char *client, uint64_t now);
void breaker_note_result(struct breaker *breaker);
bool breaker_admits(struct breaker *breaker, const char *client, uint64_t now);
/* Must a job of that client be refused that already waits in the queue? */
bool breaker_is_open_for(const struct breaker *breaker, const char *client);
/* Is the breaker open for all clients? */
bool breaker_is_open_for_all(const struct breaker *breaker);

const char *breaker_text(enum breaker_state state);

#endif
