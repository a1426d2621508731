/*
 * A line of an access log: what it says of a transaction, and how each format says it. Bytes of the
 * client's that could forge or break a line are escaped.
 *
 *     char line[LOG_LINE_MAX];
 *     struct access_log_line_time time = {.length = 0};
 *     size_t length = access_log_line_write(line, &settings->access_logs[0], &journal, &time);
 *
 *     (write the first `length` bytes: a line with its line break)
 *
 * Called by transaction/access_log.h for each log, when a request has ended.
 *
 * Units: bytes; microseconds; the time is the wall clock's. Threads: pure functions on values.
 * Ownership: a journal only points, to what lives until the call returns. Errors: none.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_LINE_H
#define RETORT_TRANSACTION_ACCESS_LOG_LINE_H

#include "log/line.h"
#include "transaction/journal.h"

/* The text of a time, for the lines of the same moment. Zeroed at first; for one format. */
struct access_log_line_time {
    struct timespec time;
    size_t length;
    char text[32];
};

/* Writes the line with its end; returns its length. There is room for LOG_LINE_MAX bytes. */
size_t access_log_line_write(char *out, const struct log_settings *log,
                             const struct journal *journal, struct access_log_line_time *time_text);

/* "gray:MODIFIED:12,gzip:UNMODIFIED:3", or "-". */
void access_log_line_put_services(struct log_line *line, const struct journal *journal);
/* "TCP_MISS", or "TCP_MISS_ABORTED" */
static inline void access_log_line_put_result(struct log_line *line,
                                              const struct journal *journal) {
    log_line_put(line, cache_result_squid_name(journal->result));
    if (journal->aborted)
        log_line_put(line, SLICE("_ABORTED"));
}

#endif
