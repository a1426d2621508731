/*
 * Access logs: one line a transaction, in the formats of Squid, of Apache ("combined"), as JSON, or
 * in one of the operator's own. The first two are held to the letter, for programs that read them;
 * "extended" has our columns behind. An icap_log has one line a call of a service.
 *
 *     struct access_logs *logs = access_logs_open(net, settings);
 *     access_logs_write(logs, &journal);
 *     access_logs_close(&logs);
 *
 * Lines gather in memory and are handed over when 64 KB have gathered or 200 ms have passed, whole
 * lines only. Each place has a thread, which all workers share (log/target.h), so no worker waits for
 * a disk. Lines that a place does not take are lost and counted (access_log_lines_lost).
 *
 * Called by the step LOG, and by the worker at a reload, at SIGUSR1 and at its end.
 *
 * Threads: the worker's; each worker has its own. Ownership: the logs share their targets; an entry is
 * written before the call returns. Errors: a place that can't be opened is named in the error log, and
 * its lines are lost and counted.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_H
#define RETORT_TRANSACTION_ACCESS_LOG_H

#include "net/context.h"
#include "settings/settings.h"
#include "transaction/access_log_line.h"

struct access_logs;

/* The settings must outlive it. */
struct access_logs *access_logs_open(struct net_context *net, const struct settings *settings);
void access_logs_write(struct access_logs *logs, const struct journal *journal);
/* Does some log ask for the class of a request, so that journal.subject is needed? */
bool access_logs_ask_class(const struct access_logs *logs);
/* Is there any log to write to? */
bool access_logs_wanted(const struct access_logs *logs);
void access_logs_flush(struct access_logs *logs);
/* Adds what places have lost to the counter. */
void access_logs_count_lost(struct access_logs *logs);
void access_logs_close(struct access_logs **logsp);

#endif
