/*
 * What services inside the proxy do with the content of the cache (service/content.h), as far as others than the part that
 * carries it out know it: its functions (part.h, `content`), and the numbers that are shown.
 *
 *     struct content_numbers *numbers = content_numbers_new();         of one service, since the start of the process
 *     instance->content = class->open(settings, numbers);             after its start
 *     ... class->start(instance->content, &order) ...                 service/content.h
 *     class->close(&instance->content);                               after its stop
 *     content_numbers_release(&numbers);
 *
 * At a reload the new instance has an account of its own and goes on with the same numbers. The operations of the old one go
 * on too.
 *
 * Threads: any, but for open and close, which one thread calls.
 */
#ifndef RETORT_CACHE_CONTENT_NUMBERS_H
#define RETORT_CACHE_CONTENT_NUMBERS_H

#include "base/assert.h"
#include "service/content.h"

#include <stdatomic.h>

struct content_account;
struct content_numbers;
struct service_settings;

struct content_class {
    /* Takes a reference on the numbers. NULL: there is no cache, as when a configuration is only tested. */
    struct content_account *(*open)(const struct service_settings *settings,
                                    struct content_numbers *numbers);
    /* NULL: the service has as many as it may, or the machine has no more descriptors. */
    struct service_content *(*start)(struct content_account *account,
                                     const struct service_content_order *order);
    /* NULL does nothing. */
    void (*close)(struct content_account **accountp);
};

struct content_numbers {
    unsigned magic;
#define CONTENT_NUMBERS_MAGIC 0xc0470045u
    _Atomic unsigned references;
    _Atomic uint64_t started, refused, failed, fetched, injected_bytes, read_bytes;
    _Atomic uint64_t open, held_bytes; /* now */
};

static inline struct content_numbers *content_numbers_new(void) {
    struct content_numbers *numbers;
    ALLOC_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    atomic_init(&numbers->references, 1);
    return numbers;
}

static inline struct content_numbers *content_numbers_reference(struct content_numbers *numbers) {
    CHECK_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    atomic_fetch_add(&numbers->references, 1);
    return numbers;
}

static inline void content_numbers_release(struct content_numbers **numbersp) {
    struct content_numbers *numbers = *numbersp;
    *numbersp = NULL;
    CHECK_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    if (atomic_fetch_sub(&numbers->references, 1) == 1)
        FREE_OBJ(numbers);
}

#endif
