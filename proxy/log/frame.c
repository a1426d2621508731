#include "log/frame.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void log_frame_init(struct log_frame *frame) {
    if (gethostname(frame->host, sizeof frame->host - 1) != 0 || frame->host[0] == '\0')
        snprintf(frame->host, sizeof frame->host, "-");
}

size_t log_frame_syslog(const struct log_frame *frame, char out[LOG_FRAME_MOST],
                        struct slice line) {
    struct timespec now;
    struct tm calendar;
    char date[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &calendar);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &calendar);
    int length = snprintf(out, LOG_FRAME_MOST, "<%u>1 %s.%03ldZ %s retort %d %s - %.*s",
                          frame->facility * 8 + frame->severity, date, now.tv_nsec / 1000000,
                          frame->host, (int)getpid(), frame->kind, SLICE_PRINT(line));
    return length < LOG_FRAME_MOST ? (size_t)length : LOG_FRAME_MOST - 1;
}

size_t log_frame_counted(const struct log_frame *frame, char out[LOG_FRAME_COUNTED],
                         struct slice line) {
    char message[LOG_FRAME_MOST];
    size_t length = log_frame_syslog(frame, message, line);
    int before = snprintf(out, LOG_FRAME_COUNTED - LOG_FRAME_MOST, "%zu ", length);
    memcpy(out + before, message, length);
    return (size_t)before + length;
}

size_t log_frame_journald(const struct log_frame *frame, char out[LOG_FRAME_MOST],
                          struct slice line) {
    int length = snprintf(out, LOG_FRAME_MOST,
                          "SYSLOG_IDENTIFIER=retort\nPRIORITY=%u\nSYSLOG_FACILITY=%u\n"
                          "RETORT_LOG=%s\nMESSAGE=%.*s",
                          frame->severity, frame->facility, frame->kind, SLICE_PRINT(line));
    size_t used = length < LOG_FRAME_MOST - 1 ? (size_t)length : LOG_FRAME_MOST - 2;
    out[used] = '\n';
    return used + 1;
}
