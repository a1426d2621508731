#include "match/map_table.h"

#include "base/assert.h"
#include "match/name_table.h"

#include <stdlib.h>

/* The maps of a host stand in a row, in the order of their paths. */
struct map_entry {
    struct slice host, path; /* host "": any */
    size_t number;
    const struct map_entry *shorter; /* the longest path that this one begins with; NULL: none */
};

/* The maps of one host. */
struct map_group {
    const struct map_entry *entries;
    size_t count;
};

struct map_table {
    unsigned magic;
#define MAP_TABLE_MAGIC 0x4d415054u
    struct map_entry *entries;
    size_t count, capacity;
    struct map_group *groups;
    size_t group_count;
    struct name_table hosts; /* a host has the number of its group */
    struct map_group any;
};

static int map_table_compare(struct slice a, struct slice b) {
    size_t least = a.length < b.length ? a.length : b.length;
    int difference = least == 0 ? 0 : memcmp(a.base, b.base, least);
    return difference != 0 ? difference : (a.length > b.length) - (a.length < b.length);
}

static int map_table_compare_entries(const void *a, const void *b) {
    const struct map_entry *x = a, *y = b;
    int by_host = map_table_compare(x->host, y->host);
    return by_host != 0 ? by_host : map_table_compare(x->path, y->path);
}

/* All paths that this path begins with stand before it, and each of them begins with the
 * shorter ones. */
static void find_shorter(struct map_entry *entry) {
    const struct map_entry *candidate = entry - 1;
    while (candidate != NULL && !slice_starts_with(entry->path, candidate->path))
        candidate = candidate->shorter;
    entry->shorter = candidate;
}

static void make_groups(struct map_table *table) {
    struct map_group *group = NULL;
    for (size_t i = 0; i < table->count; i++) {
        struct map_entry *entry = &table->entries[i];
        if (group != NULL && slice_equal(group->entries->host, entry->host)) {
            group->count++;
            find_shorter(entry);
            continue;
        }
        group = entry->host.length == 0 ? &table->any : &table->groups[table->group_count];
        *group = (struct map_group){entry, 1};
        if (group != &table->any)
            name_table_add(&table->hosts, entry->host, (uint32_t)table->group_count++);
    }
}

struct map_table *map_table_new(void) {
    struct map_table *table;
    ALLOC_OBJ(table, MAP_TABLE_MAGIC);
    return table;
}

void map_table_add(struct map_table *table, struct slice host, struct slice path, size_t number) {
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    ASSERT(table->groups == NULL);
    if (table->count == table->capacity) {
        table->capacity = table->capacity == 0 ? 16 : table->capacity * 2;
        table->entries = xrealloc(table->entries, table->capacity * sizeof *table->entries);
    }
    table->entries[table->count++] =
        (struct map_entry){.host = host, .path = path, .number = number};
}

void map_table_seal(struct map_table *table) {
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    ASSERT(table->groups == NULL);
    table->groups = xcalloc(table->count + 1, sizeof *table->groups);
    if (table->count > 0)
        qsort(table->entries, table->count, sizeof *table->entries, map_table_compare_entries);
    make_groups(table);
    name_table_seal(&table->hosts);
}

void map_table_free(struct map_table **tablep) {
    struct map_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    name_table_release(&table->hosts);
    free(table->groups);
    free(table->entries);
    FREE_OBJ(table);
}

/* An entry whose path is a beginning of `path` stands at or before the place of `path` itself. */
static const struct map_entry *find_in(const struct map_group *group, struct slice path) {
    size_t from = 0, to = group->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (map_table_compare(group->entries[middle].path, path) <= 0)
            from = middle + 1;
        else
            to = middle;
    }
    const struct map_entry *entry = from == 0 ? NULL : &group->entries[from - 1];
    while (entry != NULL && !slice_starts_with(path, entry->path))
        entry = entry->shorter;
    return entry;
}

static const struct map_entry *find_by_host(const struct map_table *table, struct slice host,
                                            struct slice path) {
    struct numbers found = name_table_find(&table->hosts, host);
    return found.count == 0 ? NULL : find_in(&table->groups[found.each[0]], path);
}

static struct slice without_port(struct slice host) {
    const char *bracket = host.length > 0 ? memchr(host.base, ']', host.length) : NULL;
    const char *from = bracket != NULL ? bracket : host.base;
    size_t rest = host.length - (size_t)(from - host.base);
    const char *colon = host.length > 0 ? memchr(from, ':', rest) : NULL;
    return colon == NULL ? host : slice_make(host.base, (size_t)(colon - host.base));
}

size_t map_table_find(const struct map_table *table, struct slice host, struct slice path) {
    CHECK_OBJ(table, MAP_TABLE_MAGIC);
    const struct map_entry *entry = NULL;
    if (table->group_count > 0) {
        struct slice name = without_port(host);
        entry = find_by_host(table, host, path);
        const struct map_entry *other =
            name.length == host.length ? NULL : find_by_host(table, name, path);
        if (entry == NULL || (other != NULL && other->path.length > entry->path.length))
            entry = other;
    }
    if (entry == NULL)
        entry = find_in(&table->any, path);
    return entry == NULL ? MAP_TABLE_NONE : entry->number;
}
