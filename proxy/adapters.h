/*
 * Chooses the kind of adapter (adapt/adapter.h) for a service. This is the only place outside of
 * icap/ and inside/ that names a kind; a new kind is added here.
 *
 *     struct shared_services *services = shared_services_new(settings, adapters_class_of, NULL);
 *
 * Threads: any.
 */
#ifndef RETORT_ADAPTERS_H
#define RETORT_ADAPTERS_H

#include "adapt/shared_service.h"

struct content_room;
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
 * run services, at most so long. */
void adapters_await_end(unsigned milliseconds);

const struct adapter_class *adapters_class_of(const struct service_settings *settings);
/* From now on services that start reach the content of the cache (content/room.h); NULL: they no longer
 * do. By the thread that starts services. */
void adapters_use_content(struct content_room *room);

#endif
