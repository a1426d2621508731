#include "secrets/secret_file.h"

#include "base/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool secret_file_fill(int fd, char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        ssize_t got = read(fd, bytes + at, length - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

static bool secret_file_open(struct secret_file *file, int fd, const char *path, char *error,
                             size_t error_size) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return failure(error, error_size, "%s: is not a file", path);
    if (status.st_size > SECRET_FILE_MAX)
        return failure(error, error_size, "%s: is larger than 64 MB", path);
    size_t length = (size_t)status.st_size;
    char *bytes = malloc(length + 1);
    if (bytes == NULL || !secret_file_fill(fd, bytes, length)) {
        free(bytes);
        return failure(error, error_size,
                       "%s: can not be read whole: try again when nobody writes it", path);
    }
    file->text = slice_make(bytes, length);
    file->mode = status.st_mode;
    return true;
}

bool secret_file_read(struct secret_file *file, const char *path, char *error, size_t error_size) {
    *file = (struct secret_file){.text = {NULL, 0}};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return failure(error, error_size,
                       "%s: %s; correct the path, or let retort's user read the file", path,
                       strerror(errno));
    bool good = secret_file_open(file, fd, path, error, error_size);
    close(fd);
    return good;
}

void secret_file_release(struct secret_file *file) {
    if (file->text.base != NULL) {
        explicit_bzero((char *)file->text.base, file->text.length);
        free((char *)file->text.base);
    }
    file->text = slice_make(NULL, 0);
}
