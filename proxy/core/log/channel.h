/*
 * The way to a place for lines of logs: a file, a socket, a FIFO, or the input of a program.
 *
 *     struct log_channel channel = {.place = place, .path = path, .fd = -1};
 *     if (!log_channel_open(&channel)) ...                    log_channel_reason(&channel)
 *     switch (log_channel_wait(&channel, 500)) {              LOG_CHANNEL_READY: it takes bytes
 *     ssize_t put = log_channel_write(&channel, bytes, length);
 *     log_channel_close(&channel);                            may be opened again
 *
 * A place with TLS has a client (tls/client.h), which verifies the server's certificate and which
 * the owner of the channel gives it. RFC 5425 §5.2: without that, lines could go to anybody.
 *
 * Threads: one at a time. It blocks: opening for two seconds at most, closing for half a second, a
 * file as long as its disk does.
 */
#ifndef RETORT_LOG_CHANNEL_H
#define RETORT_LOG_CHANNEL_H

#include "base/slice.h"
#include "log/place.h"

#include <stddef.h>
#include <sys/types.h>

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

struct tls_client;
struct tls_stream;

/* LOG_CHANNEL_PAUSE: milliseconds between two tries. */
enum { LOG_CHANNEL_PAUSE = 500 };

enum log_channel_status { LOG_CHANNEL_READY, LOG_CHANNEL_BUSY, LOG_CHANNEL_GONE };

struct log_channel {
    struct log_place place;
    const char *path;          /* of a file; the owner's */
    struct tls_client *client; /* NULL: without TLS; the owner's */
    struct tls_stream *stream; /* NULL: likewise, or it is closed */
    int fd;                    /* -1: it is closed */
    unsigned opened;           /* how often */
    pid_t program;
    const char *reason; /* NULL: errno says it */
};

bool log_channel_open(struct log_channel *channel);
/* Does the path name another file now, or none? */
bool log_channel_is_moved(const struct log_channel *channel);
/* Does the file have bytes behind its last end of a line? `length`: of the file. False for what is no
 * file, or can't be read. */
bool log_channel_ends_torn(const struct log_channel *channel, off_t *length);
enum log_channel_status log_channel_wait(struct log_channel *channel, int milliseconds);
/* As write(2). A datagram is sent whole. */
ssize_t log_channel_write(struct log_channel *channel, const char *bytes, size_t length);
/* Why the last open, wait or write failed, right after it. */
const char *log_channel_reason(const struct log_channel *channel);
void log_channel_close(struct log_channel *channel);
void log_channel_pause(void);

#endif
