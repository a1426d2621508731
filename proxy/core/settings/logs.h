/*
 * Sections access_log and icap_log: where lines go, how they are written, and which ones there are.
 *
 *     access_log "/var/log/retort/failed.log" { format = json  status = 5xx }
 *
 * Threads: read-only once loaded.
 */
#ifndef RETORT_SETTINGS_LOGS_H
#define RETORT_SETTINGS_LOGS_H

#include "log/format.h"
#include "log/place.h"
#include "tls/trust.h"

#include <stdbool.h>

struct service_settings;
struct url_class;

enum access_log_format {
    ACCESS_LOG_SQUID,
    ACCESS_LOG_COMBINED,
    ACCESS_LOG_JSON,
    ACCESS_LOG_SQUID_EXTENDED,
    ACCESS_LOG_COMBINED_EXTENDED,
    ACCESS_LOG_OWN, /* log_settings.own */
};

/* Statuses from one to another, both included. */
struct log_statuses {
    unsigned from, to;
};

struct log_settings {
    char *path; /* as configured */
    struct log_place place;
    char *format_text; /* as configured */
    enum access_log_format format;
    struct log_format *own; /* NULL: the format is one of the others */
    enum log_escape escape;
    char *class_name;                  /* NULL: lines of all requests */
    const struct url_class *url_class; /* NULL: likewise */
    char **status_texts;               /* as configured; ends with NULL; NULL: all */
    struct log_statuses *statuses;
    size_t status_count;               /* 0: all */
    char **results;                    /* names of results; ends with NULL; NULL: all */
    char **services;                   /* names of services; ends with NULL; NULL: all */
    size_t queue;                      /* bytes that may wait for the place */
    unsigned facility, severity;       /* of syslog and journald */
    struct tls_trust_settings trust;   /* of places with TLS */
    unsigned ipv4_prefix, ipv6_prefix; /* bits of a client's address that are written */
};

/* Of "404", "5xx" or "400-499". False: it is none of these. */
bool log_statuses_parse(const char *text, struct log_statuses *statuses);

/* For the option table. */
bool option_check_log_status(const char *text, char *error, size_t error_size);
bool option_check_log_result(const char *text, char *error, size_t error_size);

#endif
