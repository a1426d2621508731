/*
 * How long do purges of many take, and whom do they hold up?
 *
 *     cache_purge             a hundred thousand objects: a test, with limits that a busy machine
 *                             keeps too
 *     cache_purge --long      a million, twice, to be read
 *     cache_purge --rate      a million, and a thousand purges a second for ten seconds
 *
 * A tenth of the objects is purged: by prefix, by surrogate key, by host and by an expression, and
 * made stale. Meanwhile another thread looks up objects, notes how long each look-up took, and when
 * the last one began that still found what is purged: from then on the purge is in force, however
 * long it takes to give back the memory and to count.
 */
#include "base/assert.h"
#include "cache/removal.h"

#include <stdio.h>

enum { TENTH = 10, FEW = 100000, MANY = 1000000 };
/* Seconds, for FEW: some twenty times what it takes, but for look-ups, which wait for their turn on
 * the processor. */
#define WORK_MOST    0.5
#define LOOK_UP_MOST 2.0

static struct cache *cache;
static unsigned number = FEW;
static int failures;
static enum purge_action action;
static _Atomic bool over;
static _Atomic double worst;      /* seconds */
static _Atomic double last_found; /* on the clock of now() */

static double read_clock(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

/* Of this thread's: others may want the processor as well. */
static double work(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Every tenth is in /old/ and has the key "old". */
static struct slice url_of(unsigned i, char *text, size_t capacity) {
    return slice_make(text, (size_t)snprintf(text, capacity, "http://www.example.org/%s/page/%u",
                                             i % TENTH == 0 ? "old" : "new", i));
}

static void put(unsigned i) {
    char text[80];
    struct http_head request, response;
    struct slice url = url_of(i, text, sizeof text);
    struct freshness freshness = {.lifetime = 3600, .response_time = time(NULL)};
    struct cache_arrival arrival = {.since = cache_now(cache)};
    http_head_init(&request);
    http_head_init(&response);
    request.method_id = HTTP_METHOD_GET;
    response.version = 11;
    response.status = 200;
    response.reason = SLICE("OK");
    http_head_add(&response, SLICE("Content-Type"), SLICE("text/html; charset=utf-8"));
    http_head_add(&response, SLICE("Date"), SLICE("Sun, 06 Nov 1994 08:49:37 GMT"));
    http_head_add(&response, SLICE("ETag"), SLICE("\"3147526947+gzip\""));
    snprintf(text + 64, sizeof text - 64, "g%u", i % 1000);
    http_head_add(&response, SLICE("Surrogate-Key"),
                  i % TENTH == 0 ? SLICE("all old") : slice_from(text + 64));
    struct body *body = body_of_bytes(slice_make(text, 64));
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    ASSERT(cache_insert(cache, object, &arrival));
    object_release(&object);
    body_release(&body);
}

static void fill(void) {
    for (unsigned i = 0; i < number; i++) {
        char text[80];
        struct cache_walk walk = {0};
        if (i % TENTH == 0 ||
            !cache_walk_key(cache, &walk, cache_key_of(url_of(i, text, sizeof text))))
            put(i);
        cache_walk_end(&walk);
    }
}

static bool is_of_use(const struct object *object) {
    if (object == NULL || action == PURGE_REMOVE)
        return object != NULL;
    struct freshness freshness = object_freshness(object);
    return freshness.lifetime > freshness_age(&freshness, time(NULL));
}

/* One that stays, then one that is purged. */
static void *look(void *arg) {
    char text[80];
    unsigned i = 1;
    struct http_head request;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    for (unsigned purged = 0; !over; purged = 1 - purged) {
        i = (i * 1664525u + 1013904223u) % number;
        struct cache_name name =
            cache_name_of(url_of(i / TENTH * TENTH + 1 - purged, text, sizeof text));
        double before = now();
        struct object *object = cache_lookup(cache, &name, &request, OBJECT_FORWARD);
        double took = now() - before;
        if (purged == 1 && is_of_use(object))
            last_found = before;
        object_release(&object);
        if (took > worst)
            worst = took;
    }
    return NULL;
}

static void measure(const char *name, const struct object_filter *filter, enum purge_action act,
                    unsigned expected) {
    pthread_t thread;
    action = act;
    over = false;
    worst = 0;
    ASSERT(pthread_create(&thread, NULL, look, NULL) == 0);
    struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
    double idle = worst;
    worst = 0;
    double before = now(), worked = work();
    uint64_t count = cache_change_purge(cache, filter, action);
    double took = now() - before;
    worked = work() - worked;
    double busy = worst;
    nanosleep(&nap, NULL);
    over = true;
    pthread_join(thread, NULL);
    double force = expected > 0 && last_found > before ? last_found - before : 0;
    printf("%-24s %8llu of %u objects  in force after %6.3f ms, done after %7.1f ms (%6.1f ms of "
           "work)  longest look-up %6.3f ms (before it %6.3f)\n",
           name, (unsigned long long)count, number, force * 1e3, took * 1e3, worked * 1e3,
           busy * 1e3, idle * 1e3);
    fflush(stdout);
    if (count != expected || force > took ||
        (number == FEW && (worked > WORK_MOST || busy > LOOK_UP_MOST))) {
        printf("FAILED: expected were %u objects, %.1f s of work, look-ups of %.1f s\n", expected,
               WORK_MOST, LOOK_UP_MOST);
        failures++;
    }
    if (action == PURGE_REMOVE)
        fill();
}

/* So many purges a second by different surrogate keys, one in a hundred of which some objects have.
 */
static void measure_rate(void) {
    enum { RATE = 1000, SECONDS = 10 };
    double begun = now(), busy = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < RATE * SECONDS; i++) {
        char tag[32];
        uint64_t hits;
        int length = snprintf(tag, sizeof tag, i % 100 == 0 ? "g%u" : "none%u", i / 10);
        struct object_filter filter = {.tag = {tag, (size_t)length}};
        cache_change_purge_soon(cache, &filter, PURGE_REMOVE, &hits);
        double left = begun + (double)i / RATE - now();
        struct timespec nap = {.tv_nsec = (long)(left * 1e9)};
        if (left > 0)
            nanosleep(&nap, NULL);
    }
    printf("%d purges a second take %.1f %% of a processor\n", RATE,
           100 * (read_clock(CLOCK_PROCESS_CPUTIME_ID) - busy) / (now() - begun));
}

int main(int count, char **words) {
    bool is_long = count > 1 && strcmp(words[1], "--long") == 0;
    bool is_rate = count > 1 && strcmp(words[1], "--rate") == 0;
    if (is_long || is_rate)
        number = MANY;
    cache = cache_new((size_t)4 << 30);
    double before = now();
    fill();
    printf("%u objects in %.1f s\n", number, now() - before);
    if (is_rate) {
        measure_rate();
        cache_free(&cache);
        return 0;
    }
    struct regexes regex;
    regexes_compile(&regex, (char *[]){"/old/.*[0-9]$", NULL});
    struct object_filter prefix = {.prefix = SLICE("http://www.example.org/old/")};
    struct object_filter tag = {.tag = SLICE("old")};
    struct object_filter host = {.host = SLICE("nowhere.example.org")};
    struct object_filter expression = {.regex = &regex, .regex_text = "/old/.*[0-9]$"};
    unsigned tenth = number / TENTH;
    for (unsigned i = 0; i < (is_long ? 2 : 1); i++) {
        measure("by prefix", &prefix, PURGE_REMOVE, tenth);
        measure("by prefix, made stale", &prefix, PURGE_STALE, tenth);
        measure("by surrogate key", &tag, PURGE_REMOVE, tenth);
        measure("by host, none", &host, PURGE_REMOVE, 0);
        measure("by expression", &expression, PURGE_REMOVE, tenth);
    }
    regexes_release(&regex);
    cache_free(&cache);
    return failures > 0;
}
