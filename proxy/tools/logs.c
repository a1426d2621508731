/*
 * retort-logs: who asked for how much, of an access log. "retortctl logs top" runs it. Exit status: 0,
 * 1 when the log can't be read to its end, 2 for wrong usage.
 */
#include "base/assert.h"
#include "base/plural.h"
#include "tools/command.h"
#include "tools/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* The lines of a log, which may be compressed by gzip. Longer ones than LOG_FILE_LINE_MAX are left out and counted. */

enum { LOG_FILE_LINE_MAX = 128 << 10, ROOM = 2 * LOG_FILE_LINE_MAX };

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

/* "-" is standard input. */
static struct log_file *log_file_open(const char *path) {
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

static bool log_file_line(struct log_file *file, struct slice *line) {
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

static uint64_t log_file_long_lines(const struct log_file *file) {
    return file->long_lines;
}

static bool log_file_close(struct log_file **filep) {
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

/* The command. */

static void take_lines(struct log_file *file, struct tally *tally, uint64_t *bad) {
    struct log_entry record;
    struct slice line;
    while (log_file_line(file, &line)) {
        if (log_entry_of_line(&record, line.base, line.length))
            tally_add(tally, &record);
        else
            ++*bad;
        log_entry_release(&record);
    }
    *bad += log_file_long_lines(file);
}

static int logs_top(const struct command_line *line) {
    enum tally_key key;
    struct tally_view view;
    if (!tally_view_read(&view, &key, line))
        return COMMAND_USAGE;
    struct log_file *file = log_file_open(line->words[0]);
    if (file == NULL)
        return EXIT_FAILURE;
    struct tally *tally = tally_new(key);
    take_lines(file, tally, &view.bad_lines);
    bool whole = log_file_close(&file);
    tally_print(tally, stdout, &view);
    tally_free(&tally);
    if (view.bad_lines > 0)
        fprintf(stderr,
                "retortctl: %llu %s left out: not of the formats json, squid and combined\n",
                (unsigned long long)view.bad_lines,
                plural((int64_t)view.bad_lines, "line was", "lines were"));
    return whole && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    return command_alone("retort-logs", "logs", "top", argc, argv, logs_top);
}
