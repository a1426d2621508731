#include "identity/authentication.h"

#include "base/assert.h"
#include "base/table.h"

enum { WAITS = 2 };

struct flight {
    struct table_entry entry;
    struct list_link waiting;
    char key[SECRET_DIGEST];
};

struct flights {
    unsigned magic;
#define FLIGHTS_MAGIC 0xf117f115u
    pthread_mutex_t lock;
    struct table table;
};

struct flights *flights_new(void) {
    struct flights *flights;
    ALLOC_OBJ(flights, FLIGHTS_MAGIC);
    pthread_mutex_init(&flights->lock, NULL);
    table_init(&flights->table);
    return flights;
}

void flights_free(struct flights **flightsp) {
    struct flights *flights = *flightsp;
    *flightsp = NULL;
    if (flights == NULL)
        return;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    ASSERT(flights->table.count == 0);
    table_release(&flights->table);
    pthread_mutex_destroy(&flights->lock);
    FREE_OBJ(flights);
}

bool flights_enter(struct flights *flights, const unsigned char key[SECRET_DIGEST],
                   struct flight_place *place, struct mailbox *mailbox, struct task *task) {
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    place->flights = flights;
    if (place->waits == WAITS)
        return true;
    pthread_mutex_lock(&flights->lock);
    struct slice digest = slice_make((const char *)key, SECRET_DIGEST);
    struct table_entry *entry = table_find(&flights->table, digest);
    if (entry != NULL) {
        waiter_add(&CONTAINER_OF(entry, struct flight, entry)->waiting, &place->waiter, mailbox,
                   task);
        place->waits++;
    } else {
        struct flight *flight = place->leads = xcalloc(1, sizeof *flight);
        list_init(&flight->waiting);
        table_add(&flights->table, &flight->entry, slice_copy(flight->key, digest));
    }
    pthread_mutex_unlock(&flights->lock);
    return entry == NULL;
}

void flights_leave(struct flight_place *place, const struct loop *loop) {
    struct flights *flights = place->flights;
    if (flights == NULL)
        return;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    place->flights = NULL;
    if (place->waiter != NULL)
        waiter_cancel(&place->waiter, &flights->lock);
    if (place->leads == NULL)
        return;
    pthread_mutex_lock(&flights->lock);
    table_remove(&flights->table, &place->leads->entry);
    waiters_wake(&place->leads->waiting, loop);
    pthread_mutex_unlock(&flights->lock);
    free(place->leads);
    place->leads = NULL;
}

struct authentication *authentication_new(const struct authentication_settings *settings,
                                          unsigned workers) {
    struct authentication *authentication;
    ALLOC_OBJ(authentication, AUTHENTICATION_MAGIC);
    authentication->threads =
        check_threads_new(settings->threads > 0 ? settings->threads : workers, settings->queue_max);
    authentication->remembered = remembered_new(settings->remember_entries);
    authentication->attempts = attempts_new(settings);
    authentication->flights = flights_new();
    return authentication;
}

void authentication_configure(struct authentication *authentication,
                              const struct authentication_settings *settings) {
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_set_queue(authentication->threads, settings->queue_max);
    attempts_configure(authentication->attempts, settings);
}

void authentication_stop(struct authentication *authentication) {
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_stop(authentication->threads);
}

void authentication_free(struct authentication **authenticationp) {
    struct authentication *authentication = *authenticationp;
    *authenticationp = NULL;
    if (authentication == NULL)
        return;
    CHECK_OBJ(authentication, AUTHENTICATION_MAGIC);
    check_threads_free(&authentication->threads);
    remembered_free(&authentication->remembered);
    attempts_free(&authentication->attempts);
    flights_free(&authentication->flights);
    FREE_OBJ(authentication);
}
