#include "admin/page_reply.h"

#include "admin/connections.h"
#include "base/assert.h"

#include <stdlib.h>

/* Bytes that libmicrohttpd asks for at a time. */
enum { FEED_BLOCK = 8192 };

struct feed_reply {
    unsigned magic;
#define FEED_REPLY_MAGIC 0xe4e47e91u
    struct page_feed feed;
    bool (*may_still)(void *arg);
    void *arg;
};

static void feed_reply_pause(void *arg) {
    MHD_suspend_connection(arg);
}

static void feed_reply_wake(void *arg) {
    MHD_resume_connection(arg);
}

static ssize_t feed_reply_read(void *arg, uint64_t at, char *bytes, size_t most) {
    struct feed_reply *reply;
    (void)at;
    CAST_OBJ(reply, arg, FEED_REPLY_MAGIC);
    if (!reply->may_still(reply->arg))
        return MHD_CONTENT_READER_END_OF_STREAM;
    ssize_t got = reply->feed.class->read(reply->feed.arg, bytes, most, feed_reply_pause);
    return got < 0 ? MHD_CONTENT_READER_END_OF_STREAM : got;
}

static void feed_reply_free(void *arg) {
    struct feed_reply *reply;
    CAST_OBJ(reply, arg, FEED_REPLY_MAGIC);
    reply->feed.class->release(reply->feed.arg);
    FREE_OBJ(reply);
}

struct MHD_Response *feed_reply_new(struct MHD_Connection *connection, const struct page_feed *feed,
                                    bool (*may_still)(void *arg), void *arg) {
    struct feed_reply *reply;
    ALLOC_OBJ(reply, FEED_REPLY_MAGIC);
    reply->feed = *feed;
    reply->may_still = may_still;
    reply->arg = arg;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    feed->class->bind(feed->arg, fd, feed_reply_wake, connection);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, FEED_BLOCK, feed_reply_read, reply, feed_reply_free);
    if (response == NULL) {
        feed_reply_free(reply);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)FEED_REPLY_PATIENCE);
    return response;
}

/* Bytes that libmicrohttpd asks for at a time. */
enum { SOURCE_BLOCK = ADMIN_CONNECTION_LEAST };

struct source_reply {
    unsigned magic;
#define SOURCE_REPLY_MAGIC 0x50c7e91eu
    struct page_source source;
    bool (*may_still)(void *arg);
    void *arg;
};

static ssize_t source_reply_read(void *arg, uint64_t at, char *bytes, size_t most) {
    struct source_reply *reply;
    CAST_OBJ(reply, arg, SOURCE_REPLY_MAGIC);
    if (!reply->may_still(reply->arg))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t got = reply->source.read(reply->source.arg, at, bytes, most);
    return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void source_reply_free(void *arg) {
    struct source_reply *reply;
    CAST_OBJ(reply, arg, SOURCE_REPLY_MAGIC);
    reply->source.release(reply->source.arg);
    FREE_OBJ(reply);
}

struct MHD_Response *source_reply_new(struct MHD_Connection *connection,
                                      const struct page_source *source,
                                      bool (*may_still)(void *arg), void *arg) {
    struct source_reply *reply;
    ALLOC_OBJ(reply, SOURCE_REPLY_MAGIC);
    reply->source = *source;
    reply->may_still = may_still;
    reply->arg = arg;
    struct MHD_Response *response = MHD_create_response_from_callback(
        source->length, SOURCE_BLOCK, source_reply_read, reply, source_reply_free);
    if (response == NULL) {
        source_reply_free(reply);
        return NULL;
    }
    /* A later request on this connection would have the longer time too. */
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)ADMIN_CONNECTION_PATIENCE);
    return response;
}
