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

#include "base/slice.h"
#include "service/helper_client.h"
#include "service/option.h"
#include "service/service.h"

/*
 * Keeps what the helper has answered lately, so that it is not asked for each page of a client.
 *
 *     if (text_cache_find(cache, key, now, room, &length)) ...   a copy, perhaps empty: "no text"
 *     text_cache_store(cache, key, text, now + ttl);
 *
 * A newer answer replaces the older one of the same slot, so there are no chains that somebody could make long.
 * An answer longer than TEXT_CACHE_TEXT_MAX bytes is not kept. Times are milliseconds of one clock. Threads:
 * any; a mutex is held while an answer is copied.
 */

enum { TEXT_CACHE_SLOTS = 1024, TEXT_CACHE_TEXT_MAX = 16384 };

struct text_cache;

struct text_cache *text_cache_create(void);
void text_cache_free(struct text_cache **cachep);
bool text_cache_find(struct text_cache *cache, struct slice key, int64_t now,
                     char room[TEXT_CACHE_TEXT_MAX], size_t *length);
void text_cache_store(struct text_cache *cache, struct slice key, struct slice text,
                      int64_t expires);

/*
 * The settings of inject, its counters, and the options that fill the settings. Read-only once the service has
 * started.
 */

enum inject_scope { INJECT_SCOPE_CLIENT, INJECT_SCOPE_SHARED };
enum inject_csp { INJECT_CSP_REFUSE, INJECT_CSP_NONCE, INJECT_CSP_HASH, INJECT_CSP_INSERT };
enum inject_counter {
    INJECT_INSERTED,
    INJECT_NO_PLACE,
    INJECT_LATE,
    INJECT_HELPER_FAILED,
    INJECT_POLICY,
};

struct inject_settings {
    char *helperd, *pool;
    uint64_t deadline, cache_ttl;  /* milliseconds */
    uint64_t scan_limit;           /* bytes */
    uint64_t scope, position, csp; /* enum inject_scope, scanner_place, inject_csp */
    bool send_url;
    struct service_list types;
};

/* Both end with NULL. */
extern const struct service_option inject_options[];
extern const char *const inject_counters[];

/* The value that an argument of the URI chooses: its word is one of the words of the option with
 * that name. `otherwise` when the argument is missing or its word is unknown. */
uint64_t inject_settings_choice(struct slice arguments, const char *name, uint64_t otherwise);

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
