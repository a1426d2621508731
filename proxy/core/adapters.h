/*
 * Chooses the kind of adapter (adapt/adapter.h) for a service: that of a part (part.services).
 *
 *     struct shared_services *services = shared_services_new(settings, adapters_class_of, NULL);
 *
 * Threads: any.
 */
#ifndef RETORT_ADAPTERS_H
#define RETORT_ADAPTERS_H

#include "adapt/shared_service.h"

/* When the proxy begins to end: nobody waits any more for the start of services that are new. */
void adapters_abandon_starts(void);
/* Also by a signal before the proxy serves. */
bool adapters_starts_are_abandoned(void);
/* How long the first starts of all processes of the services may take, in milliseconds. */
uint64_t adapters_start_time(const struct settings *settings);
/* Milliseconds: a process that hangs, or that somebody has stopped, is ended before that
 * (PROCESS_GRACE, runner/process.h). */
enum { ADAPTERS_PATIENCE = 4000 };
/* Before the proxy ends, when the last shared service is released: waits for threads and processes that
 * run, start or stop services, at most so long. False: some are left behind. */
bool adapters_await_end(unsigned milliseconds);

const struct adapter_class *adapters_class_of(const struct service_settings *settings);

#endif
