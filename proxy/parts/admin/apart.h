/*
 * Pages that are made apart, each in a thread of its own: their functions may wait for a service that starts,
 * for a disk or for retort-helperd. The threads of libmicrohttpd wait for nobody, so all other requests are
 * answered meanwhile.
 *
 *     struct apart apart;
 *     apart_init(&apart);
 *     if (apart_begin(&apart, connection, make, request)) ...  the connection is suspended; when make(request) has
 *                                                     returned, libmicrohttpd calls about the request again
 *     apart_ended(&apart);                            the request has ended: its answer is sent, or its client gone
 *     apart_stop(&apart, 500);                        waits for the threads, and then for their answers
 *     apart_release(&apart);
 *
 * There are as many threads at most as connections: a connection has one request at a time.
 *
 * Threads: any. Units: milliseconds.
 */
#ifndef RETORT_ADMIN_APART_H
#define RETORT_ADMIN_APART_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

struct apart {
    pthread_mutex_t lock;
    pthread_cond_t fewer;
    unsigned made;   /* pages that are being made */
    unsigned waited; /* requests that have begun and not ended */
    bool stops;
};

void apart_init(struct apart *apart);
void apart_release(struct apart *apart);
/* False: it stops, or no thread can be started; `make` is not called. */
bool apart_begin(struct apart *apart, struct MHD_Connection *connection, void (*make)(void *arg),
                 void *arg);
void apart_ended(struct apart *apart);
/* No other one begins. Waits until all pages are made, and then for at most so long until the answers are
 * sent. */
void apart_stop(struct apart *apart, unsigned patience);

#endif
