/*
 * How lines of logs are told to syslog servers and to journald.
 *
 *     char message[LOG_FRAME_MOST];
 *     size_t length = log_frame_syslog(&frame, message, line);        RFC 5424 §6
 *     length = log_frame_counted(&frame, counted, line);              RFC 6587 §3.4.1, RFC 5425 §4.3
 *
 * What is longer than LOG_FRAME_MOST bytes is cut. The time is that of the sending.
 *
 * Threads: pure.
 */
#ifndef RETORT_LOG_FRAME_H
#define RETORT_LOG_FRAME_H

#include "base/slice.h"

enum { LOG_FRAME_MOST = 16384, LOG_FRAME_COUNTED = LOG_FRAME_MOST + 16 };

struct log_frame {
    unsigned facility, severity; /* RFC 5424 §6.2.1 */
    const char *kind;            /* "access_log", "icap_log" */
    char host[256];              /* of this machine */
};

void log_frame_init(struct log_frame *frame);
size_t log_frame_syslog(const struct log_frame *frame, char out[LOG_FRAME_MOST], struct slice line);
/* The length, a blank, and the message. */
size_t log_frame_counted(const struct log_frame *frame, char out[LOG_FRAME_COUNTED],
                         struct slice line);
/* journald's own protocol: a line a field. */
size_t log_frame_journald(const struct log_frame *frame, char out[LOG_FRAME_MOST],
                          struct slice line);

#endif
