#include "ctl/log_file.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { ROOM = 2 * LOG_FILE_LINE_MAX };

struct log_file {
    unsigned magic;
#define LOG_FILE_MAGIC 0x109f17eu
    const char *path;
    gzFile gz; /* reads what is not compressed as it is */
    bool ended, failed;
    bool skips; /* the line under way is too long */
    uint64_t long_lines;
    size_t begin, length;
    char bytes[ROOM];
};

struct log_file *log_file_open(const char *path) {
    struct log_file *file;
    bool standard = strcmp(path, "-") == 0;
    errno = 0;
    gzFile gz = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rbe");
    if (gz == NULL) {
        fprintf(stderr, "retortctl: %s: %s\n", path, strerror(errno != 0 ? errno : ENOMEM));
        return NULL;
    }
    ALLOC_OBJ(file, LOG_FILE_MAGIC);
    file->path = standard ? "standard input" : path;
    file->gz = gz;
    return file;
}

/* Moves what is left to the front, and reads more. */
static void log_file_read(struct log_file *file) {
    size_t left = file->length - file->begin;
    memmove(file->bytes, file->bytes + file->begin, left);
    file->begin = 0;
    file->length = left;
    int got = gzread(file->gz, file->bytes + left, (unsigned)(ROOM - left));
    if (got > 0)
        file->length += (size_t)got;
    else
        file->ended = true;
    file->failed = file->failed || got < 0;
}

/* The rest of a file without a line end is a line, too. */
static bool log_file_take(struct log_file *file, struct slice *line) {
    char *at = file->bytes + file->begin;
    size_t left = file->length - file->begin;
    char *end = memchr(at, '\n', left);
    if (end == NULL && left < LOG_FILE_LINE_MAX && !(file->ended && left > 0))
        return false;
    *line = slice_make(at, end != NULL ? (size_t)(end - at) : left);
    file->begin += line->length + (end != NULL);
    return true;
}

bool log_file_line(struct log_file *file, struct slice *line) {
    CHECK_OBJ(file, LOG_FILE_MAGIC);
    for (;;) {
        if (!log_file_take(file, line)) {
            if (file->ended)
                return false;
            log_file_read(file);
            continue;
        }
        bool whole = line->base + line->length < file->bytes + file->begin;
        bool skipped = file->skips || line->length >= LOG_FILE_LINE_MAX;
        if (skipped && !file->skips)
            file->long_lines++;
        file->skips = skipped && !whole;
        if (!skipped && line->length > 0)
            return true;
    }
}

uint64_t log_file_long_lines(const struct log_file *file) {
    return file->long_lines;
}

bool log_file_close(struct log_file **filep) {
    struct log_file *file = *filep;
    int code;
    *filep = NULL;
    CHECK_OBJ(file, LOG_FILE_MAGIC);
    const char *reason = gzerror(file->gz, &code);
    bool cut_off = code == Z_BUF_ERROR, good = !file->failed && code == Z_OK;
    if (!good)
        fprintf(stderr, "retortctl: %s: %s; what was read before is counted\n", file->path,
                cut_off           ? "is cut off"
                : code == Z_ERRNO ? strerror(errno)
                                  : reason);
    gzclose(file->gz);
    FREE_OBJ(file);
    return good;
}
