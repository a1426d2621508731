#include "match/list_file.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A larger file is a mistake: a list of ten million names is a quarter of this. */
enum { LIST_FILE_MAX = 1 << 30 };

static bool list_fail(char *error, size_t error_size, const char *reason) {
    snprintf(error, error_size, "%s", reason);
    return false;
}

static bool list_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The line without its comment, which begins the line or stands behind a blank. */
static struct slice list_without_comment(struct slice line) {
    for (size_t i = 0; i < line.length; i++)
        if (line.base[i] == '#' && (i == 0 || list_is_blank(line.base[i - 1])))
            return slice_make(line.base, i);
    return line;
}

static bool has_control_character(struct slice line) {
    for (size_t i = 0; i < line.length; i++)
        if (((unsigned char)line.base[i] < 0x20 && line.base[i] != '\t') || line.base[i] == 0x7f)
            return true;
    return false;
}

/* One line, without its line break. */
static bool list_take_line(struct slice line, list_file_take *take, void *arg, char *error,
                           size_t error_size) {
    if (line.length > 0 && line.base[line.length - 1] == '\r')
        line.length--;
    if (line.length > LIST_FILE_LINE_MAX)
        return list_fail(error, error_size, "the line is too long");
    if (has_control_character(line))
        return list_fail(error, error_size,
                         "the line contains a control character; the file may be damaged, or half "
                         "written");
    line = slice_trim(list_without_comment(line));
    return line.length == 0 || take(arg, line, error, error_size);
}

bool list_file_parse(struct slice text, list_file_take *take, void *arg, size_t *line, char *error,
                     size_t error_size) {
    *line = 1;
    if (slice_starts_with(text, SLICE("\xef\xbb\xbf"))) /* a mark that some editors write */
        text = slice_make(text.base + 3, text.length - 3);
    if (text.length == 0)
        return list_fail(error, error_size,
                         "the list is empty; it may be half written. An empty list contains a line "
                         "with a comment: # none");
    for (; text.length > 0; ++*line) {
        const char *newline = memchr(text.base, '\n', text.length);
        if (newline == NULL)
            return list_fail(error, error_size,
                             "the last line does not end with a line break; the file may be half "
                             "written");
        size_t length = (size_t)(newline - text.base);
        if (!list_take_line(slice_make(text.base, length), take, arg, error, error_size))
            return false;
        text = slice_make(newline + 1, text.length - length - 1);
    }
    return true;
}

static bool list_read_all(int descriptor, char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = read(descriptor, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool list_is_same(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the whole file into *text, which the caller frees. */
static bool list_read_text(int descriptor, struct slice *text, char *error, size_t error_size) {
    struct stat before, after;
    if (fstat(descriptor, &before) != 0 || !S_ISREG(before.st_mode))
        return list_fail(error, error_size, "is not a file");
    if (before.st_size > LIST_FILE_MAX)
        return list_fail(error, error_size, "is larger than 1 GB");
    char *bytes = xmalloc((size_t)before.st_size + 1);
    *text = slice_make(bytes, (size_t)before.st_size);
    if (list_read_all(descriptor, bytes, text->length) && fstat(descriptor, &after) == 0 &&
        list_is_same(&before, &after))
        return true;
    free(bytes);
    return list_fail(error, error_size,
                     "changed while it was read; write lists to another file and rename it");
}

bool list_file_read(const char *path, list_file_take *take, void *arg, char *error,
                    size_t error_size) {
    char reason[400];
    struct slice text;
    size_t line;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = list_read_text(descriptor, &text, reason, sizeof reason);
    close(descriptor);
    if (!good) {
        snprintf(error, error_size, "%s: %s", path, reason);
        return false;
    }
    good = list_file_parse(text, take, arg, &line, reason, sizeof reason);
    if (!good)
        snprintf(error, error_size, "%s:%zu: %s", path, line, reason);
    free((char *)(uintptr_t)text.base);
    return good;
}
