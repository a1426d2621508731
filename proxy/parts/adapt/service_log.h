/*
 * The lines of the access log for services that hear of them (service.h, `logged`).
 *
 *     service_log_hear(host, &watcher);
 *
 * Called when the worker takes settings. Once a set of services has heard lines, they are made until the worker's end: transactions
 * that began under that set may still be under way. A transaction is shown to the services of the
 * set that it began with, but for those that have opted out of it.
 *
 * Threads: the worker's. Ownership: what a service is shown lives until it returns.
 */
#ifndef RETORT_ADAPT_SERVICE_LOG_H
#define RETORT_ADAPT_SERVICE_LOG_H

#include "transaction/watcher.h"

struct transaction_host;

void service_log_hear(struct transaction_host *host, struct entry_watcher *watcher);

#endif
