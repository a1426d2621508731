/*
 * What services inside the proxy do with the content of the cache (service/content.h), as far as others than the part that
 * carries it out know it: its functions (part.h, `content`), and the numbers that are shown.
 *
 *     struct content_numbers *numbers = content_numbers_new();         of one service, since the start of the process
 *     instance->content = class->open(settings, numbers);             after its start
 *     ... class->start(instance->content, &order) ...                 service/content.h
 *     class->close(&instance->content);                               after its stop
 *     content_numbers_report(numbers, &report);
 *     content_numbers_release(&numbers);
 *
 * At a reload the new instance has an account of its own and goes on with the same numbers. The operations of the old one go
 * on too.
 *
 * Threads: any, but for open and close, which one thread calls.
 */
#ifndef RETORT_ADAPT_CONTENT_NUMBERS_H
#define RETORT_ADAPT_CONTENT_NUMBERS_H

#include "adapt/service_report.h"
#include "service/content.h"

#include <stdatomic.h>

struct content_account;
struct content_numbers;

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

struct content_numbers *content_numbers_new(void);
struct content_numbers *content_numbers_reference(struct content_numbers *numbers);
void content_numbers_release(struct content_numbers **numbersp);
void content_numbers_report(const struct content_numbers *numbers, struct content_report *report);

#endif
