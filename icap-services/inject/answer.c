#include "inject/answer.h"

#include "base/assert.h"
#include "service/adapted_head.h"
#include "service/arguments.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct entry {
    char *bytes; /* the key, then the text; NULL: free */
    size_t key_length, text_length;
    int64_t expires;
};

struct text_cache {
    unsigned magic;
#define TEXT_CACHE_MAGIC 0x54784361u
    pthread_mutex_t lock;
    struct entry entries[TEXT_CACHE_SLOTS];
};

struct text_cache *text_cache_create(void) {
    struct text_cache *cache;
    ALLOC_OBJ(cache, TEXT_CACHE_MAGIC);
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void text_cache_free(struct text_cache **cachep) {
    struct text_cache *cache = *cachep;
    *cachep = NULL;
    if (cache == NULL)
        return;
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    for (unsigned i = 0; i < TEXT_CACHE_SLOTS; i++)
        free(cache->entries[i].bytes);
    pthread_mutex_destroy(&cache->lock);
    FREE_OBJ(cache);
}

/* FNV-1a. */
static struct entry *slot_of(struct text_cache *cache, struct slice key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.length; i++)
        hash = (hash ^ (unsigned char)key.base[i]) * 0x100000001b3u;
    return &cache->entries[(hash ^ hash >> 32) % TEXT_CACHE_SLOTS];
}

bool text_cache_find(struct text_cache *cache, struct slice key, int64_t now,
                     char room[TEXT_CACHE_TEXT_MAX], size_t *length) {
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    pthread_mutex_lock(&cache->lock);
    const struct entry *entry = slot_of(cache, key);
    bool found = entry->bytes != NULL && entry->expires > now &&
                 slice_equal(slice_make(entry->bytes, entry->key_length), key);
    if (found) {
        *length = entry->text_length;
        memcpy(room, entry->bytes + entry->key_length, entry->text_length);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void text_cache_store(struct text_cache *cache, struct slice key, struct slice text,
                      int64_t expires) {
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    if (text.length > TEXT_CACHE_TEXT_MAX)
        return;
    char *bytes = xmalloc(key.length + text.length + 1);
    memcpy(bytes, key.base, key.length);
    if (text.length > 0)
        memcpy(bytes + key.length, text.base, text.length);
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = slot_of(cache, key);
    free(entry->bytes);
    *entry = (struct entry){bytes, key.length, text.length, expires};
    pthread_mutex_unlock(&cache->lock);
}

const struct service_option inject_options[] = {
    {"Helperd", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, helperd),
     "/run/retort/helperd.sock", 0, 0, NULL, "The socket of retort-helperd."},
    {"Pool", SERVICE_OPTION_TEXT, offsetof(struct inject_settings, pool), "text", 0, 0, NULL,
     "The pool of retort-helperd that gives the texts."},
    {"Deadline", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, deadline), "2s", 1,
     600000, NULL, "How long a page may wait for its text."},
    {"Scope", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, scope), "client", 0, 0,
     "client|shared",
     "client: the text is for one client, so caches must not share the page. shared: the text is "
     "for everybody."},
    {"Position", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, position), "head-end", 0,
     0, "head-end|body-start|body-end", "The place in the page where the text is inserted."},
    {"CacheTtl", SERVICE_OPTION_DURATION, offsetof(struct inject_settings, cache_ttl), "0", 0,
     86400000, NULL, "How long an answer of the helper is reused. 0 means never."},
    {"SendUrl", SERVICE_OPTION_SWITCH, offsetof(struct inject_settings, send_url), "off", 0, 0,
     NULL,
     "Whether the helper gets the URL of the page. Its answers then apply to this page only."},
    {"Csp", SERVICE_OPTION_CHOICE, offsetof(struct inject_settings, csp), "refuse", 0, 0,
     "refuse|nonce|hash|insert",
     "What happens to a text with scripts or styles when the policy of the page forbids them. "
     "refuse: it is not inserted. nonce: it is inserted with the nonce of the page in place of "
     "%{nonce}. hash: the hashes of its scripts and styles are added to the policy. insert: it is "
     "inserted unchanged."},
    {"ScanLimit", SERVICE_OPTION_SIZE, offsetof(struct inject_settings, scan_limit), "1M", 1024,
     UINT64_C(1) << 40, NULL, "How many bytes of a page are searched for the place."},
    {"Type", SERVICE_OPTION_LIST, offsetof(struct inject_settings, types),
     "text/html application/xhtml+xml", 0, 0, NULL, "Content types that count as pages."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

const char *const inject_counters[] = {"INSERTED",      "NO PLACE FOUND", "HELPER TOO LATE",
                                       "HELPER FAILED", "POLICY FORBIDS", NULL};

uint64_t inject_settings_choice(struct slice arguments, const char *name, uint64_t otherwise) {
    const struct service_option *option = inject_options;
    struct slice text;
    char error[200];
    uint64_t choices[sizeof(struct inject_settings) / sizeof(uint64_t) + 1];
    while (strcasecmp(option->name, name) != 0)
        option++;
    if (!service_argument(arguments, slice_from(name), &text) ||
        !service_option_set(option, choices, text, error, sizeof error))
        return otherwise;
    return choices[option->offset / sizeof(uint64_t)];
}

void answer_watch(struct answer *answer) {
    service_wait_none(answer->exchange);
    if (answer->job != NULL && !helper_job_finished(answer->job))
        answer->exchange->wait =
            (struct service_wait){.fd = helper_job_fd(answer->job),
                                  .events = POLLIN,
                                  .deadline = helper_job_deadline(answer->job)};
}

/* The job has finished without a text to insert. */
static void answer_report(struct answer *answer) {
    char line[240];
    enum helper_status status = helper_job_status(answer->job);
    if (status == HELPER_UNCHANGED)
        return;
    service_count(answer->exchange->host,
                  status == HELPER_TIMEOUT ? INJECT_LATE : INJECT_HELPER_FAILED);
    if (helper_job_outage(answer->job) != NULL)
        service_failed(answer->exchange, helper_job_outage(answer->job));
    snprintf(line, sizeof line, "a page passes without its text: %s",
             helper_job_error(answer->job));
    service_log(answer->exchange->host, LOG_LEVEL_WARN, line);
}

/* What the helper is told: the address, then the URL and the name on lines of their own. */
static struct slice answer_about(const struct answer *answer, bool with_url) {
    const struct service_exchange *exchange = answer->exchange;
    struct slice url = SLICE("");
    if (with_url)
        url = exchange_url(exchange);
    if (url.length == 0 && exchange->client_user.length == 0)
        return exchange->client_ip;
    return arena_concat(exchange->arena, exchange->client_ip, SLICE("\n"), url, SLICE("\n"),
                        exchange->client_user);
}

static bool answer_find_in_cache(struct answer *answer) {
    char room[TEXT_CACHE_TEXT_MAX];
    size_t length;
    if (answer->ttl == 0 ||
        !text_cache_find(answer->cache, answer->about, service_now(), room, &length))
        return false;
    answer->text = arena_slice(answer->exchange->arena, slice_make(room, length));
    return true;
}

static void answer_ask_helper(struct answer *answer) {
    const struct inject_settings *settings = answer->settings;
    struct helper_request request = {.socket = settings->helperd,
                                     .pool = slice_from(settings->pool),
                                     .parameters = answer->about,
                                     .body = -1,
                                     .milliseconds = (uint32_t)settings->deadline,
                                     .client = answer->exchange->client_ip};
    answer->job = helper_job_start(&request);
}

/* The helper has answered, with a text or without one. Both answers are worth keeping. */
static void answer_take(struct answer *answer) {
    enum helper_status status = helper_job_status(answer->job);
    if (status != HELPER_DONE && status != HELPER_UNCHANGED) {
        answer_report(answer);
        return;
    }
    answer->text = helper_job_parameters(answer->job);
    if (answer->ttl > 0)
        text_cache_store(answer->cache, answer->about, answer->text,
                         service_now() + (int64_t)answer->ttl);
}

bool answer_has_come(struct answer *answer) {
    if (answer->job == NULL || answer->is_taken)
        return true;
    helper_job_run(answer->job);
    answer_watch(answer);
    if (!helper_job_finished(answer->job))
        return false;
    answer_take(answer);
    answer->is_taken = true;
    return true;
}

bool answer_ask(struct answer *answer, bool with_url) {
    answer->about = answer_about(answer, with_url);
    if (answer_find_in_cache(answer))
        return answer->text.length > 0;
    answer_ask_helper(answer);
    if (helper_job_finished(answer->job)) { /* nobody there */
        answer_report(answer);
        return false;
    }
    answer_watch(answer);
    return true;
}

void answer_end(struct answer *answer) {
    helper_job_end(&answer->job);
}
