/*
 * A stream in the gzip format (RFC 1952): bytes in, compressed bytes out, with a bounded buffer
 * between, by zlib.
 *
 *     struct deflater *deflater = deflater_create(6);          NULL: no memory
 *     size_t took = deflater_push(deflater, bytes);            may take fewer: pull first
 *     deflater_finish(deflater);                               no more input
 *     size_t got = deflater_pull(deflater, out, capacity);
 *     if (deflater_failed(deflater)) ...                       out of memory in zlib
 *     if (deflater_done(deflater)) ...                         finished and pulled empty
 *     deflater_free(&deflater);
 *
 * Threads: belongs to one thread.
 */
#ifndef RETORT_GZIP_DEFLATER_H
#define RETORT_GZIP_DEFLATER_H

#include "base/slice.h"

struct deflater;

struct deflater *deflater_create(int level);
void deflater_free(struct deflater **deflaterp);
size_t deflater_push(struct deflater *deflater, struct slice bytes);
void deflater_finish(struct deflater *deflater);
size_t deflater_pull(struct deflater *deflater, char *out, size_t capacity);
bool deflater_done(const struct deflater *deflater);
bool deflater_failed(const struct deflater *deflater);

#endif
