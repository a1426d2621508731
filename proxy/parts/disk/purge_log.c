#include "disk/purge_log.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"

#include <string.h>
#include <time.h>

void purge_log_init(struct purge_log *log) {
    memset(log, 0, sizeof *log);
    ASSERT(pthread_rwlock_init(&log->lock, NULL) == 0);
    filter_table_init(&log->purges);
}

void purge_log_release(struct purge_log *log) {
    filter_table_release(&log->purges);
    pthread_rwlock_destroy(&log->lock);
}

/* Call with the lock held. The service whose bump is oldest is dropped. */
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

uint64_t purge_log_add(struct purge_log *log, const struct object_filter *filter,
                       enum purge_action action, struct purge_slots *slots) {
    pthread_rwlock_wrlock(&log->lock);
    /* Numbers follow the clock unless it was set back. If the list is lost, later purges are
     * then still newer than all numbers in records. */
    uint64_t number = purge_log_newest(log) + 1, now = clocks_microseconds(CLOCK_REALTIME);
    number = now > number ? now : number;
    filter_table_drop_other(&log->purges, filter, action, number);
    filter_table_add(&log->purges, filter, action, number, 0);
    atomic_store_explicit(&log->newest, number, memory_order_release);
    pthread_rwlock_unlock(&log->lock);
    purge_slots_add(slots, filter, action, number);
    return number;
}

enum purge_action purge_log_judge(struct purge_log *log, const struct object *object,
                                  uint64_t number) {
    pthread_rwlock_rdlock(&log->lock);
    /* A number that was never given, because the list that contained it is lost. */
    enum purge_action action = number < purge_log_floor(log) || number > purge_log_newest(log)
                                   ? PURGE_REMOVE
                                   : filter_table_find(&log->purges, object, number).action;
    pthread_rwlock_unlock(&log->lock);
    return action;
}

/* Summing up. */

/* Call with the lock held. Requests that began before these purges may still write records that
 * do not consider them. */
static void purge_log_forget(struct purge_log *log, uint64_t until) {
    uint64_t newest = filter_table_forget(&log->purges, until);
    if (newest > purge_log_floor(log))
        atomic_store_explicit(&log->floor, newest, memory_order_release);
}

static bool stale_counts(const struct filter_entry *entry) {
    return entry->stale > entry->removed;
}

static size_t slots_needed(const struct purge_log *log) {
    size_t count = log->service_count;
    for (size_t i = 0; i < log->purges.capacity; i++) {
        const struct filter_entry *entry = &log->purges.entries[i];
        if (entry->hash != 0)
            count += (size_t)(entry->removed > 0) + stale_counts(entry);
    }
    LIST_FOR_EACH (link, &log->purges.others)
        count += purge_slots_of(&CONTAINER_OF(link, struct filter_other, link)->filter);
    return count;
}

static int compare_numbers(const void *a, const void *b) {
    const uint64_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* The number that divides the purges into halves. There is at least one purge. */
static uint64_t middle(const struct purge_log *log) {
    size_t count = 0;
    uint64_t *numbers = xcalloc(2 * log->purges.count + log->purges.other_count, sizeof *numbers);
    for (size_t i = 0; i < log->purges.capacity; i++) {
        const struct filter_entry *entry = &log->purges.entries[i];
        if (entry->hash != 0 && entry->removed > 0)
            numbers[count++] = entry->removed;
        if (entry->hash != 0 && stale_counts(entry))
            numbers[count++] = entry->stale;
    }
    LIST_FOR_EACH (link, &log->purges.others)
        numbers[count++] = CONTAINER_OF(link, struct filter_other, link)->number;
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    uint64_t number = numbers[(count - 1) / 2];
    free(numbers);
    return number;
}

static void purge_log_write_all(const struct purge_log *log, struct purge_slots *slots) {
    for (unsigned i = 0; i < log->service_count; i++)
        purge_slots_add_generation(slots, log->services[i].service, log->services[i].generation);
    for (size_t i = 0; i < log->purges.capacity; i++) {
        const struct filter_entry *entry = &log->purges.entries[i];
        if (entry->hash != 0 && entry->removed > 0)
            purge_slots_add_simple(slots, entry, PURGE_REMOVE, entry->removed);
        if (entry->hash != 0 && stale_counts(entry))
            purge_slots_add_simple(slots, entry, PURGE_STALE, entry->stale);
    }
    LIST_FOR_EACH (link, &log->purges.others) {
        const struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        purge_slots_add(slots, &other->filter, other->action, other->number);
    }
}

void purge_log_sum_up(struct purge_log *log, uint64_t oldest, size_t most,
                      struct purge_slots *slots) {
    bool cut = false;
    uint64_t grace = (uint64_t)PURGE_LOG_SECONDS * 1000000,
             past = clocks_microseconds(CLOCK_REALTIME) - grace;
    pthread_rwlock_wrlock(&log->lock);
    purge_log_forget(log, oldest < past ? oldest : past);
    if (slots_needed(log) > most)
        purge_log_forget(log, oldest);
    while (slots_needed(log) > most && log->purges.count + log->purges.other_count > 0) {
        purge_log_forget(log, middle(log));
        cut = true;
    }
    purge_log_write_all(log, slots);
    pthread_rwlock_unlock(&log->lock);
    if (cut)
        log_warn("disk: there are too many purges to store, so the older ones are replaced by one "
                 "purge of everything stored before them: purge by tag or in larger groups, or "
                 "raise disk.size");
}

/* Reading. */

struct texts {
    char *all[4]; /* each ends with a byte of 0 */
    size_t lengths[4];
};

static void release_texts(struct texts *texts) {
    for (unsigned i = 0; i < 4; i++)
        free(texts->all[i]);
}

static bool take_texts(struct texts *texts, struct slice bytes) {
    uint32_t lengths[4];
    uint64_t total = sizeof lengths;
    *texts = (struct texts){0};
    if (bytes.length < sizeof lengths)
        return false;
    memcpy(lengths, bytes.base, sizeof lengths);
    for (unsigned i = 0; i < 4; i++)
        total += lengths[i];
    if (total != bytes.length)
        return false;
    const char *at = bytes.base + sizeof lengths;
    for (unsigned i = 0; i < 4; at += lengths[i], i++) {
        texts->all[i] = slice_dup(slice_make(at, lengths[i]));
        texts->lengths[i] = lengths[i];
    }
    return true;
}

/* An expression that does not compile any more counts as if it matched everything. */
static void read_filter(struct purge_log *log, const struct purge_slot *slot,
                        const struct texts *texts) {
    struct regexes regex;
    char error[256], *expression = texts->all[3];
    struct object_filter filter = {
        .prefix = slice_make(texts->all[0], texts->lengths[0]),
        .host = slice_make(texts->all[1], texts->lengths[1]),
        .tag = slice_make(texts->all[2], texts->lengths[2]),
    };
    bool compiles = texts->lengths[3] > 0 && regex_check(expression, error, sizeof error);
    if (compiles) {
        regexes_compile(&regex, (char *[]){expression, NULL});
        filter.regex = &regex;
        filter.regex_text = expression;
    }
    enum purge_action action = purge_slot_action(slot);
    filter_table_drop_other(&log->purges, &filter, action, slot->number);
    filter_table_add(&log->purges, &filter, action, slot->number, 0);
    if (compiles)
        regexes_release(&regex);
}

static void read_texts(struct purge_log *log, const struct purge_slot *slot) {
    struct texts texts;
    if (take_texts(&texts, slice_make((const char *)(slot + 1), (size_t)slot->what)))
        read_filter(log, slot, &texts);
    release_texts(&texts);
}

static bool purge_log_is_purge(const struct purge_slot *slot) {
    return (slot->kind == PURGE_SLOT_SIMPLE || slot->kind == PURGE_SLOT_TEXTS) &&
           purge_slot_action(slot) != PURGE_NOTHING && slot->what != 0 &&
           slot->tag_bit < FILTER_TAG_BITS && slot->prefix_length <= FILTER_PREFIX_MOST;
}

static void read_one(struct purge_log *log, const struct purge_slot *slot) {
    if (slot->kind == PURGE_SLOT_GENERATION)
        keep_generation(log, slot->what, slot->number);
    else if (purge_log_is_purge(slot) && slot->kind == PURGE_SLOT_SIMPLE)
        filter_table_add_hash(&log->purges, slot->what, slot->prefix_length, slot->tag_bit,
                              purge_slot_action(slot), slot->number, 0);
    else if (purge_log_is_purge(slot))
        read_texts(log, slot);
}

void purge_log_read(struct purge_log *log, const struct purge_slot *slots, size_t count) {
    pthread_rwlock_wrlock(&log->lock);
    for (size_t i = 0; i < count; i++) {
        size_t texts = purge_slot_texts(&slots[i]);
        if (texts > count - i - 1)
            break;
        read_one(log, &slots[i]);
        i += texts;
    }
    pthread_rwlock_unlock(&log->lock);
}

void purge_log_raise(struct purge_log *log, uint64_t floor, uint64_t newest) {
    pthread_rwlock_wrlock(&log->lock);
    if (floor > purge_log_floor(log))
        atomic_store_explicit(&log->floor, floor, memory_order_release);
    if (newest > purge_log_newest(log))
        atomic_store_explicit(&log->newest, newest, memory_order_release);
    pthread_rwlock_unlock(&log->lock);
}

void purge_log_lose(struct purge_log *log) {
    uint64_t now = clocks_microseconds(CLOCK_REALTIME), next = purge_log_newest(log) + 1;
    now = now > next ? now : next;
    purge_log_raise(log, now, now);
}
