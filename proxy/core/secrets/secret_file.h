/*
 * A file with secrets or users, read whole.
 *
 *     struct secret_file file;
 *     if (!secret_file_read(&file, "/etc/retort/users", error, sizeof error)) ...
 *     ... file.text, until ...
 *     secret_file_release(&file);                     wipes it
 *
 * Errors: a sentence that begins with the path. Threads: pure, but for the file system.
 */
#ifndef RETORT_SECRETS_SECRET_FILE_H
#define RETORT_SECRETS_SECRET_FILE_H

#include "base/slice.h"

#include <sys/types.h>

enum { SECRET_FILE_MAX = 64 * 1024 * 1024 };

struct secret_file {
    struct slice text; /* on the heap */
    mode_t mode;
};

/* Reads a regular file of at most SECRET_FILE_MAX bytes. */
bool secret_file_read(struct secret_file *file, const char *path, char *error, size_t error_size);
void secret_file_release(struct secret_file *file);

#endif
