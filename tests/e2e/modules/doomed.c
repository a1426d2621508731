/*
 * doomed: a service whose module ends its process as soon as it is loaded. For the end-to-end tests of
 * processes of services (test_runs.py).
 */
#include "service/service.h"

#include <signal.h>
#include <stdlib.h>

static __attribute__((constructor)) void doomed_load(void) {
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void *doomed_begin(void *service, struct service_exchange *exchange) {
    (void)service, (void)exchange;
    return NULL;
}

static enum service_verdict doomed_preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_SKIP;
}

static void doomed_end(void *state) {
    (void)state;
}

SERVICE_DEFINE(doomed) = {
    .version = SERVICE_VERSION,
    .name = "doomed",
    .description = "ends whoever loads it",
    .points = SERVICE_RESPONSE,
    .begin = doomed_begin,
    .preview = doomed_preview,
    .end = doomed_end,
};
