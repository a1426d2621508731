/*
 * The operator's log: one line a message to a file descriptor (stderr unless told otherwise).
 *
 *     log_open(STDERR_FILENO, "retort", LOG_LEVEL_INFO);
 *     log_warn("icap service %s is down: %s; trying again in %d s", name, reason, delay);
 *
 * A line is "TIME PROGRAM LEVEL MESSAGE\n", written with one write(2), cut at 4 KB; control bytes
 * in a message are shown as \xNN so that input can not forge lines. A message says what happened
 * and, at WARN and ERROR, what to do. Threads: log_open before threads start; the other functions
 * from any thread.
 */
#ifndef RETORT_BASE_LOG_H
#define RETORT_BASE_LOG_H

#include <stdbool.h>

enum log_level {
    LOG_LEVEL_ALWAYS = -1, /* of a message that no level leaves out; shown as info */
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
};

void log_open(int fd, const char *program, enum log_level level);
/* Makes the log go to a file (appended to, created with mode 0640). False and errno when the file
 * can't be opened; then the log keeps its former destination. */
bool log_open_file(const char *path);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_LEVEL_DEBUG))                                                          \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
    } while (0)

#endif
