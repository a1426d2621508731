/* The file that keeps overrides. */
#include "admin/overrides.h"
#include "config/config_file.h"
#include "config/tokens.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERRIDES_BYTES = 16 << 20 };

static const char head[] =
    "# Options that were changed at run time: \"retortctl set --save\" writes this file, and "
    "retort\n"
    "# reads it behind the configuration. \"retortctl diff\" shows it, \"retortctl unset --save\"\n"
    "# takes options out.\n";

/* Reading. */

struct overrides_reading {
    struct tokens tokens;
    const struct token *at; /* the next one */
    struct overrides *overrides;
};

static bool overrides_fail_at(const struct overrides_reading *reading, int line,
                              const char *reason) {
    faults_add(reading->tokens.faults, 0, reading->tokens.path, line, "%s", reason);
    return false;
}

static bool expect_token(struct overrides_reading *reading, enum token_kind kind) {
    if (reading->at->kind != kind)
        return overrides_fail_at(reading, reading->at->line,
                                 "write \"NAME\" = \"VALUE\", or \"NAME\" = { \"A\", \"B\" }");
    reading->at++;
    return true;
}

static void take_override_word(struct overrides_reading *reading, struct override_value *value) {
    const char *word = tokens_word(&reading->tokens, reading->at);
    override_value_add(value, slice_dup(slice_make(word, reading->at->length)));
    reading->at++;
}

/* The values behind '{', as far as the '}'. */
static bool read_list(struct overrides_reading *reading, struct override_value *value) {
    value->list = true;
    reading->at++;
    while (reading->at->kind == TOKEN_WORD) {
        take_override_word(reading, value);
        reading->at += reading->at->kind == TOKEN_COMMA;
    }
    return expect_token(reading, TOKEN_CLOSE);
}

static bool read_value(struct overrides_reading *reading, struct override_value *value) {
    if (reading->at->kind == TOKEN_OPEN)
        return read_list(reading, value);
    if (reading->at->kind != TOKEN_WORD)
        return expect_token(reading, TOKEN_WORD);
    take_override_word(reading, value);
    return true;
}

static bool read_override(struct overrides_reading *reading) {
    char error[OVERRIDE_ERROR];
    const char *name = tokens_word(&reading->tokens, reading->at);
    int line = reading->at->line;
    struct override_value value = {.texts = NULL};
    bool good = expect_token(reading, TOKEN_WORD) && expect_token(reading, TOKEN_EQUALS) &&
                read_value(reading, &value);
    if (good && !overrides_put(reading->overrides, name, &value, line, error, sizeof error))
        good = overrides_fail_at(reading, line, error);
    override_value_release(&value);
    return good;
}

static bool read_overrides(struct overrides_reading *reading, const char *text, size_t length) {
    bool good = tokens_read(&reading->tokens, slice_make(text, length));
    reading->at = reading->tokens.list;
    while (good && reading->at->kind != TOKEN_END)
        good = read_override(reading);
    tokens_release(&reading->tokens);
    return good;
}

/* Whoever can write to the file can change the settings. Who checks a configuration may be somebody
 * else than who will use it, and its owner is judged by the latter. */
static bool overrides_file_is_ours(const char *path, enum settings_purpose purpose,
                                   struct faults *faults) {
    struct stat status;
    if (lstat(path, &status) != 0)
        return true;
    bool ours = purpose != SETTINGS_TO_USE || status.st_uid == geteuid() || status.st_uid == 0;
    if (S_ISREG(status.st_mode) && ours && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return true;
    faults_add(faults, 0, path, 0,
               "the file of saved_settings must be a regular file that belongs to retort's user or "
               "root, and that nobody else can write to: correct that, or remove it");
    return false;
}

/* The file of another machine may be missing here, or belong to somebody. */
static bool overrides_file_is_there(const char *path, enum settings_purpose purpose) {
    return access(path, purpose == SETTINGS_FOR_ELSEWHERE ? R_OK : F_OK) == 0;
}

struct overrides *overrides_read(const char *path, enum settings_purpose purpose,
                                 struct faults *faults) {
    char reason[CONFIG_FILE_ERROR];
    struct config_file_id id;
    struct overrides_reading reading = {.tokens = {.path = path, .faults = faults},
                                        .overrides = overrides_new()};
    size_t length;
    bool elsewhere = purpose == SETTINGS_FOR_ELSEWHERE;
    bool good = elsewhere || overrides_file_is_ours(path, purpose, faults);
    if (good && overrides_file_is_there(path, purpose)) {
        char *text = config_file_read(path, OVERRIDES_BYTES, &length, &id, reason);
        good = text != NULL ? read_overrides(&reading, text, length)
                            : overrides_fail_at(&reading, 0, reason);
        free(text);
    } else if (good && errno != ENOENT && !elsewhere) {
        good = overrides_fail_at(&reading, 0, strerror(errno));
    }
    if (!good)
        overrides_free(&reading.overrides);
    return reading.overrides;
}

bool overrides_are_in(const struct overrides *overrides, const char *path) {
    struct faults faults = {0};
    struct overrides *now = overrides_read(path, SETTINGS_TO_USE, &faults);
    bool same = now != NULL && overrides_equal(now, overrides);
    overrides_free(&now);
    faults_release(&faults);
    return same;
}

/* Writing. */

static void put_quoted_text(FILE *out, const char *text) {
    putc('"', out);
    for (; *text != '\0'; text++) {
        if (strchr("\\\"$", *text) != NULL)
            putc('\\', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void put_override(FILE *out, const struct override *override) {
    bool list = override->values[1] != NULL;
    put_quoted_text(out, override->name);
    fputs(list ? " = { " : " = ", out);
    for (char **value = override->values; *value != NULL; value++) {
        fputs(value == override->values ? "" : ", ", out);
        put_quoted_text(out, *value);
    }
    fputs(list ? " }\n" : "\n", out);
}

/* False with errno. Closes the descriptor. */
static bool write_text(int fd, const struct overrides *overrides) {
    FILE *out = fdopen(fd, "w");
    if (out == NULL) {
        close(fd);
        return false;
    }
    fputs(head, out);
    for (size_t i = 0; i < overrides->count; i++)
        if (overrides->list[i].values != NULL)
            put_override(out, &overrides->list[i]);
    bool good = fflush(out) == 0 && ferror(out) == 0 && fsync(fd) == 0;
    int reason = errno;
    good = fclose(out) == 0 && good;
    errno = good ? errno : reason;
    return good;
}

/* The rename is on the disk when its directory is. What can't be opened can't be synchronised, so
 * that is opened before anything is written. -1 with errno. */
static int open_directory_of(const char *path) {
    char *copy = xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    return fd;
}

/* With errno, unless it is OVERRIDES_WRITTEN. */
static enum overrides_written write_and_rename(const struct overrides *overrides, const char *path,
                                               const char *temporary, int directory) {
    unlink(temporary); /* of a process that was killed */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return OVERRIDES_FAILED;
    if (write_text(fd, overrides) && rename(temporary, path) == 0)
        return fsync(directory) == 0 ? OVERRIDES_WRITTEN : OVERRIDES_UNSURE;
    int reason = errno;
    unlink(temporary);
    errno = reason;
    return OVERRIDES_FAILED;
}

enum overrides_written overrides_write(const struct overrides *overrides, const char *path,
                                       char *error, size_t error_size) {
    char *temporary;
    ASSERT(asprintf(&temporary, "%s.new", path) >= 0);
    int directory = open_directory_of(path);
    enum overrides_written written =
        directory < 0 ? OVERRIDES_FAILED : write_and_rename(overrides, path, temporary, directory);
    if (written == OVERRIDES_UNSURE)
        snprintf(error, error_size,
                 "the change is in use, and saved_settings %s has it, but the disk did not confirm "
                 "that (%s): a crash of the machine may bring the older file back; look at the "
                 "disk, and save the change again",
                 path, strerror(errno));
    else if (written == OVERRIDES_FAILED)
        snprintf(error, error_size,
                 "saved_settings %s can not be written: %s: let retort's user read its directory "
                 "and write to it",
                 path, strerror(errno));
    if (directory >= 0)
        close(directory);
    free(temporary);
    return written;
}
