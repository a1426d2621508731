/*
 * The text that is inserted into one page. It comes from the cache of texts or from the helper.
 *
 *     struct answer answer = {.exchange = exchange, .settings = settings, .cache = cache};
 *     answer.ttl = settings->cache_ttl;
 *     if (!answer_ask(&answer, send_url)) ...        there is no text
 *     if (answer_has_come(&answer)) ... answer.text ...
 *     answer_end(&answer);
 *
 * While the helper works, exchange->wait is its job. A failure of the helper is counted and logged.
 * If the page is not at fault, service_failed is told too.
 *
 * Threads: the exchange's. Memory: the text is in the exchange's arena or the job, until
 * answer_end.
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
    uint64_t ttl;           /* milliseconds that the cache keeps it; 0: not at all */
    struct slice about;     /* what the helper is asked */
    struct helper_job *job; /* NULL: the text was in the cache */
    struct slice text;      /* empty: none, or it is not here yet */
    bool is_taken;          /* the text was taken from the job */
};

/* Asks for the text. False: there is none. `with_url`: the helper is told the page's URL. */
bool answer_ask(struct answer *answer, bool with_url);
/* Has the helper answered or failed? */
bool answer_has_come(struct answer *answer);
/* Sets exchange->wait to what the answer waits for, if it waits. */
void answer_watch(struct answer *answer);
void answer_end(struct answer *answer);

#endif
