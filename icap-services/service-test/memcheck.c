#include "service-test/memcheck.h"

#include "base/assert.h"
#include "base/slice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool is_program(const char *folder, size_t length, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
    return access(path, X_OK) == 0;
}

static bool is_in_path(const char *name) {
    const char *at = getenv("PATH");
    for (at = at == NULL ? "/usr/bin" : at; *at != '\0'; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        if (is_program(at, length, name))
            return true;
        at += length;
    }
    return false;
}

bool memcheck_prepare(char logs[MEMCHECK_PATH], char *error, size_t error_size) {
    if (!is_in_path("valgrind")) {
        snprintf(error, error_size, "valgrind is not installed: apt-get install valgrind");
        return false;
    }
    const char *folder = getenv("TMPDIR");
    int length = snprintf(logs, MEMCHECK_PATH, "%s/retort-memcheck-XXXXXX",
                          folder == NULL ? "/tmp" : folder);
    if (length < MEMCHECK_PATH && mkdtemp(logs) != NULL)
        return true;
    snprintf(error, error_size, "no folder can be made for valgrind's logs: %s", strerror(errno));
    return false;
}

/* A line without "==4711== " in front. */
static struct slice memcheck_line(const char *text) {
    struct slice line = slice_make(text, strcspn(text, "\n"));
    if (!slice_starts_with(line, SLICE("==")))
        return line;
    const char *end = memmem(line.base + 2, line.length - 2, "==", 2);
    if (end == NULL)
        return line;
    return slice_trim(slice_make(end + 2, line.length - (size_t)(end + 2 - line.base)));
}

/* The memory of a block that was lost, as against errors where it was used. */
static bool is_of_a_leak(const char *text) {
    return strstr(text, "are definitely lost") != NULL;
}

/* Each report is a finding of its own, since each has its own place. */
static void memcheck_note(struct test_report *report, const char *text) {
    if (report->finding_count == TEST_FINDINGS) {
        report->more++;
        return;
    }
    struct test_finding *finding = &report->findings[report->finding_count++];
    *finding = (struct test_finding){.kind = FINDING_MEMORY, .message = TEST_SERVICE, .times = 1};
    snprintf(finding->text, sizeof finding->text, "memcheck: %s", text);
}

/* A report is some lines; an empty one ends it. */
static void memcheck_read(FILE *log, struct test_report *report) {
    char line[1024], text[TEST_FINDING_TEXT - 32] = "";
    bool more = true;
    while (more) {
        more = fgets(line, sizeof line, log) != NULL;
        struct slice part = more ? memcheck_line(line) : SLICE("");
        size_t used = strlen(text);
        if (part.length > 0)
            snprintf(text + used, sizeof text - used, "%s%.*s", used > 0 ? "\n    " : "",
                     SLICE_PRINT(part));
        else if (used > 0) {
            if (strstr(text, " at 0x") != NULL || is_of_a_leak(text))
                memcheck_note(report, text);
            text[0] = '\0';
        }
    }
}

void memcheck_collect(const char *logs, struct test_report *report) {
    char path[MEMCHECK_PATH + 300];
    DIR *folder = opendir(logs);
    if (folder == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", logs, entry->d_name);
        FILE *log = fopen(path, "re");
        if (log != NULL) {
            memcheck_read(log, report);
            fclose(log);
        }
        unlink(path);
    }
    closedir(folder);
    rmdir(logs);
}
