#include "disk/purge_log.h"

#include "base/assert.h"
#include "base/log.h"

#include <jansson.h>
#include <time.h>

struct logged_purge {
    unsigned magic;
#define LOGGED_PURGE_MAGIC 0x9c43e106u
    struct list_link link;
    uint64_t number;
    struct object_filter filter; /* a copy */
    enum purge_action action;
};

void purge_log_init(struct purge_log *log) {
    memset(log, 0, sizeof *log);
    ASSERT(pthread_rwlock_init(&log->lock, NULL) == 0);
    list_init(&log->purges);
}

static void drop_first(struct purge_log *log) {
    struct logged_purge *purge = CONTAINER_OF(list_first(&log->purges), struct logged_purge, link);
    list_remove(&purge->link);
    object_filter_release(&purge->filter);
    FREE_OBJ(purge);
}

/* Records that do not know of it may yet come, from a request that has been on its way since. */
static void forget_first(struct purge_log *log) {
    log->floor = CONTAINER_OF(list_first(&log->purges), struct logged_purge, link)->number;
    drop_first(log);
}

void purge_log_release(struct purge_log *log) {
    while (!list_empty(&log->purges))
        drop_first(log);
    pthread_rwlock_destroy(&log->lock);
}

/* Under the lock. */
static void append(struct purge_log *log, const struct object_filter *filter,
                   enum purge_action action, uint64_t number) {
    struct logged_purge *purge;
    ALLOC_OBJ(purge, LOGGED_PURGE_MAGIC);
    purge->filter = object_filter_copy(filter);
    purge->action = action;
    purge->number = number;
    list_append(&log->purges, &purge->link);
}

/* Under the lock. The one that was bumped longest ago gives way. */
static void keep_generation(struct purge_log *log, uint64_t service, uint64_t generation) {
    unsigned at = 0;
    while (at < log->service_count && log->services[at].service != service)
        at++;
    if (at < log->service_count && log->services[at].generation >= generation)
        return;
    if (at == PURGE_LOG_SERVICES)
        at = 0;
    if (at == log->service_count)
        log->service_count++;
    struct service_generation *place = &log->services[at];
    memmove(place, place + 1, (log->service_count - at - 1) * sizeof *place);
    log->services[log->service_count - 1] = (struct service_generation){service, generation};
}

void purge_log_keep_generation(struct purge_log *log, uint64_t service, uint64_t generation) {
    pthread_rwlock_wrlock(&log->lock);
    keep_generation(log, service, generation);
    pthread_rwlock_unlock(&log->lock);
}

uint64_t purge_log_kept_generation(struct purge_log *log, uint64_t service) {
    uint64_t generation = 0;
    pthread_rwlock_rdlock(&log->lock);
    for (unsigned i = 0; i < log->service_count; i++)
        if (log->services[i].service == service)
            generation = log->services[i].generation;
    pthread_rwlock_unlock(&log->lock);
    return generation;
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool same_filter(const struct object_filter *a, const struct object_filter *b) {
    bool same_regex = a->regex_text == NULL || b->regex_text == NULL
                          ? a->regex_text == b->regex_text
                          : strcmp(a->regex_text, b->regex_text) == 0;
    return same_regex && slice_equal(a->prefix, b->prefix) && slice_equal(a->host, b->host) &&
           slice_equal(a->tag, b->tag);
}

/* Under the lock: the same purge comes again, and concerns all that it did before. */
static void drop_same(struct purge_log *log, const struct object_filter *filter,
                      enum purge_action action) {
    LIST_FOR_EACH_SAFE (link, next, &log->purges) {
        struct logged_purge *purge = CONTAINER_OF(link, struct logged_purge, link);
        if (purge->action > action || !same_filter(&purge->filter, filter))
            continue;
        list_remove(&purge->link);
        object_filter_release(&purge->filter);
        FREE_OBJ(purge);
    }
}

uint64_t purge_log_add(struct purge_log *log, const struct object_filter *filter,
                       enum purge_action action) {
    pthread_rwlock_wrlock(&log->lock);
    /* By the clock, where it has not gone back: should the list be lost, what comes next is still
     * newer than all that the records know. */
    uint64_t number = purge_log_newest(log) + 1, now = microseconds();
    number = now > number ? now : number;
    drop_same(log, filter, action);
    append(log, filter, action, number);
    atomic_store_explicit(&log->newest, number, memory_order_release);
    pthread_rwlock_unlock(&log->lock);
    return number;
}

enum purge_action purge_log_judge(struct purge_log *log, const struct object *object,
                                  uint64_t number) {
    enum purge_action action = PURGE_NOTHING;
    pthread_rwlock_rdlock(&log->lock);
    /* A number that nobody has given: the list that had it is lost. */
    if (number < log->floor || number > purge_log_newest(log))
        action = PURGE_REMOVE;
    for (struct list_link *link = log->purges.prev; link != &log->purges && action != PURGE_REMOVE;
         link = link->prev) {
        const struct logged_purge *purge = CONTAINER_OF(link, struct logged_purge, link);
        CHECK_OBJ(purge, LOGGED_PURGE_MAGIC);
        if (purge->number <= number)
            break;
        if (purge->action > action && object_filter_fits(&purge->filter, object))
            action = purge->action;
    }
    pthread_rwlock_unlock(&log->lock);
    return action;
}

void purge_log_forget(struct purge_log *log, uint64_t oldest) {
    pthread_rwlock_wrlock(&log->lock);
    while (!list_empty(&log->purges) &&
           CONTAINER_OF(list_first(&log->purges), struct logged_purge, link)->number <= oldest)
        forget_first(log);
    pthread_rwlock_unlock(&log->lock);
}

/* JSON carries UTF-8 only, filters any bytes: each byte is written as the character of its number.
 */
static json_t *text_of(struct slice text) {
    char *encoded = xmalloc(2 * text.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.base[i];
        if (byte >= 0x80)
            encoded[length++] = (char)(0xc0 | byte >> 6);
        encoded[length++] = (char)(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
    json_t *json = json_stringn_nocheck(encoded, length);
    free(encoded);
    return json;
}

/* The other way round; the caller frees it. NULL: there is none. */
static char *bytes_in(json_t *json, const char *name) {
    const char *text = json_string_value(json_object_get(json, name));
    if (text == NULL)
        return NULL;
    char *bytes = xmalloc(strlen(text) + 1), *at = bytes;
    for (; *text != '\0'; text++)
        if (((unsigned char)*text & 0xfc) == 0xc0 && text[1] != '\0') {
            *at++ = (char)(((unsigned char)text[0] & 3) << 6 | ((unsigned char)text[1] & 0x3f));
            text++;
        } else {
            *at++ = *text;
        }
    *at = '\0';
    return bytes;
}

static json_t *one_to_json(const struct logged_purge *purge) {
    const struct object_filter *filter = &purge->filter;
    json_t *json = json_object();
    json_object_set_new(json, "number", json_integer((json_int_t)purge->number));
    json_object_set_new(json, "remove", json_boolean(purge->action == PURGE_REMOVE));
    json_object_set_new(json, "prefix", text_of(filter->prefix));
    json_object_set_new(json, "host", text_of(filter->host));
    json_object_set_new(json, "tag", text_of(filter->tag));
    if (filter->regex_text != NULL)
        json_object_set_new(json, "regex", text_of(slice_from(filter->regex_text)));
    return json;
}

static char *to_text(const struct purge_log *log) {
    json_t *all = json_array();
    for (unsigned i = 0; i < log->service_count; i++)
        json_array_append_new(all, json_pack("{s:I, s:I}", "service",
                                             (json_int_t)log->services[i].service, "generation",
                                             (json_int_t)log->services[i].generation));
    for (struct list_link *link = log->purges.next; link != &log->purges; link = link->next)
        json_array_append_new(all, one_to_json(CONTAINER_OF(link, struct logged_purge, link)));
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text != NULL ? text : xstrdup("[]");
}

char *purge_log_write(struct purge_log *log, size_t limit, size_t *length) {
    pthread_rwlock_wrlock(&log->lock);
    char *text = to_text(log);
    bool cut = false;
    while ((*length = strlen(text)) > limit && !list_empty(&log->purges)) {
        /* Half of them at a time: each try writes all. */
        size_t half = 1;
        for (struct list_link *link = log->purges.next; link != &log->purges; link = link->next)
            half++;
        for (half /= 2; half > 0; half--) {
            forget_first(log);
        }
        free(text);
        text = to_text(log);
        cut = true;
    }
    pthread_rwlock_unlock(&log->lock);
    if (cut)
        log_warn("disk: too many purges to keep; what was stored before the older ones counts as "
                 "purged: purge by tag or in larger groups");
    return text;
}

static uint64_t number_in(const json_t *json) {
    return (uint64_t)json_integer_value(json);
}

/* An expression that does not compile any more: as if it hit everything. */
static void read_one(struct purge_log *log, json_t *json) {
    uint64_t number = number_in(json_object_get(json, "number"));
    char *prefix = bytes_in(json, "prefix"), *host = bytes_in(json, "host");
    char *tag = bytes_in(json, "tag"), *expression = bytes_in(json, "regex");
    struct object_filter filter = {
        .prefix = slice_from(prefix),
        .host = slice_from(host),
        .tag = slice_from(tag),
    };
    struct regexes regex;
    char error[256];
    bool compiles = expression != NULL && regex_check(expression, error, sizeof error);
    if (compiles) {
        regexes_compile(&regex, (char *[]){expression, NULL});
        filter.regex = &regex;
        filter.regex_text = expression;
    }
    append(log, &filter, json_is_true(json_object_get(json, "remove")) ? PURGE_REMOVE : PURGE_STALE,
           number);
    if (compiles)
        regexes_release(&regex);
    free(prefix);
    free(host);
    free(tag);
    free(expression);
}

void purge_log_read(struct purge_log *log, struct slice text, uint64_t floor, uint64_t newest) {
    json_t *all = text.base == NULL ? NULL : json_loadb(text.base, text.length, 0, NULL);
    pthread_rwlock_wrlock(&log->lock);
    uint64_t known = list_empty(&log->purges)
                         ? 0
                         : CONTAINER_OF(log->purges.prev, struct logged_purge, link)->number;
    json_t *one;
    size_t i;
    json_array_foreach(all, i, one) {
        json_t *service = json_object_get(one, "service");
        if (service != NULL)
            keep_generation(log, number_in(service), number_in(json_object_get(one, "generation")));
        else if (number_in(json_object_get(one, "number")) > known)
            read_one(log, one);
    }
    if (floor > log->floor)
        log->floor = floor;
    if (newest > purge_log_newest(log))
        atomic_store_explicit(&log->newest, newest, memory_order_release);
    pthread_rwlock_unlock(&log->lock);
    json_decref(all);
}
