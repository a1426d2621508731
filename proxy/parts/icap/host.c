#include "icap/host.h"

#include "base/assert.h"
#include "base/list.h"
#include "event/timer.h"

#include <pthread.h>

/* The times of packets come from the kernel, whose clock may have steps of so many milliseconds. */
enum { STEP = 20 };

struct icap_host {
    unsigned magic;
#define ICAP_HOST_MAGIC 0x1ca9405du
    struct list_link link;
    unsigned references; /* under hosts_lock */
    struct address address;
    pthread_mutex_t lock; /* of what follows */
    uint64_t heard_at;
    uint64_t checked_at; /* when the last check began; 0: there was none */
    uint64_t lost_since; /* when the check began that nobody answered; 0: it is not lost */
    bool checking;
    bool drops; /* it is there, and has left a check without an answer */
};

static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link hosts = {&hosts, &hosts};

static struct icap_host *host_find(const struct address *address) {
    LIST_FOR_EACH (link, &hosts) {
        struct icap_host *host = CONTAINER_OF(link, struct icap_host, link);
        if (address_equal(&host->address, address))
            return host;
    }
    return NULL;
}

static struct icap_host *host_new(const struct address *address) {
    struct icap_host *host;
    ALLOC_OBJ(host, ICAP_HOST_MAGIC);
    host->address = *address;
    pthread_mutex_init(&host->lock, NULL);
    list_append(&hosts, &host->link);
    return host;
}

struct icap_host *icap_host_get(const struct address *address) {
    pthread_mutex_lock(&hosts_lock);
    struct icap_host *host = host_find(address);
    if (host == NULL)
        host = host_new(address);
    host->references++;
    pthread_mutex_unlock(&hosts_lock);
    return host;
}

struct icap_host *icap_host_reference(struct icap_host *host) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&hosts_lock);
    host->references++;
    pthread_mutex_unlock(&hosts_lock);
    return host;
}

void icap_host_release(struct icap_host **hostp) {
    struct icap_host *host = *hostp;
    *hostp = NULL;
    if (host == NULL)
        return;
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&hosts_lock);
    bool last = --host->references == 0;
    if (last)
        list_remove(&host->link);
    pthread_mutex_unlock(&hosts_lock);
    if (!last)
        return;
    ASSERT(!host->checking);
    pthread_mutex_destroy(&host->lock);
    FREE_OBJ(host);
}

const struct address *icap_host_address(const struct icap_host *host) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    return &host->address;
}

void icap_host_heard(struct icap_host *host, uint64_t at) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    if (at > host->heard_at)
        host->heard_at = at;
    pthread_mutex_unlock(&host->lock);
}

/* Call with the lock held. A check that began soon after something was heard says too little of the
 * time behind: a worker may have noticed late what it heard. */
static uint64_t due_at(const struct icap_host *host, uint64_t quiet) {
    if (host->checking || host->checked_at >= host->heard_at + quiet / 2)
        return TIMER_NEVER;
    return host->heard_at + quiet;
}

uint64_t icap_host_due(struct icap_host *host, uint64_t quiet) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    uint64_t due = due_at(host, quiet);
    pthread_mutex_unlock(&host->lock);
    return due;
}

void icap_host_doubt(struct icap_host *host, uint64_t quiet, uint64_t now) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    if (!host->checking && host->checked_at + quiet <= now)
        host->checked_at = 0;
    pthread_mutex_unlock(&host->lock);
}

bool icap_host_claim(struct icap_host *host, uint64_t quiet, uint64_t now) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    bool mine = due_at(host, quiet) <= now;
    if (mine) {
        host->checking = true;
        host->checked_at = now;
    }
    pthread_mutex_unlock(&host->lock);
    return mine;
}

/* Call with the lock held. */
static void end_check(struct icap_host *host) {
    ASSERT(host->checking);
    host->checking = false;
}

void icap_host_answered(struct icap_host *host) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    end_check(host);
    host->drops = false;
    host->lost_since = 0;
    pthread_mutex_unlock(&host->lock);
}

bool icap_host_unanswered(struct icap_host *host) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    end_check(host);
    if (host->heard_at > host->checked_at + STEP)
        host->drops = true;
    bool lost = !host->drops && host->heard_at + STEP < host->checked_at;
    if (lost)
        host->lost_since = host->checked_at;
    pthread_mutex_unlock(&host->lock);
    return lost;
}

void icap_host_unclaim(struct icap_host *host, bool again) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    end_check(host);
    if (again)
        host->checked_at = 0;
    pthread_mutex_unlock(&host->lock);
}

bool icap_host_is_lost(struct icap_host *host, uint64_t heard_at) {
    CHECK_OBJ(host, ICAP_HOST_MAGIC);
    pthread_mutex_lock(&host->lock);
    bool lost = heard_at + STEP < host->lost_since;
    pthread_mutex_unlock(&host->lock);
    return lost;
}
