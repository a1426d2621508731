#include "client/listen_set.h"

struct listen_set *listen_set_new(struct settings *settings) {
    struct listen_set *set;
    ALLOC_OBJ(set, LISTEN_SET_MAGIC);
    set->references = 1;
    set->settings = settings_reference(settings);
    return set;
}

void listen_set_free(struct listen_set *set) {
    CHECK_OBJ(set, LISTEN_SET_MAGIC);
    ASSERT(set->references == 0);
    settings_release(&set->settings);
    FREE_OBJ(set);
}

const struct listen_settings *listen_set_find(const struct listen_set *set,
                                              const struct address *address) {
    const struct settings *settings = set->settings;
    for (size_t i = 0; i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, address))
            return &settings->listens[i];
    return NULL;
}
