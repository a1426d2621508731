#include "base/log.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

static struct {
    _Atomic int fd;
    const char *program;
    _Atomic int level;
} the_log = {STDERR_FILENO, "retort", LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_open(int fd, const char *program, enum log_level level) {
    the_log.fd = fd;
    the_log.program = program;
    log_set_level(level);
}

bool log_open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0)
        return false;
    if (the_log.fd == STDERR_FILENO) {
        the_log.fd = fd;
        return true;
    }
    /* dup3 replaces the file under the same number, so writers in other threads lose no line. */
    bool moved = dup3(fd, the_log.fd, O_CLOEXEC) >= 0;
    close(fd);
    return moved;
}

void log_set_level(enum log_level level) {
    atomic_store_explicit(&the_log.level, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level) {
    return (int)level <= atomic_load_explicit(&the_log.level, memory_order_relaxed);
}

/* Copies visible UTF-8 characters, and writes the bytes of others as \xNN. Returns the length
 * written. */
static size_t log_escape(char *out, size_t capacity, struct slice text) {
    size_t length = 0;
    while (text.length > 0 && length + 16 < capacity) {
        uint32_t character;
        size_t taken = text_decode(text, &character);
        bool is_seen = taken > 0 && !text_is_hidden(character);
        taken += taken == 0;
        for (size_t i = 0; i < taken; i++)
            if (is_seen)
                out[length++] = text.base[i];
            else
                length += (size_t)snprintf(out + length, 5, "\\x%02x", (unsigned char)text.base[i]);
        text = slice_make(text.base + taken, text.length - taken);
    }
    return length;
}

void log_write(enum log_level level, const char *format, ...) {
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    char message[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    struct timespec now;
    struct tm calendar;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &calendar);
    size_t length = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &calendar);
    length += (size_t)snprintf(line + length, sizeof line - length, ".%03ldZ %s %s ",
                               now.tv_nsec / 1000000, the_log.program,
                               level_names[level == LOG_LEVEL_ALWAYS ? LOG_LEVEL_INFO : level]);
    length += log_escape(line + length, sizeof line - length - 1, slice_from(message));
    line[length++] = '\n';
    ssize_t written = write(the_log.fd, line, length);
    (void)written; /* an error of the log itself can't be logged */
    errno = saved_errno;
}
