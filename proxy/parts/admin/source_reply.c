#include "admin/source_reply.h"

#include "admin/connections.h"
#include "base/assert.h"

#include <stdlib.h>

/* BLOCK: bytes that libmicrohttpd asks for at a time. */
enum { BLOCK = ADMIN_CONNECTION_LEAST };

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
        source->length, BLOCK, source_reply_read, reply, source_reply_free);
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
