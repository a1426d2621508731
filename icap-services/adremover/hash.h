/*
 * The hashes by which rules are found: the hash of a word of a URL, the hash of a host, and the key
 * that the index makes of either. All functions are inline, because they run for every byte of
 * every URL.
 *
 * A host is hashed from its end. So one pass over "a.b.example" gives the hash of "example", then
 * that of "b.example", then that of the whole host.
 *
 *     uint32_t hash = HASH_WORD_SEED;
 *     while (at < end)
 *         hash = hash_word_step(hash, (unsigned char)*at++);    at last as hash_word
 *     uint32_t key = hash_key(HASH_KIND_WORD, hash);            the key of its rules in the index
 *
 * Threads: pure.
 */
#ifndef RETORT_ADREMOVER_HASH_H
#define RETORT_ADREMOVER_HASH_H

#include "base/slice.h"

#define HASH_WORD_SEED 2166136261u
#define HASH_HOST_SEED 0xcbf29ce484222325u

static inline uint32_t hash_word_step(uint32_t hash, unsigned char byte) {
    return (hash ^ byte) * 16777619u;
}

static inline uint32_t hash_word(const char *bytes, size_t length) {
    uint32_t hash = HASH_WORD_SEED;
    for (size_t i = 0; i < length; i++)
        hash = hash_word_step(hash, (unsigned char)bytes[i]);
    return hash;
}

static inline uint64_t hash_host_step(uint64_t hash, unsigned char byte) {
    return (hash ^ byte) * 0x100000001b3u;
}

static inline uint64_t hash_host(struct slice host) {
    uint64_t hash = HASH_HOST_SEED;
    for (size_t i = host.length; i-- > 0;)
        hash = hash_host_step(hash, (unsigned char)host.base[i]);
    return hash;
}

/* The kinds of things in a URL that a key of the index can be made of. */
enum hash_kind { HASH_KIND_WORD, HASH_KIND_HEAD, HASH_KIND_TAIL, HASH_KIND_HOST, HASH_KIND_PAGE };

static inline uint32_t hash_key(enum hash_kind kind, uint64_t hash) {
    hash = (hash ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

/* A rule may know only the beginning or the end of a word. Then this many bytes of it make the key
 * (HASH_KIND_HEAD, HASH_KIND_TAIL). */
enum { HASH_PART = 3 };

static inline uint64_t hash_part(const char *bytes) {
    return (uint64_t)(unsigned char)bytes[0] | (uint64_t)(unsigned char)bytes[1] << 8 |
           (uint64_t)(unsigned char)bytes[2] << 16;
}

#endif
