/*
 * The content manager: a service inside the proxy that looks after what is stored, as the module of
 * the same name in the DataReactor paper does, and some more.
 *
 *     Prefetch     gets the images of a page into the cache while the page passes, for the client
 *                  that reads the page: up to MaxPerPage of them, of the page's own site
 *     List         says how long responses stay fresh: lifetimes.h. A new list counts at once, also
 *                  for what is stored
 *     Socket       takes commands: console.h
 *     Report       writes a line into the log now and then
 *
 * README.md says how to build and run it. It stands at respmod_precache, and changes no body.
 */
#include "base/assert.h"
#include "base/spool.h"
#include "console.h"
#include "images.h"
#include "lifetimes.h"
#include "service/adapted_head.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* In milliseconds, URLs, operations, and bytes. */
enum { TICK = 250, SEEN_MOST = 4096, FETCHES_MOST = 48, EXPIRING_MOST = 8, BUFFER = 64 * 1024 };
enum { PER_PAGE_MOST = 200, SEEN_URL = 2048 };

enum { PAGES, FOUND, FETCHED, FAILED, SKIPPED, EXPIRED };
static const char *const manager_counters[] = {"PAGES",   "FOUND",   "FETCHED", "FAILED",
                                               "SKIPPED", "EXPIRED", NULL};

struct manager_settings {
    char *list, *socket;
    bool prefetch, other_sites, all_sizes;
    uint64_t per_page, report; /* milliseconds */
};

static const struct service_option manager_options[] = {
    {"Prefetch", SERVICE_OPTION_SWITCH, offsetof(struct manager_settings, prefetch), "on", 0, 0,
     NULL, "gets the images of pages"},
    {"MaxPerPage", SERVICE_OPTION_NUMBER, offsetof(struct manager_settings, per_page), "20", 0,
     PER_PAGE_MOST, NULL, "images of a page that it gets"},
    {"OtherSites", SERVICE_OPTION_SWITCH, offsetof(struct manager_settings, other_sites), "off", 0,
     0, NULL, "also images of other sites than the page's"},
    {"AllSizes", SERVICE_OPTION_SWITCH, offsetof(struct manager_settings, all_sizes), "off", 0, 0,
     NULL, "all images of a srcset, of which a browser takes one; off: the first"},
    {"List", SERVICE_OPTION_TEXT, offsetof(struct manager_settings, list), "", 0, 0, NULL,
     "a file of patterns and seconds"},
    {"Socket", SERVICE_OPTION_TEXT, offsetof(struct manager_settings, socket), "", 0, 0, NULL,
     "where it takes commands"},
    {"Report", SERVICE_OPTION_DURATION, offsetof(struct manager_settings, report), "60s", 0,
     24 * 60 * 60 * 1000, NULL, "how often it writes a line into the log; 0: never"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

/* An image on its way into the cache. */
struct fetch {
    struct service_content *content;
    uint64_t page, client; /* for which page, and a hash of the address for which it is */
};

struct manager {
    unsigned magic;
#define MANAGER_MAGIC 0x6d616e61u
    const struct manager_settings *settings;
    struct service_host *host;
    _Atomic uint64_t counts[EXPIRED + 1];
    pthread_mutex_t lock; /* of what follows, up to `console` */
    struct fetch fetches[FETCHES_MOST];
    unsigned fetch_count;
    uint64_t pages;
    char *seen[SEEN_MOST]; /* URLs that passed: a ring */
    unsigned seen_at;
    struct lifetimes list;
    /* Of the timer alone. */
    struct console *console;
    bool begun;
    unsigned expiring_at; /* the next URL of the ring whose lifetime is set; SEEN_MOST: none is */
    struct service_content *expiring[EXPIRING_MOST];
    int64_t reported;
};

/* One page on its way. */
struct page {
    unsigned magic;
#define PAGE_MAGIC 0x70616765u
    struct manager *manager;
    struct service_exchange *exchange;
    struct slice url, base;  /* base: by which its relative URLs are read */
    uint64_t number, client; /* as in struct fetch */
    unsigned images_wanted, images_begun;
    uint32_t names[PER_PAGE_MOST];      /* hashes of the images that are wanted */
    struct slice wanted[PER_PAGE_MOST]; /* their URLs; those from images_begun on wait */
    struct images images;
    struct spool body;
    bool finished;
};

static void manager_note(struct manager *manager, unsigned counter) {
    atomic_fetch_add(&manager->counts[counter], 1);
    service_count(manager->host, counter);
}

/* ---- start and stop ------------------------------------------------------------------------ */

static void *manager_start(const void *settings, struct service_host *host, char *error,
                           size_t error_size) {
    const struct manager_settings *own = settings;
    struct manager *manager;
    if (host->content == NULL) {
        snprintf(error, error_size,
                 "where it runs there is no cache: run it in the workers of the proxy, by a "
                 "service section with runs = worker");
        return NULL;
    }
    ALLOC_OBJ(manager, MANAGER_MAGIC);
    manager->settings = own;
    manager->host = host;
    pthread_mutex_init(&manager->lock, NULL);
    manager->expiring_at = SEEN_MOST;
    manager->reported = service_now();
    if (own->list[0] != '\0' &&
        (!lifetimes_load(&manager->list, own->list, error, error_size) || error[0] != '\0')) {
        if (error[0] == '\0')
            snprintf(error, error_size, "List: %s can not be read", own->list);
        lifetimes_release(&manager->list);
        FREE_OBJ(manager);
        return NULL;
    }
    return manager;
}

static void manager_stop(void *service) {
    struct manager *manager;
    CAST_OBJ(manager, service, MANAGER_MAGIC);
    console_close(&manager->console);
    for (unsigned i = 0; i < manager->fetch_count; i++)
        service_content_close(&manager->fetches[i].content);
    for (unsigned i = 0; i < EXPIRING_MOST; i++)
        service_content_close(&manager->expiring[i]);
    for (unsigned i = 0; i < SEEN_MOST; i++)
        free(manager->seen[i]);
    lifetimes_release(&manager->list);
    pthread_mutex_destroy(&manager->lock);
    FREE_OBJ(manager);
}

/* ---- responses that pass ------------------------------------------------------------------- */

/* Remembers the URL, so that a later list can concern it; says how long it is to stay fresh. Clients
 * may ask for URLs of any length, so long ones are not remembered. */
static bool manager_see(struct manager *manager, struct slice url, int64_t *seconds) {
    pthread_mutex_lock(&manager->lock);
    if (url.length <= SEEN_URL) {
        char **place = &manager->seen[manager->seen_at++ % SEEN_MOST];
        free(*place);
        *place = slice_dup(url);
    }
    bool found = lifetimes_find(&manager->list, url, seconds);
    pthread_mutex_unlock(&manager->lock);
    return found;
}

static void page_set_lifetime(struct service_exchange *exchange, int64_t seconds) {
    struct slice value = arena_printf(exchange->arena, "max-age=%lld", (long long)seconds);
    http_head_remove_text(exchange->head, SLICE("Expires"));
    http_head_set(exchange->head, HTTP_CACHE_CONTROL, value);
}

/* What is for one user, or for nobody's cache, stays that. */
static bool page_is_for_all(const struct http_head *head) {
    return !http_head_has_token(head, HTTP_CACHE_CONTROL, SLICE("private")) &&
           !http_head_has_token(head, HTTP_CACHE_CONTROL, SLICE("no-store"));
}

static bool has_images(const struct manager *manager, const struct service_exchange *exchange) {
    struct slice type = media_type_of(exchange->head);
    return manager->settings->prefetch && !exchange->of_service && exchange->has_body &&
           slice_equal_nocase(type, SLICE("text/html")) && adapted_head_is_identity(exchange->head);
}

static void *manager_begin(void *service, struct service_exchange *exchange) {
    struct manager *manager;
    struct page *page;
    int64_t seconds;
    CAST_OBJ(manager, service, MANAGER_MAGIC);
    if (exchange->request->method_id != HTTP_METHOD_GET || exchange->head->status != 200)
        return NULL;
    struct slice url = exchange_url(exchange);
    bool listed = manager_see(manager, url, &seconds) && page_is_for_all(exchange->head);
    bool scans = has_images(manager, exchange);
    if (listed)
        page_set_lifetime(exchange, seconds);
    if (!listed && !scans)
        return NULL;
    ALLOC_OBJ(page, PAGE_MAGIC);
    page->manager = manager;
    page->exchange = exchange;
    page->url = page->base = url;
    page->client = service_fingerprint(SERVICE_FINGERPRINT_SEED, exchange->client_ip.base,
                                       exchange->client_ip.length);
    spool_init(&page->body);
    exchange->keeps_body = !scans;
    if (scans) {
        pthread_mutex_lock(&manager->lock);
        page->number = ++manager->pages;
        pthread_mutex_unlock(&manager->lock);
        exchange->body_length = adapted_head_length(exchange->head);
        manager_note(manager, PAGES);
    }
    return page;
}

static enum service_verdict manager_preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_ADAPT;
}

/* ---- images -------------------------------------------------------------------------------- */

static bool page_wants(const struct page *page, uint32_t name) {
    for (unsigned i = 0; i < page->images_wanted; i++)
        if (page->names[i] == name)
            return true;
    return false;
}

/* A page may have no more fetches under way than there are places left for others, and a client no
 * more than twice as many, for all its pages. So the first page gets half of the places, and the
 * next one half of what is left. */
static bool page_may_fetch(const struct page *page) {
    const struct manager *manager = page->manager;
    unsigned left = FETCHES_MOST - manager->fetch_count, of_page = 0, of_client = 0;
    for (unsigned i = 0; i < manager->fetch_count; i++) {
        of_page += manager->fetches[i].page == page->number;
        of_client += manager->fetches[i].client == page->client;
    }
    return of_page < left && of_client < 2 * left;
}

/* The fetch is the reader's, and outlives the page: the timer looks how it has ended. */
static bool page_fetch(struct page *page, struct slice url) {
    struct manager *manager = page->manager;
    pthread_mutex_lock(&manager->lock);
    struct service_content *fetch =
        page_may_fetch(page) ? service_content_fetch(manager->host, url, SLICE(""), page->exchange)
                             : NULL;
    if (fetch != NULL)
        manager->fetches[manager->fetch_count++] =
            (struct fetch){fetch, page->number, page->client};
    pthread_mutex_unlock(&manager->lock);
    return fetch != NULL;
}

/* The others wait, as long as the page is under way. */
static void fetch_wanted(struct page *page) {
    while (page->images_begun < page->images_wanted &&
           page_fetch(page, page->wanted[page->images_begun]))
        page->images_begun++;
}

static void on_image(void *arg, struct slice source) {
    struct page *page;
    char url[IMAGES_TAG];
    CAST_OBJ(page, arg, PAGE_MAGIC);
    const struct manager_settings *settings = page->manager->settings;
    size_t length = images_resolve(page->base, source, url, sizeof url);
    struct slice image = slice_make(url, length);
    uint32_t name = (uint32_t)service_fingerprint(SERVICE_FINGERPRINT_SEED, url, length);
    if (length == 0 || page_wants(page, name))
        return;
    manager_note(page->manager, FOUND);
    if (page->images_wanted >= settings->per_page || length > SEEN_URL ||
        (!settings->other_sites && !images_same_site(page->url, image))) {
        manager_note(page->manager, SKIPPED);
        return;
    }
    page->wanted[page->images_wanted] = arena_slice(page->exchange->arena, image);
    page->names[page->images_wanted++] = name;
}

/* Whose images are fetched depends on the URL of the page all the same. */
static void on_base(void *arg, struct slice href) {
    struct page *page;
    char url[IMAGES_TAG];
    CAST_OBJ(page, arg, PAGE_MAGIC);
    size_t length = images_resolve(page->url, href, url, sizeof url);
    if (length > 0)
        page->base = arena_concat(page->exchange->arena, slice_make(url, length));
}

/* ---- the body, which passes as it is ------------------------------------------------------- */

static size_t manager_push(void *state, struct slice body) {
    struct page *page;
    CAST_OBJ(page, state, PAGE_MAGIC);
    size_t room = page->body.length < BUFFER ? BUFFER - page->body.length : 0;
    struct slice piece = slice_make(body.base, body.length < room ? body.length : room);
    const struct images_reader reader = {.see_image = on_image,
                                         .see_base = on_base,
                                         .arg = page,
                                         .all_sizes = page->manager->settings->all_sizes};
    images_scan(&page->images, piece, &reader);
    fetch_wanted(page);
    spool_append(&page->body, piece.base, piece.length);
    return piece.length;
}

static void manager_finish(void *state) {
    struct page *page;
    CAST_OBJ(page, state, PAGE_MAGIC);
    page->finished = true;
}

static enum service_flow manager_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct page *page;
    CAST_OBJ(page, state, PAGE_MAGIC);
    fetch_wanted(page);
    *got = spool_read(&page->body, out, capacity);
    return page->finished && page->body.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
}

static void manager_end(void *state) {
    struct page *page;
    CAST_OBJ(page, state, PAGE_MAGIC);
    for (; page->images_begun < page->images_wanted; page->images_begun++)
        manager_note(page->manager, SKIPPED);
    spool_release(&page->body);
    FREE_OBJ(page);
}

/* ---- the timer ----------------------------------------------------------------------------- */

static void manager_text(void *arg, char *text, size_t size) {
    struct manager *manager;
    CAST_OBJ(manager, arg, MANAGER_MAGIC);
    unsigned long long counts[EXPIRED + 1];
    for (unsigned i = 0; i <= EXPIRED; i++)
        counts[i] = atomic_load(&manager->counts[i]);
    snprintf(
        text, size,
        "%llu pages had %llu images: %llu were fetched, %llu could not be, %llu were left out; "
        "%llu lifetimes were set by the list",
        counts[PAGES], counts[FOUND], counts[FETCHED], counts[FAILED], counts[SKIPPED],
        counts[EXPIRED]);
}

static void end_fetches(struct manager *manager) {
    unsigned kept = 0;
    pthread_mutex_lock(&manager->lock);
    for (unsigned i = 0; i < manager->fetch_count; i++) {
        struct fetch *fetch = &manager->fetches[i];
        const struct service_content_answer *answer = service_content_answer(fetch->content);
        if (answer == NULL) {
            manager->fetches[kept++] = *fetch;
            continue;
        }
        manager_note(manager, answer->status == SERVICE_CONTENT_DONE ? FETCHED : FAILED);
        service_content_close(&fetch->content);
    }
    manager->fetch_count = kept;
    pthread_mutex_unlock(&manager->lock);
}

/* Reads a list that has changed, and begins to apply it to what has passed. */
static void watch_list(struct manager *manager) {
    char error[400] = "";
    if (manager->settings->list[0] == '\0')
        return;
    pthread_mutex_lock(&manager->lock);
    bool changed = lifetimes_load(&manager->list, manager->settings->list, error, sizeof error);
    pthread_mutex_unlock(&manager->lock);
    if (error[0] != '\0')
        service_log(manager->host, LOG_LEVEL_WARN, error);
    if (changed)
        manager->expiring_at = 0;
}

/* The next URL that the list concerns; NULL: there is none. */
static char *next_listed(struct manager *manager, int64_t *seconds) {
    char *url = NULL;
    pthread_mutex_lock(&manager->lock);
    while (url == NULL && manager->expiring_at < SEEN_MOST) {
        const char *seen = manager->seen[manager->expiring_at++];
        if (seen != NULL && lifetimes_find(&manager->list, slice_from(seen), seconds))
            url = slice_dup(slice_from(seen));
    }
    pthread_mutex_unlock(&manager->lock);
    return url;
}

/* Some at a time, so that others have their turn. */
static void apply_list(struct manager *manager) {
    for (unsigned i = 0; i < EXPIRING_MOST; i++) {
        struct service_content **place = &manager->expiring[i];
        int64_t seconds;
        if (*place != NULL && service_content_answer(*place) == NULL)
            continue;
        if (*place != NULL && service_content_answer(*place)->status == SERVICE_CONTENT_DONE)
            manager_note(manager, EXPIRED);
        service_content_close(place);
        char *url = next_listed(manager, &seconds);
        if (url != NULL)
            *place = service_content_expire(manager->host, slice_from(url), seconds);
        free(url);
    }
}

static void write_report(struct manager *manager) {
    char text[500];
    uint64_t every = manager->settings->report;
    if (every == 0 || service_now() - manager->reported < (int64_t)every)
        return;
    manager->reported = service_now();
    manager_text(manager, text, sizeof text);
    service_log(manager->host, LOG_LEVEL_INFO, text);
}

static void manager_timer(void *service) {
    struct manager *manager;
    char error[400];
    CAST_OBJ(manager, service, MANAGER_MAGIC);
    if (!manager->begun && manager->settings->socket[0] != '\0') {
        manager->console = console_open(manager->settings->socket, manager->host, manager_text,
                                        manager, error, sizeof error);
        if (manager->console == NULL)
            service_log(manager->host, LOG_LEVEL_ERROR, error);
    }
    manager->begun = true;
    end_fetches(manager);
    watch_list(manager);
    apply_list(manager);
    write_report(manager);
}

static void manager_descriptor(void *service, int fd, short events) {
    struct manager *manager;
    CAST_OBJ(manager, service, MANAGER_MAGIC);
    (void)events;
    if (manager->console == NULL || !console_ready(manager->console, fd))
        service_watch(manager->host, fd, 0);
}

SERVICE_DEFINE(manager) = {
    .version = SERVICE_VERSION,
    .name = "manager",
    .description = "content manager: prefetches images, sets lifetimes by a list, takes commands",
    .points = SERVICE_RESPONSE,
    .settings_size = sizeof(struct manager_settings),
    .options = manager_options,
    .counters = manager_counters,
    .start = manager_start,
    .stop = manager_stop,
    .begin = manager_begin,
    .preview = manager_preview,
    .push = manager_push,
    .finish = manager_finish,
    .pull = manager_pull,
    .end = manager_end,
    .timer_period = TICK,
    .timer = manager_timer,
    .descriptor = manager_descriptor,
};
