/*
 * Keeps what the helper has answered lately, so that it is not asked for each page of a client.
 *
 *     struct text_cache *cache = text_cache_create();
 *     if (text_cache_find(cache, key, now, room, &length)) ...   a copy, perhaps empty: "no text"
 *     text_cache_store(cache, key, text, now + ttl);
 *     text_cache_free(&cache);
 *
 * The cache keeps at most TEXT_CACHE_SLOTS answers. A newer answer replaces the older one of the
 * same slot, so there are no chains that somebody could make long. An answer longer than
 * TEXT_CACHE_TEXT_MAX bytes is not kept. Times are milliseconds; all of them must be of one clock.
 * Threads: any; a mutex is held while an answer is copied.
 */
#ifndef RETORT_INJECT_TEXT_CACHE_H
#define RETORT_INJECT_TEXT_CACHE_H

#include "base/slice.h"

enum { TEXT_CACHE_SLOTS = 1024, TEXT_CACHE_TEXT_MAX = 16384 };

struct text_cache;

struct text_cache *text_cache_create(void);
void text_cache_free(struct text_cache **cachep);
bool text_cache_find(struct text_cache *cache, struct slice key, int64_t now,
                     char room[TEXT_CACHE_TEXT_MAX], size_t *length);
void text_cache_store(struct text_cache *cache, struct slice key, struct slice text,
                      int64_t expires);

#endif
