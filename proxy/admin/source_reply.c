#include "admin/source_reply.h"

#include "base/assert.h"

#include <stdlib.h>

/* BLOCK: bytes that libmicrohttpd asks for at a time. */
enum { BLOCK = 64 << 10 };

struct source_reply {
    unsigned magic;
#define SOURCE_REPLY_MAGIC 0x50c7e91eu
    struct page_source source;
};

static ssize_t source_reply_read(void *arg, uint64_t at, char *bytes, size_t most) {
    struct source_reply *reply;
    CAST_OBJ(reply, arg, SOURCE_REPLY_MAGIC);
    ssize_t got = reply->source.read(reply->source.arg, at, bytes, most);
    return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void source_reply_free(void *arg) {
    struct source_reply *reply;
    CAST_OBJ(reply, arg, SOURCE_REPLY_MAGIC);
    reply->source.release(reply->source.arg);
    FREE_OBJ(reply);
}

struct MHD_Response *source_reply_new(const struct page_source *source) {
    struct source_reply *reply;
    ALLOC_OBJ(reply, SOURCE_REPLY_MAGIC);
    reply->source = *source;
    struct MHD_Response *response = MHD_create_response_from_callback(
        source->length, BLOCK, source_reply_read, reply, source_reply_free);
    if (response == NULL)
        source_reply_free(reply);
    return response;
}
