/*
 * An operation of a service on the content of the cache, on the host's side of
 * common/service/content.h.
 *
 *     operation = content_operation_new(account, order);
 *     content_operation_queue(operation);             the thread works on it (content/executor.h)
 *     ...
 *     content_operation_end(operation, SERVICE_CONTENT_DONE, "");
 *
 * It is the service's until that closes it. While the thread or a worker has it (CONTENT_BUSY), a
 * close only marks it, and the end frees it.
 *
 * Threads: the stage, and what belongs to it, is under the room's lock. What the thread or a worker
 * works with is theirs while the operation is busy; what the service gives is the service's before.
 */
#ifndef RETORT_CONTENT_OPERATION_H
#define RETORT_CONTENT_OPERATION_H

#include "base/arena.h"
#include "content/account.h"

enum { CONTENT_PART = 64 * 1024, CONTENT_URL_MOST = 64 * 1024, CONTENT_HEAD_MOST = 64 * 1024 };

enum content_stage {
    CONTENT_IDLE, /* the service has it to itself */
    CONTENT_QUEUED,
    CONTENT_BUSY,
};

struct content_fetch;

struct content_operation {
    struct service_content base;
    unsigned magic;
#define CONTENT_OPERATION_MAGIC 0xc0470047u
    struct content_account *account;
    struct list_link link, turn; /* of the account */
    enum content_stage stage;
    bool closed;
    enum service_content_kind kind;
    bool pinned, whole;
    unsigned variant;
    int64_t seconds;
    uint64_t length;
    struct arena arena;
    struct slice url, head_text;          /* normalised; as given */
    struct service_content_answer result; /* what base.answer points to later */
    char why[512];
    size_t held;
    struct body *body; /* of inject, while it is written */
    uint64_t given;
    /* Of read. */
    struct object *object; /* referenced; NULL: nothing more is read */
    uint64_t position;
    char *part;
    size_t part_begin, part_end;
    bool broken;
    struct content_fetch *fetch; /* of fetch, while it is busy */
};

/* The functions of operations for services; `start` is the host's. */
extern const struct service_content_calls content_operation_calls;

/* Under the lock. NULL: there is no descriptor. */
struct content_operation *content_operation_new(struct content_account *account,
                                                const struct service_content_order *order);
/* Under the lock. The thread gets it. */
void content_operation_queue(struct content_operation *operation);
/* Gives the answer. `why` is copied. */
void content_operation_end(struct content_operation *operation, enum service_content_status status,
                           const char *why);
/* A part more of what is read is there, or its end, after which the service has the operation. */
void content_operation_part(struct content_operation *operation);
/* Holds so many bytes for it, or lets all of them go. */
bool content_operation_hold(struct content_operation *operation, size_t bytes);
void content_operation_let(struct content_operation *operation);

/* For the room and the account, under the lock. */
/* Its service is gone, or wants it no more. It may be freed at once. */
void content_operation_close(struct content_operation *operation);
/* The process ends. */
void content_operation_stop(struct content_operation *operation);

#endif
