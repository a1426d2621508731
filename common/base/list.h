/*
 * Intrusive doubly linked lists. A list is a `struct list_link`, which is both head and tail; an
 * element embeds a `struct list_link`. A link that is in no list points at itself, so that
 * `list_remove` may be called twice.
 *
 *     struct list_link idle;
 *     list_init(&idle);
 *     list_append(&idle, &connection->link);
 *     LIST_FOR_EACH_SAFE(link, next, &idle) {
 *         struct connection *c = CONTAINER_OF(link, struct connection, link);
 *         ...                                  c may be removed here
 *     }
 *
 * Threads: a list has no lock; its owner makes sure that one thread at a time uses it.
 */
#ifndef RETORT_BASE_LIST_H
#define RETORT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *next, *prev;
};

static inline void list_init(struct list_link *list) {
    list->next = list->prev = list;
}

static inline bool list_empty(const struct list_link *list) {
    return list->next == list;
}

static inline void list_insert_before(struct list_link *at, struct list_link *link) {
    link->prev = at->prev;
    link->next = at;
    at->prev->next = link;
    at->prev = link;
}

static inline void list_append(struct list_link *list, struct list_link *link) {
    list_insert_before(list, link);
}

static inline void list_prepend(struct list_link *list, struct list_link *link) {
    list_insert_before(list->next, link);
}

static inline void list_remove(struct list_link *link) {
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = link->prev = link;
}

static inline struct list_link *list_first(struct list_link *list) {
    return list_empty(list) ? NULL : list->next;
}

/* Moves all of `from` to the end of `to`; `from` is left empty. */
static inline void list_splice(struct list_link *to, struct list_link *from) {
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define LIST_FOR_EACH(link, list)                                                                  \
    for (struct list_link *link = (list)->next; link != (list); link = link->next)

#define LIST_FOR_EACH_SAFE(link, following, list)                                                  \
    for (struct list_link *link = (list)->next, *following = link->next; link != (list);           \
         link = following, following = link->next)

#endif
