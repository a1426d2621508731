#include "gzip/deflater.h"

#include "base/assert.h"

#include <zlib.h>

enum {
    DEFLATER_BUFFER = 16384,
    GZIP_WINDOW = 15 + 16, /* zlib: a window of 32 KB, in a gzip wrapper */
    GZIP_MEMORY = 8,
    INPUT_STEP = 1 << 20, /* fits zlib's unsigned int */
};

struct deflater {
    unsigned magic;
#define DEFLATER_MAGIC 0x4465666cu
    z_stream stream;
    bool finishing, done, failed;
    size_t at, end; /* of what is in the buffer */
    unsigned char buffer[DEFLATER_BUFFER];
};

struct deflater *deflater_create(int level) {
    struct deflater *deflater;
    ALLOC_OBJ(deflater, DEFLATER_MAGIC);
    if (deflateInit2(&deflater->stream, level, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return deflater;
    FREE_OBJ(deflater);
    return NULL;
}

void deflater_free(struct deflater **deflaterp) {
    struct deflater *deflater = *deflaterp;
    *deflaterp = NULL;
    if (deflater == NULL)
        return;
    CHECK_OBJ(deflater, DEFLATER_MAGIC);
    deflateEnd(&deflater->stream);
    FREE_OBJ(deflater);
}

/* Runs zlib into the free end of the buffer. */
static void run(struct deflater *deflater, int flush) {
    if (deflater->at == deflater->end)
        deflater->at = deflater->end = 0;
    deflater->stream.next_out = deflater->buffer + deflater->end;
    deflater->stream.avail_out = (unsigned)(sizeof deflater->buffer - deflater->end);
    int result = deflate(&deflater->stream, flush);
    deflater->end = sizeof deflater->buffer - deflater->stream.avail_out;
    if (result == Z_STREAM_END)
        deflater->done = true;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        deflater->failed = true;
}

size_t deflater_push(struct deflater *deflater, struct slice bytes) {
    CHECK_OBJ(deflater, DEFLATER_MAGIC);
    ASSERT(!deflater->finishing);
    size_t taken = 0;
    while (taken < bytes.length && !deflater->failed) {
        size_t step = bytes.length - taken < INPUT_STEP ? bytes.length - taken : INPUT_STEP;
        deflater->stream.next_in = (unsigned char *)bytes.base + taken;
        deflater->stream.avail_in = (unsigned)step;
        run(deflater, Z_NO_FLUSH);
        taken += step - deflater->stream.avail_in;
        if (deflater->stream.avail_in > 0)
            break; /* the buffer is full */
    }
    return taken;
}

void deflater_finish(struct deflater *deflater) {
    deflater->finishing = true;
}

size_t deflater_pull(struct deflater *deflater, char *out, size_t capacity) {
    CHECK_OBJ(deflater, DEFLATER_MAGIC);
    size_t got = 0;
    while (got < capacity) {
        if (deflater->at == deflater->end) {
            if (!deflater->finishing || deflater->done || deflater->failed)
                break;
            deflater->stream.avail_in = 0;
            run(deflater, Z_FINISH);
            continue;
        }
        size_t length = deflater->end - deflater->at;
        if (length > capacity - got)
            length = capacity - got;
        memcpy(out + got, deflater->buffer + deflater->at, length);
        deflater->at += length;
        got += length;
    }
    return got;
}

bool deflater_done(const struct deflater *deflater) {
    return deflater->done && deflater->at == deflater->end;
}

bool deflater_failed(const struct deflater *deflater) {
    return deflater->failed;
}
