#include "tls/intermediates.h"

#include "base/assert.h"
#include "base/list.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A fetch that was not even tried is not remembered for longer than those who wait need. */
enum { KNOWN_SECONDS = 86400, FAILED_SECONDS = 60, UNTRIED_SECONDS = 2 };

/* What is known of one URL. */
struct intermediates_entry {
    unsigned magic;
#define INTERMEDIATES_ENTRY_MAGIC 0x147e4ed1u
    struct list_link link; /* the one used last is the last */
    char *url;
    bool fetching;
    struct list_link waiting;
    enum intermediates_state state;
    struct intermediates_found found;
    time_t until; /* of the monotonic clock */
};

struct intermediates {
    unsigned magic;
#define INTERMEDIATES_MAGIC 0x147e4ed0u
    pthread_mutex_t lock;
    struct list_link entries;
    unsigned count;
};

static time_t intermediates_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

struct intermediates *intermediates_new(void) {
    struct intermediates *list;
    ALLOC_OBJ(list, INTERMEDIATES_MAGIC);
    pthread_mutex_init(&list->lock, NULL);
    list_init(&list->entries);
    return list;
}

static void intermediates_drop(struct intermediates *list, struct intermediates_entry *entry) {
    CHECK_OBJ(entry, INTERMEDIATES_ENTRY_MAGIC);
    list_remove(&entry->link);
    list->count--;
    sk_X509_pop_free(entry->found.certificates, X509_free);
    free(entry->url);
    FREE_OBJ(entry);
}

void intermediates_free(struct intermediates **listp) {
    struct intermediates *list = *listp;
    struct list_link *link;
    *listp = NULL;
    if (list == NULL)
        return;
    CHECK_OBJ(list, INTERMEDIATES_MAGIC);
    while ((link = list_first(&list->entries)) != NULL)
        intermediates_drop(list, CONTAINER_OF(link, struct intermediates_entry, link));
    pthread_mutex_destroy(&list->lock);
    FREE_OBJ(list);
}

/* The list is short, and is searched only for servers that do not send their intermediates. */
static struct intermediates_entry *intermediates_seek(struct intermediates *list, const char *url) {
    for (struct list_link *link = list->entries.next; link != &list->entries; link = link->next) {
        struct intermediates_entry *entry = CONTAINER_OF(link, struct intermediates_entry, link);
        if (strcmp(entry->url, url) == 0)
            return entry;
    }
    return NULL;
}

/* Removes the entry that was used longest ago, unless it is being fetched. */
static void intermediates_make_room(struct intermediates *list) {
    for (struct list_link *link = list->entries.next; link != &list->entries; link = link->next) {
        struct intermediates_entry *entry = CONTAINER_OF(link, struct intermediates_entry, link);
        if (!entry->fetching) {
            intermediates_drop(list, entry);
            return;
        }
    }
}

static struct intermediates_entry *intermediates_add(struct intermediates *list, const char *url) {
    struct intermediates_entry *entry;
    if (list->count >= INTERMEDIATES_KEPT)
        intermediates_make_room(list);
    ALLOC_OBJ(entry, INTERMEDIATES_ENTRY_MAGIC);
    entry->url = xstrdup(url);
    list_init(&entry->waiting);
    list_append(&list->entries, &entry->link);
    list->count++;
    return entry;
}

static struct stack_st_X509 *intermediates_reference(const STACK_OF(X509) * certificates) {
    return certificates != NULL ? X509_chain_up_ref((STACK_OF(X509) *)certificates) : NULL;
}

enum intermediates_state intermediates_find(struct intermediates *list, const char *url,
                                            struct intermediates_found *found) {
    enum intermediates_state state = INTERMEDIATES_UNKNOWN;
    CHECK_OBJ(list, INTERMEDIATES_MAGIC);
    pthread_mutex_lock(&list->lock);
    struct intermediates_entry *entry = intermediates_seek(list, url);
    if (entry != NULL && entry->until > intermediates_now()) {
        state = entry->state;
        *found = entry->found;
        found->certificates = intermediates_reference(entry->found.certificates);
        list_remove(&entry->link);
        list_append(&list->entries, &entry->link);
    }
    pthread_mutex_unlock(&list->lock);
    return state;
}

bool intermediates_await(struct intermediates *list, const char *url, struct waiter **waiter,
                         struct mailbox *mailbox, struct task *task) {
    CHECK_OBJ(list, INTERMEDIATES_MAGIC);
    pthread_mutex_lock(&list->lock);
    struct intermediates_entry *entry = intermediates_seek(list, url);
    if (entry == NULL)
        entry = intermediates_add(list, url);
    bool first = !entry->fetching;
    entry->fetching = true;
    waiter_add(&entry->waiting, waiter, mailbox, task);
    pthread_mutex_unlock(&list->lock);
    return first;
}

void intermediates_forget(struct intermediates *list, struct waiter **waiter) {
    waiter_cancel(waiter, &list->lock);
}

void intermediates_put(struct intermediates *list, const char *url,
                       const STACK_OF(X509) * certificates, unsigned hops, const char *error,
                       const struct loop *loop) {
    CHECK_OBJ(list, INTERMEDIATES_MAGIC);
    pthread_mutex_lock(&list->lock);
    struct intermediates_entry *entry = intermediates_seek(list, url);
    ASSERT(entry != NULL && entry->fetching); /* entries that are fetched stay */
    sk_X509_pop_free(entry->found.certificates, X509_free);
    entry->found.certificates = intermediates_reference(certificates);
    entry->found.hops = hops;
    entry->state = certificates != NULL ? INTERMEDIATES_KNOWN : INTERMEDIATES_FAILED;
    entry->until = intermediates_now() + (certificates != NULL ? KNOWN_SECONDS
                                          : hops > 0           ? FAILED_SECONDS
                                                               : UNTRIED_SECONDS);
    snprintf(entry->found.error, sizeof entry->found.error, "%s", error != NULL ? error : "");
    entry->fetching = false;
    waiters_wake(&entry->waiting, loop);
    pthread_mutex_unlock(&list->lock);
}
