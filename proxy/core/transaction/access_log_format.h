/*
 * Lines in formats of an operator's own (log/format.h).
 *
 *     struct log_line line = log_line_at(out);
 *     access_log_format_write(&line, format, &journal);        without the line's end
 *
 * Threads: values.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_FORMAT_H
#define RETORT_TRANSACTION_ACCESS_LOG_FORMAT_H

#include "log/format.h"
#include "log/line.h"
#include "transaction/access_log_line.h"

void access_log_format_write(struct log_line *line, const struct log_format *format,
                             const struct journal *journal);

#endif
