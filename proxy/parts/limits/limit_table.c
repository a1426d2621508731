#include "limits/limit_table.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SEARCH is how many of the entries that were unused longest are looked at for one that makes
 * room. */
enum { PARTS = 16, SEARCH = 32 };
enum { CLIENT_HEAD = 2 }; /* bytes before the address in a name */

/* Buckets of an entry: of bytes each way, then of requests. */
enum { REQUESTS = PACE_WAYS, BUCKETS };

struct limit_entry {
    struct table_entry entry; /* its key is the name; its hash is that of name and section */
    unsigned magic;
#define LIMIT_ENTRY_MAGIC 0x1e1747e0u
    struct list_link link; /* in `held` or `ages` */
    const void *section;
    unsigned active;
    bool at_limit; /* the last who asked was refused */
    uint64_t taken, refused;
    struct bucket buckets[BUCKETS];
    char name[];
};

struct limit_part {
    pthread_mutex_t lock;
    struct table table;
    struct list_link held; /* entries that are active */
    struct list_link ages; /* the others; the one used last is the first */
    size_t room;
};

struct limit_table {
    unsigned magic;
#define LIMIT_TABLE_MAGIC 0x1e17ab1eu
    struct limit_part parts[PARTS];
};

/* Names. The first byte says what the rest is: '4' and '6', as address_network_key writes them; 'u' and a
 * user; 'a' alone. */

struct slice limit_name_of_user(struct slice user, char *out) {
    size_t length = user.length < LIMIT_USER ? user.length : LIMIT_USER;
    out[0] = 'u';
    memcpy(out + 1, user.base, length);
    return slice_make(out, length + 1);
}

struct slice limit_name_of_all(char *out) {
    out[0] = 'a';
    return slice_make(out, 1);
}

static size_t prefix_text(struct slice name, char *out) {
    struct address address = {0};
    if (name.base[0] == '4') {
        address.length = sizeof address.v4;
        address.v4.sin_family = AF_INET;
        memcpy(&address.v4.sin_addr, name.base + CLIENT_HEAD, 4);
    } else {
        address.length = sizeof address.v6;
        address.v6.sin6_family = AF_INET6;
        memcpy(&address.v6.sin6_addr, name.base + CLIENT_HEAD, 16);
    }
    unsigned prefix = (unsigned char)name.base[1];
    size_t length = address_format_ip(&address, out);
    if (prefix < (name.base[0] == '4' ? 32 : 128))
        length += (size_t)sprintf(out + length, "/%u", prefix);
    return length;
}

size_t limit_name_text(struct slice name, char *out) {
    switch (name.base[0]) {
    case '4':
    case '6': return prefix_text(name, out);
    case 'u': return (size_t)sprintf(out, "user %.*s", (int)name.length - 1, name.base + 1);
    default: return (size_t)sprintf(out, "all");
    }
}

/* Parts. */

static void limit_part_init(struct limit_part *part, size_t room) {
    pthread_mutex_init(&part->lock, NULL);
    table_init(&part->table);
    part->room = room;
    list_init(&part->held);
    list_init(&part->ages);
}

struct limit_table *limit_table_new(size_t room) {
    struct limit_table *table;
    ALLOC_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++)
        limit_part_init(&table->parts[i], room / PARTS + 1);
    return table;
}

static struct limit_part *limit_part_of(struct limit_table *table, uint64_t hash) {
    return &table->parts[hash >> 60];
}

static void limit_entry_remove(struct limit_part *part, struct limit_entry *entry) {
    table_remove(&part->table, &entry->entry);
    list_remove(&entry->link);
    FREE_OBJ(entry);
}

void limit_table_free(struct limit_table **tablep) {
    struct limit_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct limit_part *part = &table->parts[i];
        list_splice(&part->ages, &part->held);
        while (!list_empty(&part->ages))
            limit_entry_remove(part, CONTAINER_OF(part->ages.next, struct limit_entry, link));
        table_release(&part->table);
        pthread_mutex_destroy(&part->lock);
    }
    FREE_OBJ(table);
}

/* The time until the last of the buckets is full. */
static uint64_t limit_entry_busy(const struct limit_entry *entry, uint64_t now) {
    uint64_t busy = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        if (entry->buckets[i].full_at > now && entry->buckets[i].full_at - now > busy)
            busy = entry->buckets[i].full_at - now;
    return busy;
}

/* Crowds: addresses of one network, which a single client may have. */

/* How many bytes such networks have, of IPv4 and of IPv6: the usual one, and a large one. */
enum { CROWDS = 2 };
static const unsigned char crowd_bytes[CROWDS][2] = {{3, 6}, {2, 4}};

static bool are_of_crowd(struct slice one, struct slice other, unsigned crowd) {
    size_t bytes = crowd_bytes[crowd][one.base[0] == '6'];
    return (one.base[0] == '4' || one.base[0] == '6') && one.length == other.length &&
           memcmp(one.base, other.base, CLIENT_HEAD + bytes) == 0;
}

/* Entries that were looked at, and that all have to stay. */
struct limit_looked {
    struct limit_entry *each[SEARCH];
    size_t count;
};

/* One of those that are more than half of them; NULL: there is no such crowd. Votes for different
 * networks cancel each other out, so it can only be that of the last vote standing. */
static struct limit_entry *find_crowd(const struct limit_looked *looked, unsigned crowd) {
    struct limit_entry *found = NULL;
    size_t votes = 0, members = 0;
    for (size_t i = 0; i < looked->count; i++) {
        struct limit_entry *entry = looked->each[i];
        if (votes == 0)
            found = entry;
        votes +=
            votes == 0 || are_of_crowd(entry->entry.key, found->entry.key, crowd) ? 1 : (size_t)-1;
    }
    for (size_t i = 0; i < looked->count; i++)
        members += are_of_crowd(looked->each[i]->entry.key, found->entry.key, crowd);
    return 2 * members > looked->count ? found : NULL;
}

/* One of a crowd that the newcomer is not of. NULL: there is none. */
static struct limit_entry *find_one_of_crowd(const struct limit_looked *looked,
                                             struct slice newcomer) {
    for (unsigned crowd = 0; crowd < CROWDS; crowd++) {
        struct limit_entry *found = find_crowd(looked, crowd);
        if (found != NULL && !are_of_crowd(found->entry.key, newcomer, crowd))
            return found;
    }
    return NULL;
}

/* Removes the entry that is needed least. Those that have to stay go to the front, so that the next
 * search sees others. False: all that were looked at have to stay. `newcomer`: who needs the room; empty:
 * nobody. */
static bool limit_part_drop_one(struct limit_part *part, struct slice newcomer, uint64_t now,
                                bool *evicted) {
    struct limit_looked looked = {.count = 0};
    struct limit_entry *least = NULL;
    uint64_t least_busy = UINT64_MAX;
    struct list_link *link = part->ages.prev, *previous;
    const struct list_link *end = &part->ages; /* or the first that went to the front */
    for (unsigned left = SEARCH; link != end && left > 0 && least_busy > 0; left--) {
        struct limit_entry *entry = CONTAINER_OF(link, struct limit_entry, link);
        uint64_t busy = limit_entry_busy(entry, now);
        previous = link->prev;
        if (entry->at_limit && busy > 0) {
            list_remove(link);
            list_prepend(&part->ages, link);
            if (looked.count == 0)
                end = link;
            looked.each[looked.count++] = entry;
        } else if (busy < least_busy) {
            least = entry;
            least_busy = busy;
        }
        link = previous;
    }
    if (least == NULL && looked.count == SEARCH && newcomer.length > 0) {
        least = find_one_of_crowd(&looked, newcomer);
        least_busy = UINT64_MAX;
    }
    if (least == NULL)
        return false;
    *evicted |= least_busy > 0;
    limit_entry_remove(part, least);
    return true;
}

void limit_table_set_room(struct limit_table *table, size_t room, uint64_t now) {
    bool evicted = false;
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct limit_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        part->room = room / PARTS + 1;
        while (part->table.count > part->room &&
               limit_part_drop_one(part, slice_make("", 0), now, &evicted))
            ;
        pthread_mutex_unlock(&part->lock);
    }
}

static uint64_t limit_hash(const struct limit_key *key) {
    return secret_hash(key->name) ^
           (uint64_t)(uintptr_t)key->section * UINT64_C(0x9e3779b97f4a7c15);
}

static struct limit_entry *limit_part_find(struct limit_part *part, const struct limit_key *key,
                                           uint64_t hash) {
    struct table_entry *found = table_find_hashed(&part->table, key->name, hash);
    for (; found != NULL; found = table_find_next(found)) {
        struct limit_entry *entry = CONTAINER_OF(found, struct limit_entry, entry);
        if (entry->section == key->section)
            return entry;
    }
    return NULL;
}

static struct limit_entry *limit_part_add(struct limit_part *part, const struct limit_key *key,
                                          uint64_t hash) {
    struct limit_entry *entry = xcalloc(1, sizeof *entry + key->name.length);
    entry->magic = LIMIT_ENTRY_MAGIC;
    entry->section = key->section;
    table_add_hashed(&part->table, &entry->entry, slice_copy(entry->name, key->name), hash);
    list_prepend(&part->ages, &entry->link);
    return entry;
}

static bool limit_entry_allows(struct limit_entry *entry, const struct limit_demand *demand,
                               uint64_t now, struct limit_verdict *verdict) {
    if (demand->most_active > 0 && entry->active >= demand->most_active)
        verdict->reason = LIMIT_ACTIVE;
    else if (demand->rate.interval > 0 &&
             !bucket_take(&entry->buckets[REQUESTS], &demand->rate, now, &verdict->wait))
        verdict->reason = LIMIT_RATE;
    return verdict->reason == LIMIT_NONE;
}

/* Puts the entry, which has just been used, where it belongs. */
static void limit_entry_move(struct limit_part *part, struct limit_entry *entry) {
    list_remove(&entry->link);
    list_prepend(entry->active > 0 ? &part->held : &part->ages, &entry->link);
}

static struct limit_entry *limit_part_take(struct limit_part *part, const struct limit_key *key,
                                           const struct limit_demand *demand, uint64_t hash,
                                           uint64_t now, struct limit_verdict *verdict) {
    struct limit_entry *entry = limit_part_find(part, key, hash);
    if (entry == NULL && part->table.count >= part->room &&
        !limit_part_drop_one(part, key->name, now, &verdict->evicted)) {
        verdict->reason = LIMIT_TABLE_FULL;
        return NULL;
    }
    if (entry == NULL)
        entry = limit_part_add(part, key, hash);
    entry->at_limit = !limit_entry_allows(entry, demand, now, verdict);
    if (entry->at_limit) {
        entry->refused++;
        limit_entry_move(part, entry);
        return NULL;
    }
    entry->taken++;
    entry->active++;
    limit_entry_move(part, entry);
    return entry;
}

struct limit_entry *limit_table_take(struct limit_table *table, const struct limit_key *key,
                                     const struct limit_demand *demand, uint64_t now,
                                     struct limit_verdict *verdict) {
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    uint64_t hash = limit_hash(key);
    struct limit_part *part = limit_part_of(table, hash);
    *verdict = (struct limit_verdict){LIMIT_NONE, 0, false};
    pthread_mutex_lock(&part->lock);
    struct limit_entry *entry = limit_part_take(part, key, demand, hash, now, verdict);
    pthread_mutex_unlock(&part->lock);
    return entry;
}

/* The part of an entry that the caller holds, locked. */
static struct limit_part *lock_part_of(struct limit_table *table, const struct limit_entry *entry) {
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    CHECK_OBJ(entry, LIMIT_ENTRY_MAGIC);
    struct limit_part *part = limit_part_of(table, entry->entry.hash);
    pthread_mutex_lock(&part->lock);
    return part;
}

void limit_table_leave(struct limit_table *table, struct limit_entry **entryp) {
    struct limit_entry *entry = *entryp;
    *entryp = NULL;
    if (entry == NULL)
        return;
    struct limit_part *part = lock_part_of(table, entry);
    ASSERT(entry->active > 0);
    if (--entry->active == 0)
        limit_entry_move(part, entry);
    pthread_mutex_unlock(&part->lock);
}

void limit_table_return(struct limit_table *table, struct limit_entry **entryp,
                        const struct limit_demand *demand) {
    struct limit_entry *entry = *entryp;
    struct limit_part *part = lock_part_of(table, entry);
    bucket_give_back(&entry->buckets[REQUESTS], demand->rate.interval);
    entry->taken--;
    pthread_mutex_unlock(&part->lock);
    limit_table_leave(table, entryp);
}

uint64_t limit_table_reserve(struct limit_table *table, struct limit_entry *entry,
                             enum pace_way way, uint64_t cost, uint64_t credit, uint64_t now) {
    struct limit_part *part = lock_part_of(table, entry);
    uint64_t at = bucket_reserve(&entry->buckets[way], cost, credit, now);
    pthread_mutex_unlock(&part->lock);
    return at;
}

void limit_table_give_back(struct limit_table *table, struct limit_entry *entry, enum pace_way way,
                           uint64_t cost) {
    struct limit_part *part = lock_part_of(table, entry);
    bucket_give_back(&entry->buckets[way], cost);
    pthread_mutex_unlock(&part->lock);
}

/* Lists. */

static void limit_entry_report(const struct limit_entry *entry, uint64_t now, char *text,
                               struct limit_report *report) {
    limit_name_text(entry->entry.key, text);
    *report = (struct limit_report){
        .section = entry->section,
        .name = text,
        .active = entry->active,
        .taken = entry->taken,
        .refused = entry->refused,
    };
    for (unsigned i = 0; i < BUCKETS; i++)
        report->busy[i] = entry->buckets[i].full_at > now ? entry->buckets[i].full_at - now : 0;
}

/* False: the caller has seen enough. */
static bool list_entries(struct list_link *list, uint64_t now,
                         bool (*each)(void *arg, const struct limit_report *report), void *arg) {
    char text[LIMIT_NAME_TEXT];
    LIST_FOR_EACH (link, list) {
        struct limit_report report;
        limit_entry_report(CONTAINER_OF(link, struct limit_entry, link), now, text, &report);
        if (!each(arg, &report))
            return false;
    }
    return true;
}

void limit_table_each(struct limit_table *table, uint64_t now,
                      bool (*each)(void *arg, const struct limit_report *report), void *arg) {
    bool more = true;
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS && more; i++) {
        struct limit_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        more =
            list_entries(&part->held, now, each, arg) && list_entries(&part->ages, now, each, arg);
        pthread_mutex_unlock(&part->lock);
    }
}

/* Somebody holds an active entry, so it stays, as if nothing had been taken. */
static void limit_entry_clear(struct limit_part *part, struct limit_entry *entry) {
    if (entry->active == 0) {
        limit_entry_remove(part, entry);
        return;
    }
    entry->taken = entry->refused = 0;
    entry->at_limit = false;
    memset(entry->buckets, 0, sizeof entry->buckets);
}

static size_t clear_entries(struct limit_part *part, struct list_link *list, uint64_t now,
                            bool (*wanted)(void *arg, const struct limit_report *report),
                            void *arg) {
    char text[LIMIT_NAME_TEXT];
    size_t cleared = 0;
    LIST_FOR_EACH_SAFE (link, next, list) {
        struct limit_entry *entry = CONTAINER_OF(link, struct limit_entry, link);
        struct limit_report report;
        limit_entry_report(entry, now, text, &report);
        if (!wanted(arg, &report))
            continue;
        limit_entry_clear(part, entry);
        cleared++;
    }
    return cleared;
}

size_t limit_table_clear(struct limit_table *table, uint64_t now,
                         bool (*wanted)(void *arg, const struct limit_report *report), void *arg) {
    size_t cleared = 0;
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct limit_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        cleared += clear_entries(part, &part->held, now, wanted, arg);
        cleared += clear_entries(part, &part->ages, now, wanted, arg);
        pthread_mutex_unlock(&part->lock);
    }
    return cleared;
}

size_t limit_table_count(struct limit_table *table) {
    size_t count = 0;
    CHECK_OBJ(table, LIMIT_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        pthread_mutex_lock(&table->parts[i].lock);
        count += table->parts[i].table.count;
        pthread_mutex_unlock(&table->parts[i].lock);
    }
    return count;
}
