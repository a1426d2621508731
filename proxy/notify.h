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
#ifndef RETORT_NOTIFY_H
#define RETORT_NOTIFY_H

void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often the manager wants a sign of life, in milliseconds: half of WATCHDOG_USEC. 0: never. */
unsigned notify_watchdog(void);

#endif
