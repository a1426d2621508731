/*
 * What programs that ask a server over many connections have in common: a clock, connections that
 * an epoll instance watches, and how long most answers took.
 *
 *     connection->fd = asker_connect(port, SOCK_NONBLOCK, epoll, EPOLLIN, connection);
 *     double since = asker_now();
 *     times[count++] = (float)((asker_now() - since) * 1e3);
 *     asker_sort(times, count);
 *     printf("%f", asker_part(times, count, 990));                 99 % took no longer
 *
 * Errors: what can't be measured ends the program with exit status 2. Threads: one.
 */
#ifndef RETORT_BENCH_ASKER_H
#define RETORT_BENCH_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds, of the monotonic clock. */
double asker_now(void);
/* Ends the program unless it is good; the reason is errno's. */
void asker_need(bool good, const char *what);
/* A socket to a port of this machine, watched. flags: SOCK_NONBLOCK, and events tell what becomes
 * of it; or 0, and the connection stands. */
int asker_connect(uint16_t port, int flags, int epoll, uint32_t events, void *owner);
void asker_sort(float *times, size_t count);
/* Of sorted times, that which so many of a thousand do not exceed; 0 where there are none. */
double asker_part(const float *times, size_t count, size_t of_thousand);

#endif
