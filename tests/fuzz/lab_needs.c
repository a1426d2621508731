/* What tests/unit/proxy/client_lab.c needs of the unit tests: settings, and Check without its runner. */
#include "suites.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings *settings_from(const char *text) {
    char path[] = "/tmp/retort-fuzz-XXXXXX", error[SETTINGS_ERROR] = "";
    int fd = mkstemp(path);
    ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    struct settings *settings = settings_load(path, error);
    unlink(path);
    ASSERT(settings != NULL);
    return settings;
}

/* Check's own want to tell a process that runs tests. */
void _mark_point(const char *file, int line) {
    (void)file, (void)line;
}

void _ck_assert_failed(const char *file, int line, const char *expression, const char *format,
                       ...) {
    (void)format;
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
    abort();
}
