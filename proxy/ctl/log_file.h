/*
 * The lines of a log, which may be compressed by gzip.
 *
 *     struct log_file *file = log_file_open("/var/log/retort/access.log.1.gz");   NULL: a message
 *     while (log_file_line(file, &line)) ...                      without its end
 *     if (!log_file_close(&file)) ...           not read to its end; after a message
 *
 * Memory: a line, of LOG_FILE_LINE_MAX bytes at most; longer ones are left out and counted.
 * Threads: one at a time.
 */
#ifndef RETORT_CTL_LOG_FILE_H
#define RETORT_CTL_LOG_FILE_H

#include "base/slice.h"

enum { LOG_FILE_LINE_MAX = 128 << 10 };

struct log_file;

/* "-" is standard input. */
struct log_file *log_file_open(const char *path);
bool log_file_line(struct log_file *file, struct slice *line);
uint64_t log_file_long_lines(const struct log_file *file);
bool log_file_close(struct log_file **filep);

#endif
