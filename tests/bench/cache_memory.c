/*
 * Does the cache keep its limit, in memory that the process really takes?
 *
 *     cache_memory                 64 MB, each way of filling it; takes ten seconds
 *     cache_memory --long          256 MB and 1 GB as well
 *     cache_memory --overhead      only the bytes per object beside what is stored
 *
 * Objects are put into a cache by several threads until several times its limit has gone through,
 * and looked up in between so that what is evicted does not stand in order. Afterwards the growth
 * of the resident set over that of the empty process is compared with the limit: status 1 when it
 * is more than 2 % and a constant above it.
 */
#include "base/assert.h"
#include "cache/removal.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, TIMES = 4, CONSTANT = 512 * 1024 };

struct filling {
    const char *name;
    double smallest, largest; /* of bodies; each doubling is as frequent as the next */
    bool unannounced;         /* the length is not known beforehand */
};

static const struct filling fillings[] = {
    {"200 B to 1 MB", 200, 1 << 20, false},  {"200 B to 1 MB, lengths unknown", 200, 1 << 20, true},
    {"200 B to 4 KB", 200, 4096, false},     {"500 B", 500, 500, false},
    {"10 KB to 60 KB", 10000, 60000, false}, {"300 KB to 1 MB", 300000, 1 << 20, false},
};

struct load {
    struct cache *cache;
    const struct filling *filling;
    size_t bytes; /* to be put in */
    uint64_t seed, number;
};

static size_t resident(void) {
    unsigned long pages = 0, unused;
    FILE *file = fopen("/proc/self/statm", "r");
    ASSERT(file != NULL && fscanf(file, "%lu %lu", &unused, &pages) == 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t random_bits(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Of a distribution in which the logarithm is uniform, nearly. */
static size_t random_size(const struct filling *filling, uint64_t *seed) {
    double at = (double)(random_bits(seed) % 100000) / 100000, size = filling->smallest;
    double ratio = filling->largest / filling->smallest;
    while (ratio > 2 && at > 0.5) { /* halves of the range, as often as it takes */
        ratio = __builtin_sqrt(ratio);
        size *= ratio;
        at = (at - 0.5) * 2;
    }
    return (size_t)(size * (1 + at * (ratio - 1)));
}

static struct body *make_body(const struct filling *filling, size_t size) {
    struct body *body = body_new(NULL, BODY_SHARED, filling->unannounced ? -1 : (int64_t)size);
    while (size > 0) {
        size_t room;
        char *at = body_room(body, &room);
        ASSERT(at != NULL);
        room = room < size ? room : size;
        memset(at, 'x', room);
        body_grow(body, room);
        size -= room;
    }
    body_finish(body, BODY_COMPLETE);
    return body;
}

static struct slice url_of(uint64_t number, char *text, size_t capacity) {
    return slice_make(text, (size_t)snprintf(text, capacity, "http://www.example.org/a/page/%llu",
                                             (unsigned long long)number));
}

static void heads(struct http_head *request, struct http_head *response) {
    http_head_init(request);
    http_head_init(response);
    request->method_id = HTTP_METHOD_GET;
    response->version = 11;
    response->status = 200;
    response->reason = SLICE("OK");
    http_head_add(response, SLICE("Content-Type"), SLICE("text/html; charset=utf-8"));
    http_head_add(response, SLICE("Last-Modified"), SLICE("Sun, 06 Nov 1994 08:49:37 GMT"));
    http_head_add(response, SLICE("ETag"), SLICE("\"3147526947+gzip\""));
    http_head_add(response, SLICE("Cache-Control"), SLICE("max-age=3600"));
}

/* Returns the bytes that are stored. */
static size_t put(struct cache *cache, const struct filling *filling, uint64_t number,
                  size_t size) {
    char text[80];
    struct http_head request, response;
    struct slice url = url_of(number, text, sizeof text);
    struct freshness freshness = {.lifetime = 3600, .response_time = time(NULL)};
    struct cache_arrival arrival = {.since = cache_now(cache)};
    heads(&request, &response);
    struct body *body = make_body(filling, size);
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    size_t stored = size + object->url_length + object->head_length + object->vary_length;
    cache_insert(cache, object, &arrival);
    object_release(&object);
    body_release(&body);
    return stored;
}

static void look(struct cache *cache, uint64_t number) {
    char text[80];
    struct http_head request;
    http_head_init(&request);
    struct cache_name name = cache_name_of(url_of(number, text, sizeof text));
    struct object *object = cache_lookup(cache, &name, &request, OBJECT_FORWARD);
    object_release(&object);
}

static void *load(void *arg) {
    struct load *load = arg;
    size_t done = 0;
    uint64_t first = load->number;
    while (done < load->bytes) {
        done +=
            put(load->cache, load->filling, load->number, random_size(load->filling, &load->seed));
        load->number += THREADS;
        if (random_bits(&load->seed) % 4 == 0)
            look(load->cache, first + random_bits(&load->seed) % (load->number - first));
    }
    return NULL;
}

/* Fills one cache with one thing after the other: what the sizes were before is to make no
 * difference. */
static bool fill(size_t limit, const struct filling *filling, struct cache *cache, size_t empty) {
    pthread_t threads[THREADS];
    struct load loads[THREADS];
    struct cache_statistics statistics;
    static uint64_t round;
    round++;
    for (unsigned i = 0; i < THREADS; i++) {
        loads[i] = (struct load){cache, filling, limit * TIMES / THREADS,
                                 0x9e3779b97f4a7c15u * (i + 1), (round << 40) + i};
        ASSERT(pthread_create(&threads[i], NULL, load, &loads[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cache_statistics(cache, &statistics);
    double growth = (double)(resident() - empty), part = growth / (double)limit;
    bool good = growth <= 1.02 * (double)limit + CONSTANT &&
                (double)statistics.bytes >= 0.8 * (double)limit;
    printf("%6zu MB  %-32s  resident %6.1f MB = %5.1f %%  counted %5.1f %%  %7llu objects  %s\n",
           limit >> 20, filling->name, growth / (1 << 20), part * 100,
           (double)statistics.bytes * 100 / (double)limit, (unsigned long long)statistics.objects,
           good ? "ok" : "WRONG");
    fflush(stdout);
    return good;
}

static bool keep_limit(size_t limit) {
    bool good = true;
    size_t empty = resident();
    struct cache *cache = cache_new(limit);
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++)
        good &= fill(limit, &fillings[i], cache, empty);
    good &= fill(limit, &fillings[0], cache, empty);
    cache_free(&cache);
    printf("%6zu MB  released, resident %.1f MB\n", limit >> 20,
           ((double)resident() - (double)empty) / (1 << 20));
    return good;
}

/* What an object may take beside what is stored: the struct of 121 bytes, that of its body, its
 * place in the index, and what the allocator rounds up. */
enum { BESIDE_MOST = 208 };

/* In a process of its own: what went before is to have left nothing behind. */
static bool measure_one(size_t size) {
    enum { NUMBER = 200000 };
    static const struct filling plain = {"", 0, 0, false};
    size_t stored = 0;
    struct cache *cache = cache_new((size_t)8 << 30);
    stored += put(cache, &plain, NUMBER, size);
    size_t empty = resident();
    for (unsigned n = 0; n < NUMBER; n++)
        stored += put(cache, &plain, n, size);
    double each = ((double)resident() - (double)empty - (double)stored) / NUMBER;
    bool fine = each <= BESIDE_MOST || size > 1500;
    printf("%6zu bytes of body: %5.0f stored, %6.1f beside that  %s\n", size,
           (double)stored / NUMBER, each, fine ? "ok" : "TOO MUCH");
    cache_free(&cache);
    return fine;
}

static bool measure_overhead(void) {
    static const size_t sizes[] = {0, 100, 200, 333, 500, 777, 1000, 1500, 2000, 2500};
    bool good = true;
    fflush(stdout);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            bool fine = measure_one(sizes[i]);
            fflush(stdout);
            _exit(fine ? 0 : 1);
        }
        ASSERT(waitpid(child, &status, 0) == child);
        good &= status == 0;
    }
    return good;
}

int main(int count, char **words) {
    bool longer = count > 1 && strcmp(words[1], "--long") == 0;
    bool good = measure_overhead();
    if (count > 1 && strcmp(words[1], "--overhead") == 0)
        return good ? 0 : 1;
    good &= keep_limit((size_t)64 << 20);
    if (longer)
        for (size_t limit = (size_t)256 << 20; limit <= (size_t)1 << 30; limit *= 4)
            good &= keep_limit(limit);
    return good ? 0 : 1;
}
