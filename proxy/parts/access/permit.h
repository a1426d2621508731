/*
 * Decides about what is about to leave: to which address, under which name of TLS, and after services behind the
 * cache (struct access_class).
 *
 * Nobody is asked for credentials or redirected then: what would need that is denied.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ACCESS_PERMIT_H
#define RETORT_ACCESS_PERMIT_H

#include "access/settings.h"
#include "transaction/access.h"

extern const struct access_class access_by_name, access_by_address;

static inline const struct access_class *access_class_for(const struct settings *settings) {
    return accesses_of(settings)->asks_destination ? &access_by_address : &access_by_name;
}

#endif
