/*
 * Connections to the admin plane. There is room for GUESTS_MOST of them: when one more comes, the
 * one that has been still for longest is closed, so that whoever opens many and says nothing can't
 * keep the operator out.
 *
 *     struct guest *guest = guest_add(&guests, fd);        connected
 *     guest_moves(&guests, guest);                         a request of it has begun or ended
 *     guest_remove(&guests, &guest);                       closed
 *
 * Threads: any. A guest is its connection's thread's; that another one shuts its socket down is all
 * that happens to it meanwhile, before guest_remove returns.
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
    struct list_link list; /* the one that has been still for longest first */
    unsigned count;
    time_t told; /* when the log was last told that one was closed */
};

struct guest;

void guests_init(struct guests *guests);
void guests_release(struct guests *guests);
/* Of a connected socket, which is libmicrohttpd's: to close it, it is shut down. */
struct guest *guest_add(struct guests *guests, int fd);
void guest_moves(struct guests *guests, struct guest *guest);
void guest_remove(struct guests *guests, struct guest **guestp);

#endif
