#include "base/findings.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void findings_add(struct findings *findings, const char *format, ...) {
    va_list arguments;
    if (findings->count == FINDINGS_MAX) {
        findings->more++;
        return;
    }
    va_start(arguments, format);
    vsnprintf(findings->text[findings->count++], FINDING, format, arguments);
    va_end(arguments);
}

void findings_warn(const struct findings *findings, const char *before) {
    for (unsigned i = 0; i < findings->count; i++)
        log_warn("%s%s", before, findings->text[i]);
    if (findings->more > 0)
        log_warn("%sand %u more", before, findings->more);
}

void findings_join(const struct findings *findings, char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < findings->count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i == 0 ? "" : "; ",
                                   findings->text[i]);
}

static void directory_of(const char *path, char directory[PATH_MAX]) {
    const char *last = strrchr(path, '/');
    size_t length = last == NULL ? 0 : last == path ? 1 : (size_t)(last - path);
    snprintf(directory, PATH_MAX, "%.*s", last == NULL ? 1 : (int)length,
             last == NULL ? "." : path);
}

void findings_of_directory(struct findings *findings, const char *what, const char *path) {
    char directory[PATH_MAX];
    directory_of(path, directory);
    if (access(directory, W_OK | X_OK) != 0)
        findings_add(findings,
                     "%s %s: the directory %s: %s; make it, let this user write to it, or name "
                     "another",
                     what, path, directory, strerror(errno));
}

void findings_of_log(struct findings *findings, const char *what, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) {
        findings_of_directory(findings, what, path);
        return;
    }
    if (S_ISDIR(status.st_mode))
        findings_add(findings, "%s %s: it is a directory: name a file in it", what, path);
    else if (access(path, W_OK) != 0)
        findings_add(findings, "%s %s: %s; let this user write to it, or name another", what, path,
                     strerror(errno));
}
