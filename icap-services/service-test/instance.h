/*
 * An instance of the service under test: the settings that the user gave, what start made of them,
 * and a host that looks at what the service says.
 *
 *     struct test_instance instance;
 *     if (!test_instance_start(&instance, ops, &options, error)) ...     a sentence
 *     ... instance.ops->begin(instance.service, &exchange) ...
 *     test_instance_stop(&instance);
 *
 * Threads: start and stop alone; the host's functions from any thread.
 */
#ifndef RETORT_TESTER_INSTANCE_H
#define RETORT_TESTER_INSTANCE_H

#include "service-test/options.h"
#include "service/module.h"

#include <poll.h>

enum { TEST_INSTANCE_ERROR = 700, TEST_WATCHED = 256 };

struct test_instance {
    unsigned magic;
#define TEST_INSTANCE_MAGIC 0x7e577e57u
    const struct service_ops *ops;
    void *settings, *service;
    struct service_host host;
    unsigned counters;
    bool verbose;
    bool may_watch; /* its timer or its descriptor is called */
    struct pollfd watched[TEST_WATCHED];
    unsigned watched_count;
};

bool test_instance_start(struct test_instance *instance, const struct service_ops *ops,
                         const struct tester_options *options, char error[TEST_INSTANCE_ERROR]);
void test_instance_stop(struct test_instance *instance);

/*
 * Events outside of exchanges: calls those of timer, descriptor, logged, closed and resolved that the service
 * has, as the proxy would, and looks whether it keeps the promises about them. The timer is called a few
 * times, at most for EVENTS_TIME, and the descriptor whenever what it watches is ready. Then the service hears
 * of two requests, of a connection, and of a name.
 */

enum { EVENTS_TIME = 100 /* milliseconds */ };

void test_events_run(struct test_instance *instance);
bool test_events_watch(void *context, int fd, short events);

#endif
