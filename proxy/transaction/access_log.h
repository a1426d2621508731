/*
 * Access logs: one line a transaction, in the formats of Squid, of Apache ("combined"), or as JSON.
 * The first two are held to the letter, for programs that read them; "extended" has our columns
 * behind.
 *
 *     struct access_logs *logs = access_logs_open(net, settings);
 *     access_logs_write(logs, &entry);
 *     access_logs_close(&logs);
 *
 * Lines gather in memory and leave with one write(2) when 64 KB have gathered or 200 ms have
 * passed. Each worker appends to the file for itself; a write carries whole lines only. Lines that
 * a file does not take are lost and counted (access_log_lines_lost).
 *
 * Threads: one per worker.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_H
#define RETORT_TRANSACTION_ACCESS_LOG_H

#include "adapt/chain.h"
#include "net/context.h"
#include "settings/settings.h"
#include "transaction/outcome.h"

struct access_logs;

enum { ACCESS_CHAINS = 5 }; /* of services: one a point, and what is remembered */

struct access_entry {
    struct timespec time; /* wall clock, at the end; milliseconds count */
    uint64_t duration;    /* microseconds */
    uint64_t number;      /* shown in hexadecimal digits: the transaction's id */
    struct slice client, method, url, content_type, origin;
    const struct http_head *request; /* for its User-Agent and Referer; NULL: it was unreadable */
    struct slice version;            /* of the client's HTTP: "1.1" */
    unsigned status;
    uint64_t bytes;      /* sent to the client, heads included */
    uint64_t body_bytes; /* without them */
    enum cache_result result;
    const char *step;
    const char *error; /* NULL: none */
    bool aborted;      /* the client did not get all of it */
    unsigned chain_count;
    const struct adapt_chain *chains[ACCESS_CHAINS];
};

/* The settings must outlive it. */
struct access_logs *access_logs_open(struct net_context *net, const struct settings *settings);
void access_logs_write(struct access_logs *logs, const struct access_entry *entry);
/* Is there any log to write to? */
bool access_logs_wanted(const struct access_logs *logs);
void access_logs_flush(struct access_logs *logs);
void access_logs_close(struct access_logs **logsp);

#endif
