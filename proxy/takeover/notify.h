/*
 * Messages to the service manager that has started the process: systemd, or any other one that sets
 * NOTIFY_SOCKET (sd_notify(3)). Without one, nothing is sent.
 *
 *     notify_send("READY=1\nSTATUS=serving with %u workers", count);
 *     unsigned interval = notify_watchdog();           0: nobody waits for signs of life
 *     if (interval > 0) notify_send("WATCHDOG=1");     at least every `interval` milliseconds
 *
 * Threads: any.
 */
#ifndef RETORT_TAKEOVER_NOTIFY_H
#define RETORT_TAKEOVER_NOTIFY_H

#include <stdbool.h>

/* Waits for at most a second when the manager does not read. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with descriptors, at most NOTIFY_FDS, which stay the caller's. */
enum { NOTIFY_FDS = 253 }; /* as many as the kernel passes at once */
void notify_send_fds(const int *fds, unsigned count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Is there a manager? */
bool notify_is_heard(void);
/* How often the manager wants a sign of life, in milliseconds: half of WATCHDOG_USEC. 0: never. */
unsigned notify_watchdog(void);

#endif
