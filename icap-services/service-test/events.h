/*
 * Events outside of exchanges: calls those of timer, descriptor, logged, closed and resolved that the
 * service has, as the proxy would, and looks whether it keeps the promises about them.
 *
 *     test_events_run(&instance);                         after its start
 *
 *     instance.host.watch = test_events_watch;            service_watch, inside and outside of them
 *
 * The timer is called a few times, at most for EVENTS_TIME, and the descriptor whenever what it
 * watches is ready. Then the service hears of two requests, of a connection, and of a name.
 *
 * Threads: one.
 */
#ifndef RETORT_TESTER_EVENTS_H
#define RETORT_TESTER_EVENTS_H

#include "service-test/instance.h"

enum { EVENTS_TIME = 100 /* milliseconds */ };

void test_events_run(struct test_instance *instance);
bool test_events_watch(void *context, int fd, short events);

#endif
