/*
 * The circuit breaker of a pool: helpers that die one after another, without a result between, are
 * no use to anybody, and each start costs time.
 *
 *     breaker_init(&breaker, &pool->settings);
 *     if (breaker_note_death(&breaker, client, now)) ...    it opens, or is open still
 *     breaker_note_result(&breaker);                        closes it
 *     if (breaker_admits(&breaker, client, now)) ...        may a job come in?
 *
 * When `settings->breaker` helpers have died, jobs are refused. After `settings->breaker_time` one
 * is let through as a try: its result closes the breaker, its failure begins the time anew. A try
 * whose job was cancelled, or never reached a helper, leaves no mark, so that after the time
 * another one follows.
 *
 * Where all of them died at jobs of one known client, it is open for that client alone: nobody
 * shall do without helpers because somebody else has found a picture that kills them. `client` is
 * a name as queue_set_client makes it; empty: not known; NULL: the helper had no job.
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_BREAKER_H
#define RETORT_HELPERD_BREAKER_H

#include "helperd/settings.h"
#include "service/helper_protocol.h"

/* CLOSED: all is well. TRYING: one job is under way to see whether it is again. */
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRYING };

struct breaker {
    const struct pool_settings *settings;
    enum breaker_state state;
    unsigned deaths;                /* in a row, without a result */
    uint64_t ends;                  /* when one job may be tried; loop's milliseconds */
    uint64_t opened;                /* how often */
    char client[HELPER_CLIENT_MAX]; /* all deaths in a row are of its jobs; empty: of several */
};

void breaker_init(struct breaker *breaker, const struct pool_settings *settings);
/* True: jobs of that client, or all, are to be refused now. */
bool breaker_note_death(struct breaker *breaker, const char *client, uint64_t now);
void breaker_note_result(struct breaker *breaker);
bool breaker_admits(struct breaker *breaker, const char *client, uint64_t now);
/* Is a job to be refused that was let in before? */
bool breaker_is_open_for(const struct breaker *breaker, const char *client);
/* For clients that have not been named, too? */
bool breaker_is_open_for_all(const struct breaker *breaker);

const char *breaker_text(enum breaker_state state);

#endif
