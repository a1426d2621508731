#include "identity/flights.h"

#include "base/assert.h"

enum { CHAINS = 256, WAITS = 2 };

struct flight {
    struct list_link link; /* of its chain */
    struct list_link waiting;
    unsigned char key[SECRET_DIGEST];
};

struct flights {
    unsigned magic;
#define FLIGHTS_MAGIC 0xf117f115u
    pthread_mutex_t lock;
    struct list_link chains[CHAINS];
};

struct flights *flights_new(void) {
    struct flights *flights;
    ALLOC_OBJ(flights, FLIGHTS_MAGIC);
    pthread_mutex_init(&flights->lock, NULL);
    for (size_t i = 0; i < CHAINS; i++)
        list_init(&flights->chains[i]);
    return flights;
}

void flights_free(struct flights **flightsp) {
    struct flights *flights = *flightsp;
    *flightsp = NULL;
    if (flights == NULL)
        return;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    for (size_t i = 0; i < CHAINS; i++)
        ASSERT(list_empty(&flights->chains[i]));
    pthread_mutex_destroy(&flights->lock);
    FREE_OBJ(flights);
}

static struct flight *flight_find(struct list_link *chain, const unsigned char *key) {
    LIST_FOR_EACH (link, chain) {
        struct flight *flight = CONTAINER_OF(link, struct flight, link);
        if (secret_digest_equal(flight->key, key))
            return flight;
    }
    return NULL;
}

bool flights_enter(struct flights *flights, const unsigned char key[SECRET_DIGEST],
                   struct flight_place *place, struct mailbox *mailbox, struct task *task) {
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    place->flights = flights;
    if (place->waits == WAITS)
        return true;
    pthread_mutex_lock(&flights->lock);
    struct list_link *chain = &flights->chains[key[SECRET_DIGEST - 1] % CHAINS];
    struct flight *flight = flight_find(chain, key);
    if (flight != NULL) {
        waiter_add(&flight->waiting, &place->waiter, mailbox, task);
        place->waits++;
    } else {
        place->leads = xcalloc(1, sizeof *place->leads);
        memcpy(place->leads->key, key, SECRET_DIGEST);
        list_init(&place->leads->waiting);
        list_append(chain, &place->leads->link);
    }
    pthread_mutex_unlock(&flights->lock);
    return flight == NULL;
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
    list_remove(&place->leads->link);
    waiters_wake(&place->leads->waiting, loop);
    pthread_mutex_unlock(&flights->lock);
    free(place->leads);
    place->leads = NULL;
}
