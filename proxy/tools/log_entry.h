/*
 * What a line of an access log, or an event of the event stream, says of a transaction.
 *
 *     struct log_entry record;
 *     if (!log_entry_of_line(&record, line, length)) bad++;
 *     use record.host, record.status, ...
 *     log_entry_release(&record);                      always, also after false
 *
 * The formats are those of access_log (docs/OPERATIONS.md): JSON, squid, combined, and their
 * extended forms; the line itself says which. What a format does not tell is not known.
 *
 * Ownership: texts point into the line, which is not changed, or into the record.
 * Threads: values. Errors: none but false.
 */
#ifndef RETORT_TOOLS_LOG_ENTRY_H
#define RETORT_TOOLS_LOG_ENTRY_H

#include "base/slice.h"

#include <jansson.h>

enum { LOG_ENTRY_SERVICES = 16 };

struct log_entry_service {
    struct slice name;
    double milliseconds;
    bool failed;
};

struct log_entry {
    struct slice client, url, host; /* empty: not known */
    unsigned status;                /* 0: none */
    uint64_t bytes;
    double milliseconds; /* less than 0: not known */
    struct slice result; /* empty: not known */
    bool hit;            /* no whole response was fetched for it */
    unsigned service_count;
    struct log_entry_service services[LOG_ENTRY_SERVICES];
    json_t *json; /* that texts point into; NULL: none */
};

bool log_entry_of_line(struct log_entry *record, const char *line, size_t length);
/* The JSON must outlive the record. */
bool log_entry_of_json(struct log_entry *record, const json_t *json);
void log_entry_release(struct log_entry *record);

#endif
