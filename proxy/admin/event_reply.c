#include "admin/event_reply.h"

#include "base/assert.h"
#include "events/stream.h"

#include <stdlib.h>

/* BLOCK: bytes that libmicrohttpd asks for at a time. */
enum { BLOCK = 8192 };

struct event_reply {
    unsigned magic;
#define EVENT_REPLY_MAGIC 0xe4e47e91u
    struct event_consumer *consumer;
    bool (*may_still)(void *arg);
    void *arg;
};

static void event_reply_pause(void *arg) {
    MHD_suspend_connection(arg);
}

static void event_reply_wake(void *arg) {
    MHD_resume_connection(arg);
}

static ssize_t event_reply_read(void *arg, uint64_t at, char *bytes, size_t most) {
    struct event_reply *reply;
    (void)at;
    CAST_OBJ(reply, arg, EVENT_REPLY_MAGIC);
    if (!reply->may_still(reply->arg))
        return MHD_CONTENT_READER_END_OF_STREAM;
    ssize_t got = event_consumer_read(reply->consumer, bytes, most, event_reply_pause);
    return got < 0 ? MHD_CONTENT_READER_END_OF_STREAM : got;
}

static void event_reply_free(void *arg) {
    struct event_reply *reply;
    CAST_OBJ(reply, arg, EVENT_REPLY_MAGIC);
    event_consumer_leave(&reply->consumer);
    FREE_OBJ(reply);
}

struct MHD_Response *event_reply_new(struct MHD_Connection *connection,
                                     struct event_consumer **consumerp,
                                     bool (*may_still)(void *arg), void *arg) {
    struct event_reply *reply;
    ALLOC_OBJ(reply, EVENT_REPLY_MAGIC);
    reply->consumer = *consumerp;
    reply->may_still = may_still;
    reply->arg = arg;
    *consumerp = NULL;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    event_consumer_bind(reply->consumer, fd, event_reply_wake, connection);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK, event_reply_read, reply, event_reply_free);
    if (response == NULL) {
        event_reply_free(reply);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)EVENT_REPLY_PATIENCE);
    return response;
}
