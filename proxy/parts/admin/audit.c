#include "admin/audit.h"

#include "admin/cache_call.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

bool audit_open(struct audit *audit, const char *path) {
    audit->fd = -1;
    if (path == NULL)
        return true;
    audit->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    if (audit->fd < 0)
        log_error("admin.audit_log %s can not be opened: %s; changes are refused until retort's "
                  "user can write to it",
                  path, strerror(errno));
    return audit->fd >= 0;
}

static bool add_argument(void *arg, const char *name, const char *value) {
    char *key = NULL;
    json_t *text = cache_call_text(slice_from(name));
    if (asprintf(&key, "%s", json_string_value(text)) >= 0)
        json_object_set_new(arg, key, cache_call_text(slice_from(value)));
    free(key);
    json_decref(text);
    return true;
}

/* The reason of an error, as the caller got it. */
static void add_reason(json_t *line, const struct page *page) {
    if (page->error != NULL)
        json_object_set(line, "error", page->error);
}

static char *audit_line(const struct audit_entry *entry) {
    char now[32], did[300];
    struct tm utc;
    time_t at = time(NULL);
    const struct admin_caller *caller = entry->request->caller;
    json_t *arguments = json_object();
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
    snprintf(did, sizeof did, "%s %s", entry->request->method, entry->request->path);
    page_each_argument(entry->request, add_argument, arguments);
    json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:i}", "time", now, "who",
                             caller->name, "role", operator_role_name(caller->role), "from",
                             caller->from, "did", cache_call_text(slice_from(did)), "arguments",
                             arguments, "status", (int)entry->page->status);
    if (caller->certificate[0] != '\0')
        json_object_set_new(line, "certificate", json_string(caller->certificate));
    if (entry->page->asked != NULL)
        json_object_set(line, "asked", entry->page->asked);
    if (entry->page->changed != NULL)
        json_object_set(line, "changed", entry->page->changed);
    add_reason(line, entry->page);
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(line);
    return text;
}

static bool append_line(int fd, const char *text) {
    char *line;
    int length = asprintf(&line, "%s\n", text);
    if (length < 0)
        return false;
    ssize_t written = write(fd, line, (size_t)length); /* at once, so that lines never mix */
    free(line);
    return written == length;
}

bool audit_write(struct audit *audit, const struct audit_entry *entry) {
    char *text = audit_line(entry);
    bool good = true;
    if (text == NULL) {
        good = false;
        log_error("admin: a change by %s could not be written to the audit log: no memory",
                  entry->request->caller->name);
    } else if (audit->fd < 0) {
        /* Whoever may lower log_level must not thereby hide what he changes next. */
        log_write(LOG_LEVEL_ALWAYS, "admin: %s", text);
    } else if (!append_line(audit->fd, text)) {
        good = false;
        log_error("admin.audit_log can not be written: %s; it lacks this line: %s", strerror(errno),
                  text);
    }
    free(text);
    audit_close(audit);
    return good;
}

void audit_close(struct audit *audit) {
    if (audit->fd >= 0)
        close(audit->fd);
    audit->fd = -1;
}
