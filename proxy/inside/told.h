/*
 * What a service inside the proxy is told of outside of exchanges: lines of the log, connections that
 * have ended, addresses of names (service.h). These are functions of the class of adapters.
 *
 *     service->base.hears = inside_told_of(instance->ops);
 *     inside_logged(adapter, &line);
 *
 * What the service may not know of the client is left out of what it is told, as in its exchanges.
 *
 * Threads: the worker's; several workers at once. Errors: a service that says something impossible is
 * named in the log, counted in error_protocol, and not listened to.
 */
#ifndef RETORT_INSIDE_TOLD_H
#define RETORT_INSIDE_TOLD_H

#include "adapt/adapter.h"
#include "service/service.h"

/* Or-ed bits of enum adapter_event. */
unsigned inside_told_of(const struct service_ops *ops);

void inside_logged(struct adapter *adapter, const struct service_log_line *line);
void inside_closed(struct adapter *adapter, const struct service_connection *connection);
size_t inside_resolved(struct adapter *adapter, struct slice name,
                       struct sockaddr_storage *addresses, size_t count);

#endif
