/*
 * An inspected transaction: what an operator looks at to understand what became of one request. It
 * has its steps with their times, its heads, the services that were asked, and its recorded exchanges
 * with them. record/inspections.h keeps them.
 *
 *     inspected_add_step(inspected, &step);
 *     inspected_set_head(inspected, INSPECTED_REQUEST, head);          masked, unless told otherwise
 *     inspected_add_service(inspected, &service);
 *     inspected_end(&inspected, &outcome);                             it may be evicted from now on
 *
 * Threads: the worker of the transaction calls these functions; others read copies of it, which
 * inspections_each and inspections_find make under the store's mutex. What a pointer here points to
 * never changes once it is set, so copies share it. Ownership: the store's. All texts are copied, and
 * shortened to INSPECTED_TEXT where nothing else bounds them.
 */
#ifndef RETORT_RECORD_INSPECTED_H
#define RETORT_RECORD_INSPECTED_H

#include "base/list.h"
#include "base/slice.h"
#include "record/recorded_exchange.h"

#include <stdatomic.h>

enum {
    INSPECTED_STEPS = 32,
    INSPECTED_SERVICES = 64,
    INSPECTED_TEXT = 1024,
    INSPECTED_URL = 64 << 10,
    INSPECTED_HEAD = 256 << 10,
};

/* Microseconds; `begun` counts from the start of the transaction. */
struct inspected_step {
    const char *name; /* constant */
    uint64_t begun, took;
    uint64_t waited;     /* of that, from when it first had to wait */
    const char *found;   /* what it found out; may be empty */
    const char *awaited; /* what it waited for; NULL: it did not */
};

struct inspected_service {
    const char *service, *point, *verdict;
    const char *error; /* NULL: none */
    unsigned milliseconds;
};

enum inspected_head {
    INSPECTED_REQUEST,  /* as the client sent it */
    INSPECTED_ORIGIN,   /* the response as the origin sent it */
    INSPECTED_RESPONSE, /* as it is stored or sent, without what each delivery adds */
    INSPECTED_HEADS
};

struct inspected_outcome {
    struct slice result;
    unsigned status;
    uint64_t bytes, took; /* sent; microseconds */
    const char *error;    /* NULL: none */
    struct slice user;    /* empty: nobody */
    bool aborted;         /* the client left before the end */
};

/* The bytes of a record (record/recorded_exchange.h), without its head. */
struct inspected_record {
    _Atomic unsigned references;
    size_t length;
    char *bytes; /* the memory; the content begins RECORDED_HEAD behind it */
};

struct inspections;

struct inspected {
    unsigned magic;
#define INSPECTED_MAGIC 0x1259ec7eu
    struct list_link link;
    struct inspections *store;
    unsigned references; /* the store's and those of readers */
    char id[SLICE_HEX + 1];
    uint64_t at; /* milliseconds since 1970 */
    bool active; /* its worker still has it */
    bool masked;
    char *client, *method, *url; /* may be NULL, when memory was exhausted */
    char *result, *error, *user;
    unsigned status;
    uint64_t bytes, took;
    bool aborted;
    struct inspected_step steps[INSPECTED_STEPS]; /* their texts are its own */
    struct inspected_service services[INSPECTED_SERVICES];
    struct slice heads[INSPECTED_HEADS];
    struct inspected_record *records[INSPECTED_RECORDS];
    unsigned step_count, service_count, record_count;
    unsigned left_out; /* records and heads for which there was no memory */
    size_t cost;       /* bytes that it takes */
};

void inspected_add_step(struct inspected *inspected, const struct inspected_step *step);
/* A head that was written, so its lines end with CRLF. The first of its kind is kept. */
void inspected_set_head(struct inspected *inspected, enum inspected_head which, struct slice head);
void inspected_add_service(struct inspected *inspected, const struct inspected_service *service);
void inspected_end(struct inspected **inspectedp, const struct inspected_outcome *outcome);

/* For readers. */
struct inspected_record *inspected_record_reference(struct inspected_record *record);
void inspected_record_release(struct inspected_record **recordp);
struct slice inspected_record_content(const struct inspected_record *record);

#endif
