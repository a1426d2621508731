#include "base/table.h"

#include "base/assert.h"

enum { CHAINS_FIRST = 16 };

static void table_make_chains(struct table *table, size_t count) {
    table->chains = xcalloc(count, sizeof *table->chains);
    table->mask = count - 1;
}

void table_init(struct table *table) {
    table_make_chains(table, CHAINS_FIRST);
    table->count = 0;
}

void table_release(struct table *table) {
    free(table->chains);
    table->chains = NULL;
}

static void table_put(struct table *table, struct table_entry *entry) {
    struct table_entry **chain = &table->chains[entry->hash & table->mask];
    entry->next = *chain;
    *chain = entry;
}

static void table_grow(struct table *table) {
    struct table_entry **old = table->chains;
    size_t old_count = table->mask + 1;
    table_make_chains(table, old_count * 2);
    for (size_t i = 0; i < old_count; i++)
        for (struct table_entry *entry = old[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            table_put(table, entry);
        }
    free(old);
}

void table_add_hashed(struct table *table, struct table_entry *entry, struct slice key,
                      uint64_t hash) {
    if (table->count++ > table->mask)
        table_grow(table);
    entry->key = key;
    entry->hash = hash;
    table_put(table, entry);
}

void table_remove(struct table *table, struct table_entry *entry) {
    struct table_entry **at = &table->chains[entry->hash & table->mask];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    table->count--;
}

struct table_entry *table_next(const struct table *table, const struct table_entry *entry) {
    if (entry != NULL && entry->next != NULL)
        return entry->next;
    for (size_t i = entry == NULL ? 0 : (entry->hash & table->mask) + 1; i <= table->mask; i++)
        if (table->chains[i] != NULL)
            return table->chains[i];
    return NULL;
}
