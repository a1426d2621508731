#include "cache/filter_table.h"

#include "base/assert.h"
#include "cache/name.h"

enum { FIRST_CAPACITY = 64 };

/* Different kinds of text with the same bytes are different filters. */
#define TAG_KIND    UINT64_C(0x9e3779b97f4a7c15)
#define HOST_KIND   UINT64_C(0xc2b2ae3d27d4eb4f)
#define PREFIX_KIND UINT64_C(0x165667b19e3779f9)

void filter_table_init(struct filter_table *table) {
    *table = (struct filter_table){0};
    list_init(&table->others);
}

void filter_table_release(struct filter_table *table) {
    LIST_FOR_EACH_SAFE (link, next, &table->others) {
        struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        CHECK_OBJ(other, FILTER_OTHER_MAGIC);
        object_filter_release(&other->filter);
        FREE_OBJ(other);
    }
    free(table->entries);
}

static uint64_t filter_table_hash_of(struct slice text, uint64_t kind) {
    uint64_t hash = cache_hash(text) ^ kind;
    return hash == 0 ? 1 : hash;
}

static uint64_t hash_of_host(struct slice host) {
    char lower[256];
    for (size_t i = 0; i < host.length; i++)
        lower[i] = (char)ascii_lower((unsigned char)host.base[i]);
    return filter_table_hash_of(slice_make(lower, host.length), HOST_KIND);
}

uint64_t filter_hash(const struct object_filter *filter, size_t *prefix_length, int *tag_bit) {
    bool tag = filter->tag.length > 0, host = filter->host.length > 0;
    size_t prefix = filter->prefix.length;
    *prefix_length = 0;
    *tag_bit = -1;
    if (filter->regex != NULL || tag + host + (prefix > 0) != 1 || filter->host.length > 255 ||
        prefix > FILTER_PREFIX_MOST)
        return 0;
    if (host)
        return hash_of_host(filter->host);
    if (tag)
        *tag_bit = (int)object_tag_bit(filter->tag);
    else
        *prefix_length = prefix;
    return tag ? filter_table_hash_of(filter->tag, TAG_KIND)
               : filter_table_hash_of(filter->prefix, PREFIX_KIND);
}

/* The entry that has the hash, or the free entry where it belongs. */
static struct filter_entry *filter_table_place_of(const struct filter_table *table, uint64_t hash) {
    size_t at = hash & (table->capacity - 1);
    while (table->entries[at].hash != 0 && table->entries[at].hash != hash)
        at = (at + 1) & (table->capacity - 1);
    return &table->entries[at];
}

static void filter_table_grow(struct filter_table *table) {
    struct filter_entry *old = table->entries;
    size_t old_capacity = table->capacity;
    table->capacity = old_capacity == 0 ? FIRST_CAPACITY : 2 * old_capacity;
    table->entries = xcalloc(table->capacity, sizeof *table->entries);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].hash != 0) {
            struct filter_entry *place = filter_table_place_of(table, old[i].hash);
            place->hash = old[i].hash;
            place->removed = old[i].removed;
            place->stale = old[i].stale;
            place->prefix_length = old[i].prefix_length;
            place->tag_bit = old[i].tag_bit;
            atomic_init(&place->hits, atomic_load(&old[i].hits));
        }
    free(old);
}

static void lift(uint64_t *number, uint64_t to) {
    *number = *number < to ? to : *number;
}

void filter_table_restart(struct filter_table *table, uint64_t hash, uint64_t keep_after) {
    if (table->capacity == 0)
        return;
    struct filter_entry *entry = filter_table_place_of(table, hash);
    if (entry->removed <= keep_after && entry->stale <= keep_after)
        atomic_store(&entry->hits, 0);
}

static struct filter_entry *filter_table_add_entry(struct filter_table *table, uint64_t hash,
                                                   enum purge_action action, uint64_t number,
                                                   uint64_t keep_after) {
    if (4 * (table->count + 1) > 3 * table->capacity)
        filter_table_grow(table);
    struct filter_entry *entry = filter_table_place_of(table, hash);
    table->count += entry->hash == 0;
    entry->hash = hash;
    filter_table_restart(table, hash, keep_after);
    lift(action == PURGE_REMOVE ? &entry->removed : &entry->stale, number);
    return entry;
}

void filter_table_add_hash(struct filter_table *table, uint64_t hash, size_t prefix_length,
                           int tag_bit, enum purge_action action, uint64_t number,
                           uint64_t keep_after) {
    struct filter_entry *entry = filter_table_add_entry(table, hash, action, number, keep_after);
    entry->prefix_length = (uint16_t)prefix_length;
    entry->tag_bit = (int8_t)tag_bit;
    lift(&table->newest, number);
    if (tag_bit >= 0) {
        lift(&table->newest_tag[tag_bit], number);
    } else if (prefix_length > 0) {
        lift(&table->newest_prefix, number);
        table->lengths[prefix_length / 64] |= UINT64_C(1) << prefix_length % 64;
    } else {
        lift(&table->newest_host, number);
    }
}

/* The last event whose number is not above `number`; the list's head: there is none. */
static struct list_link *place_of_other(struct filter_table *table, uint64_t number) {
    struct list_link *link = table->others.prev;
    while (link != &table->others && CONTAINER_OF(link, struct filter_other, link)->number > number)
        link = link->prev;
    return link;
}

static void add_other(struct filter_table *table, const struct object_filter *filter,
                      enum purge_action action, uint64_t number) {
    struct filter_other *other;
    struct list_link *before = place_of_other(table, number);
    if (before != &table->others &&
        CONTAINER_OF(before, struct filter_other, link)->number == number)
        return;
    ALLOC_OBJ(other, FILTER_OTHER_MAGIC);
    other->filter = object_filter_copy(filter);
    other->action = action;
    other->number = number;
    list_insert_before(before->next, &other->link);
    table->other_count++;
    lift(&table->newest_other, number);
    lift(&table->newest, number);
}

static void drop_other(struct filter_table *table, struct filter_other *other) {
    list_remove(&other->link);
    table->other_count--;
    object_filter_release(&other->filter);
    FREE_OBJ(other);
}

static bool same_filter(const struct object_filter *a, const struct object_filter *b) {
    bool same_regex = a->regex_text == NULL || b->regex_text == NULL
                          ? a->regex_text == b->regex_text
                          : strcmp(a->regex_text, b->regex_text) == 0;
    return same_regex && slice_equal(a->prefix, b->prefix) && slice_equal(a->host, b->host) &&
           slice_equal(a->tag, b->tag);
}

void filter_table_drop_other(struct filter_table *table, const struct object_filter *filter,
                             enum purge_action action, uint64_t number) {
    LIST_FOR_EACH_SAFE (link, next, &table->others) {
        struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        CHECK_OBJ(other, FILTER_OTHER_MAGIC);
        if (other->number < number && other->action <= action &&
            same_filter(&other->filter, filter))
            drop_other(table, other);
    }
}

/* Copies an event whose number is above `until`, and returns 0. Any other event is forgotten, and
 * its number is returned. */
static uint64_t move_event(struct filter_table *table, const struct filter_entry *entry,
                           enum purge_action action, uint64_t until) {
    uint64_t number = action == PURGE_REMOVE ? entry->removed : entry->stale;
    if (number <= until)
        return number;
    filter_table_add_hash(table, entry->hash, entry->prefix_length, entry->tag_bit, action, number,
                          0);
    return 0;
}

uint64_t filter_table_forget(struct filter_table *table, uint64_t until) {
    struct filter_table left;
    uint64_t newest = 0;
    filter_table_init(&left);
    for (size_t i = 0; i < table->capacity; i++) {
        const struct filter_entry *entry = &table->entries[i];
        if (entry->hash == 0)
            continue;
        lift(&newest, move_event(&left, entry, PURGE_REMOVE, until));
        lift(&newest, move_event(&left, entry, PURGE_STALE, until));
    }
    free(table->entries);
    table->entries = left.entries;
    table->capacity = left.capacity;
    table->count = left.count;
    memcpy(table->newest_tag, left.newest_tag, sizeof table->newest_tag);
    memcpy(table->lengths, left.lengths, sizeof table->lengths);
    LIST_FOR_EACH_SAFE (link, next, &table->others) {
        struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        CHECK_OBJ(other, FILTER_OTHER_MAGIC);
        if (other->number > until)
            break;
        lift(&newest, other->number);
        drop_other(table, other);
    }
    return newest;
}

void filter_table_add(struct filter_table *table, const struct object_filter *filter,
                      enum purge_action action, uint64_t number, uint64_t keep_after) {
    size_t prefix_length;
    int tag_bit;
    uint64_t hash = filter_hash(filter, &prefix_length, &tag_bit);
    if (hash == 0)
        add_other(table, filter, action, number);
    else
        filter_table_add_hash(table, hash, prefix_length, tag_bit, action, number, keep_after);
}

struct search {
    const struct filter_table *table;
    uint64_t after;
    struct filter_found found;
};

static void filter_table_take(struct search *search, enum purge_action action, uint64_t hash,
                              uint64_t number) {
    if (action > search->found.action)
        search->found = (struct filter_found){action, hash, number};
}

static void filter_table_look_up(struct search *search, uint64_t hash) {
    if (search->table->capacity == 0)
        return;
    struct filter_entry *entry = filter_table_place_of(search->table, hash);
    if (entry->hash == 0)
        return;
    if (entry->removed > search->after)
        filter_table_take(search, PURGE_REMOVE, hash, entry->removed);
    else if (entry->stale > search->after)
        filter_table_take(search, PURGE_STALE, hash, entry->stale);
}

static void see_tag(void *arg, struct slice tag) {
    filter_table_look_up(arg, filter_table_hash_of(tag, TAG_KIND));
}

static bool has_newer_tag(const struct filter_table *table, const struct object *object,
                          uint64_t after) {
    for (uint32_t bits = object->tags; bits != 0; bits &= bits - 1)
        if (table->newest_tag[__builtin_ctz(bits)] > after)
            return true;
    return false;
}

static void look_up_prefixes(struct search *search, struct slice url) {
    for (size_t i = 0; i < sizeof search->table->lengths / sizeof search->table->lengths[0]; i++)
        for (uint64_t bits = search->table->lengths[i]; bits != 0; bits &= bits - 1) {
            size_t length = 64 * i + (size_t)__builtin_ctzll(bits);
            if (length > url.length)
                return;
            filter_table_look_up(search,
                                 filter_table_hash_of(slice_make(url.base, length), PREFIX_KIND));
        }
}

/* Goes from the newest event to older ones, and stops at the first that is not above
 * search->after. */
static void look_through_others(struct search *search, const struct object *object) {
    const struct list_link *all = &search->table->others;
    for (struct list_link *link = all->prev; link != all; link = link->prev) {
        struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        CHECK_OBJ(other, FILTER_OTHER_MAGIC);
        if (other->number <= search->after || search->found.action == PURGE_REMOVE)
            return;
        if (other->action > search->found.action && object_filter_fits(&other->filter, object))
            filter_table_take(search, other->action, 0, other->number);
    }
}

struct filter_found filter_table_find(const struct filter_table *table, const struct object *object,
                                      uint64_t after) {
    struct search search = {.table = table, .after = after};
    if (table->newest <= after)
        return search.found;
    if (has_newer_tag(table, object, after))
        object_each_tag(object, see_tag, &search);
    if (table->newest_host > after)
        filter_table_look_up(&search, hash_of_host(object_filter_host(object_url(object))));
    if (table->newest_prefix > after)
        look_up_prefixes(&search, object_url(object));
    if (table->newest_other > after)
        look_through_others(&search, object);
    return search.found;
}

/* May one of the filters that are not simple concern the object? See object_filter_may_fit. */
static bool may_find_other(const struct filter_table *table, const struct object *object,
                           uint64_t after) {
    for (struct list_link *link = table->others.prev; link != &table->others; link = link->prev) {
        const struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
        if (other->number <= after)
            return false;
        if (object_filter_may_fit(&other->filter, object))
            return true;
    }
    return false;
}

bool filter_table_may_find(const struct filter_table *table, const struct object *object,
                           uint64_t after) {
    struct search search = {.table = table, .after = after};
    if (table->newest <= after)
        return false;
    if (has_newer_tag(table, object, after))
        return true;
    if (table->newest_host > after)
        filter_table_look_up(&search, hash_of_host(object_filter_host(object_url(object))));
    if (table->newest_prefix > after)
        look_up_prefixes(&search, object_url(object));
    return search.found.action != PURGE_NOTHING ||
           (table->newest_other > after && may_find_other(table, object, after));
}

_Atomic uint32_t *filter_table_hits(struct filter_table *table, uint64_t hash, uint64_t number) {
    if (hash != 0) {
        struct filter_entry *entry =
            table->capacity == 0 ? NULL : filter_table_place_of(table, hash);
        return entry == NULL || entry->hash == 0 ? NULL : &entry->hits;
    }
    struct list_link *link = place_of_other(table, number);
    struct filter_other *other = CONTAINER_OF(link, struct filter_other, link);
    return link == &table->others || other->number != number ? NULL : &other->hits;
}

/* Bytes: a longer URL is not searched for an expression under a lock. */
enum { QUICK_MOST = 512 };

/* The URL is not parsed, which would take ten times as long. It is normalised, so its host ends at
 * a character that no host contains. */
static bool object_filter_has_host(struct slice url, struct slice host) {
    const char *colon = memchr(url.base, ':', url.length);
    size_t before = colon == NULL ? url.length : (size_t)(colon - url.base) + 3; /* "://" */
    if (before >= url.length)
        return false;
    bool bracket = url.base[before] == '[';
    struct slice rest = slice_make(url.base + before + bracket, url.length - before - bracket);
    if (!slice_starts_with_nocase(rest, host))
        return false;
    size_t end = 0;
    while (end < rest.length && strchr(bracket ? "]" : "/?:", rest.base[end]) == NULL)
        end++;
    return end == host.length;
}

struct slice object_filter_host(struct slice url) {
    const char *colon = memchr(url.base, ':', url.length);
    size_t begin = colon == NULL ? url.length : (size_t)(colon - url.base) + 3, end; /* "://" */
    if (begin >= url.length)
        return slice_make(url.base, 0);
    bool bracket = url.base[begin] == '[';
    begin += bracket;
    for (end = begin; end < url.length && strchr(bracket ? "]" : "/?:", url.base[end]) == NULL;)
        end++;
    return slice_make(url.base + begin, end - begin < 256 ? end - begin : 0);
}

static bool url_fits(const struct object_filter *filter, struct slice url) {
    return slice_starts_with(url, filter->prefix) &&
           (filter->host.length == 0 || object_filter_has_host(url, filter->host));
}

bool object_filter_may_fit(const struct object_filter *filter, const struct object *object) {
    struct slice url = object_url(object);
    return (filter->tag.length == 0 || object_may_have_tag(object, filter->tag)) &&
           url_fits(filter, url) &&
           (filter->regex == NULL || url.length > QUICK_MOST ||
            regexes_may_find(filter->regex, url));
}

bool object_filter_fits(const struct object_filter *filter, const struct object *object) {
    struct slice url = object_url(object);
    return url_fits(filter, url) &&
           (filter->tag.length == 0 || object_has_tag(object, filter->tag)) &&
           (filter->regex == NULL || regexes_find(filter->regex, url));
}

static struct slice object_filter_copy_text(struct slice text) {
    return slice_make(text.length == 0 ? NULL : slice_dup(text), text.length);
}

struct object_filter object_filter_copy(const struct object_filter *filter) {
    struct object_filter made = {
        .prefix = object_filter_copy_text(filter->prefix),
        .host = object_filter_copy_text(filter->host),
        .tag = object_filter_copy_text(filter->tag),
    };
    if (filter->regex != NULL) {
        struct regexes *regex = xcalloc(1, sizeof *regex);
        char *text = xstrdup(filter->regex_text);
        regexes_compile(regex, (char *[]){text, NULL});
        made.regex = regex;
        made.regex_text = text;
    }
    return made;
}

void object_filter_release(struct object_filter *filter) {
    free((char *)filter->prefix.base);
    free((char *)filter->host.base);
    free((char *)filter->tag.base);
    if (filter->regex != NULL)
        regexes_release((struct regexes *)filter->regex);
    free((struct regexes *)filter->regex);
    free((char *)filter->regex_text);
    *filter = (struct object_filter){0};
}
