#include "admin/event_reply.h"

#include "events/stream.h"

/* BLOCK: bytes that libmicrohttpd asks for at a time. */
enum { BLOCK = 8192 };

static void event_reply_pause(void *arg) {
    MHD_suspend_connection(arg);
}

static void event_reply_wake(void *arg) {
    MHD_resume_connection(arg);
}

static ssize_t event_reply_read(void *arg, uint64_t at, char *bytes, size_t most) {
    (void)at;
    ssize_t got = event_consumer_read(arg, bytes, most, event_reply_pause);
    return got < 0 ? MHD_CONTENT_READER_END_OF_STREAM : got;
}

static void event_reply_free(void *arg) {
    struct event_consumer *consumer = arg;
    event_consumer_leave(&consumer);
}

struct MHD_Response *event_reply_new(struct MHD_Connection *connection,
                                     struct event_consumer **consumerp) {
    struct event_consumer *consumer = *consumerp;
    *consumerp = NULL;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    event_consumer_bind(consumer, fd, event_reply_wake, connection);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK, event_reply_read, consumer, event_reply_free);
    if (response == NULL) {
        event_consumer_leave(&consumer);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)EVENT_REPLY_PATIENCE);
    return response;
}
