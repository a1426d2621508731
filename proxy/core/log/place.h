/*
 * Where the lines of a log go, as the title of its section says.
 *
 *     struct log_place place;
 *     char error[LOG_PLACE_ERROR];
 *     if (!log_place_parse(&place, "syslog://192.0.2.1:514", error)) ...
 *     place.kind == LOG_PLACE_SYSLOG_UDP, place.host "192.0.2.1", place.port "514"
 *
 * Threads: values.
 */
#ifndef RETORT_LOG_PLACE_H
#define RETORT_LOG_PLACE_H

#include <stdbool.h>

enum log_place_kind {
    LOG_PLACE_FILE,        /* /path */
    LOG_PLACE_SYSLOG_UNIX, /* syslog:/dev/log */
    LOG_PLACE_SYSLOG_UDP,  /* syslog://host:514 (RFC 5426) */
    LOG_PLACE_SYSLOG_TCP,  /* syslog+tcp://host:601 (RFC 6587 §3.4.1) */
    LOG_PLACE_JOURNALD,    /* journald: or journald:/path */
    LOG_PLACE_SYSLOG_TLS,  /* syslog+tls://host:6514 (RFC 5425) */
    LOG_PLACE_TCP,         /* tcp://host:port */
    LOG_PLACE_TLS,         /* tls://host:port */
    LOG_PLACE_PIPE,        /* pipe:/path: a FIFO */
    LOG_PLACE_PROGRAM,     /* |program argument ... */
};

enum { LOG_PLACE_ERROR = 400, LOG_PLACE_TEXT = 256, LOG_PLACE_PORT = 8 };

struct log_place {
    enum log_place_kind kind;
    char host[LOG_PLACE_TEXT]; /* or the path, or the program with its arguments */
    char port[LOG_PLACE_PORT];
};

/* False with a message. Whatever begins with no known word is a file. */
bool log_place_parse(struct log_place *place, const char *text, char error[LOG_PLACE_ERROR]);

#endif
