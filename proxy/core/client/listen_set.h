/*
 * The listeners of one snapshot of the settings, held by the exchanges that began under it.
 *
 *     struct listen_set *set = listen_set_new(net->settings, tickets);
 *     const struct listen_settings *listen = listen_set_find(set, &address);     NULL: removed
 *     exchange->listen_set = listen_set_reference(set);
 *     ...
 *     listen_set_release(&exchange->listen_set);
 *
 * A set holds a reference on its snapshot, so that a reload takes no listener's settings from under
 * a request. Each worker has sets of its own: their count is a plain integer, and a request writes
 * to no memory that other workers write to as well.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_LISTEN_SET_H
#define RETORT_CLIENT_LISTEN_SET_H

#include "base/assert.h"
#include "settings/settings.h"

struct listen_set {
    unsigned magic;
#define LISTEN_SET_MAGIC 0x115e5e70u
    unsigned references;
    struct settings *settings;   /* referenced */
    struct tls_server **servers; /* one a listener; NULL: it speaks clear text */
};

/* `tickets`: see tls/ticket_keys.h. */
struct listen_set *listen_set_new(struct settings *settings, struct ticket_keys *tickets);
void listen_set_free(struct listen_set *set);
/* The settings of the listener at that address; NULL: the snapshot has none. */
const struct listen_settings *listen_set_find(const struct listen_set *set,
                                              const struct address *address);

/* The TLS server of a listener of the set; NULL: it speaks clear text, or `listen` is NULL. */
struct tls_server *listen_set_server(const struct listen_set *set,
                                     const struct listen_settings *listen);

static inline struct listen_set *listen_set_reference(struct listen_set *set) {
    set->references++;
    return set;
}

static inline void listen_set_release(struct listen_set **setp) {
    struct listen_set *set = *setp;
    *setp = NULL;
    if (set != NULL && --set->references == 0)
        listen_set_free(set);
}

#endif
