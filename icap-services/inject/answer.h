/*
 * The answer of the helper to one page: the text that goes into it, from the cache of texts or from
 * the helper itself.
 *
 *     struct answer answer = {.exchange = exchange, .settings = settings, .cache = cache};
 *     answer.ttl = settings->cache_ttl;
 *     if (!answer_ask(&answer, send_url)) ...        there is no text
 *     if (answer_has_come(&answer)) ... answer.text ...
 *     answer_end(&answer);
 *
 * While the answer is under way, exchange->wait is the helper's job. A helper that fails is counted,
 * logged, and told by service_failed where that is no fault of the page.
 *
 * Threads: the exchange's. Memory: the text is in the exchange's arena or the job, until answer_end.
 */
#ifndef RETORT_INJECT_ANSWER_H
#define RETORT_INJECT_ANSWER_H

#include "inject/settings.h"
#include "inject/text_cache.h"
#include "service/helper_client.h"
#include "service/service.h"

struct answer {
    struct service_exchange *exchange;
    const struct inject_settings *settings;
    struct text_cache *cache;
    uint64_t ttl;           /* milliseconds that it may be used again for; 0: not at all */
    struct slice about;     /* what the helper is asked */
    struct helper_job *job; /* NULL: the text was in the cache */
    struct slice text;      /* empty: none, or it is not here yet */
    bool is_taken;          /* from the job */
};

/* False: it is known at once that there is no text. `with_url`: the helper is told the page's URL. */
bool answer_ask(struct answer *answer, bool with_url);
/* Has the helper said something, or failed to? */
bool answer_has_come(struct answer *answer);
/* exchange->wait becomes what the answer waits for, if anything. */
void answer_watch(struct answer *answer);
void answer_end(struct answer *answer);

#endif
