/*
 * The audit log of the admin plane: a line of JSON for each change that an operator asked for, and
 * for each that was refused because of the operator's role. Taking recorded exchanges is a change,
 * because nobody else gets them then; a question whether there are any (page.unchanged) is none.
 *
 *     {"time": "2026-03-01T12:00:00Z", "who": "deploy", "role": "operate", "from": "unix",
 *      "did": "POST /cache/purge", "arguments": {"host": "a.org"}, "status": 200}
 *
 * With a client certificate there is also "certificate", its subject.
 * A change of settings has "asked", what the caller wrote, and "changed", what came of it: they
 * differ when what is saved has no effect yet.
 *
 *     struct audit audit;
 *     if (!audit_open(&audit, mine->audit_log)) ...       the change must not be made
 *     ... the change ...
 *     audit_write(&audit, &entry);           or audit_close(&audit), when nothing has changed
 *
 * The file is opened before the change, so no change is made while it can not be opened. Without a
 * file the line goes to the log of errors.
 *
 * Threads: values.
 */
#ifndef RETORT_ADMIN_AUDIT_H
#define RETORT_ADMIN_AUDIT_H

#include "admin/guard.h"
#include "admin/page.h"

struct audit {
    int fd; /* -1: the log of errors */
};

struct audit_entry {
    const struct page_request *request;
    const struct page *page; /* the answer */
};

/* `path` may be NULL. False: the file can not be opened, and the log of errors says why. */
bool audit_open(struct audit *audit, const char *path);
/* Closes it. False: the file does not have the line; the log of errors has it. */
bool audit_write(struct audit *audit, const struct audit_entry *entry);
void audit_close(struct audit *audit);

#endif
