/*
 * Connections to the admin plane. At most GUESTS_MOST are open. When another one arrives, the one
 * that has been idle for the longest time is closed, so that a program that opens many idle
 * connections can't lock the operator out.
 *
 *     struct guest *guest = guest_add(&guests, fd);        connected
 *     guest_moves(&guests, guest);                         a request of it has begun or ended
 *     guest_remove(&guests, &guest);                       closed
 *
 * Threads: any. A guest belongs to the thread of its connection. Other threads only shut its socket
 * down, before guest_remove returns.
 */
#ifndef RETORT_ADMIN_GUESTS_H
#define RETORT_ADMIN_GUESTS_H

#include "base/list.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { GUESTS_MOST = 64 };

struct guests {
    pthread_mutex_t lock;
    struct list_link list; /* the one that has been idle for the longest time first */
    unsigned count;
    time_t told; /* when the log last reported a closed connection */
};

struct guest;

void guests_init(struct guests *guests);
void guests_release(struct guests *guests);
/* Adds a connected socket, which belongs to libmicrohttpd. It is only shut down here, never
 * closed. */
struct guest *guest_add(struct guests *guests, int fd);
void guest_moves(struct guests *guests, struct guest *guest);
void guest_remove(struct guests *guests, struct guest **guestp);

#endif
