#include "base/eviction.h"

void eviction_init(struct eviction *eviction) {
    list_init(&eviction->entries);
    eviction->hand = &eviction->entries;
}

void eviction_enter(struct eviction *eviction, struct list_link *entry) {
    list_prepend(&eviction->entries, entry);
}

void eviction_leave(struct eviction *eviction, struct list_link *entry) {
    if (eviction->hand == entry)
        eviction->hand = entry->prev;
    list_remove(entry);
}

struct list_link *eviction_choose(struct eviction *eviction,
                                  bool (*take_use)(struct list_link *entry, void *arg), void *arg) {
    while (!list_empty(&eviction->entries)) {
        if (eviction->hand == &eviction->entries)
            eviction->hand = eviction->entries.prev;
        struct list_link *entry = eviction->hand;
        eviction->hand = entry->prev;
        if (!take_use(entry, arg))
            return entry;
    }
    return NULL;
}
