/*
 * A volume for tests, in the scratch directory, and objects on it whose every byte tells of which
 * object, which version and from where in it it is.
 *
 *     start_volume("name");
 *     store_object("http://a/", 1, 1000);                 version 1, 1000 bytes
 *     volume_flush(the_volume);
 *     restart_volume();                                   as a process that ended without a word
 *     ck_assert(has_object("http://a/", 1, 1000));
 *     stop_volume();
 *
 * Of a URL with `!` at its end the volume is told that it was purged.
 *
 * Threads: the test's, but for what volumes are asked from any.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_VOLUME_BENCH_H
#define RETORT_TESTS_UNIT_PROXY_VOLUME_BENCH_H

#include "disk/segment.h"
#include "suites.h"

/* LARGE: it gets a segment of its own. */
enum { SIZE = 32 << 20, SEGMENT = SEGMENT_UNIT, LARGE = 1100 * 1000 };

extern struct disk_settings the_settings;
extern struct volume *the_volume;
extern const struct volume_hooks the_hooks;
extern unsigned units_left; /* how often bodies of a segment had to go */

void start_volume(const char *name);
/* What is not written is lost, as with a process that ends. */
void restart_volume(void);
void stop_volume(void);
/* After volume_close. */
void open_volume(void);

struct cache_key key_of_url(const char *url);
/* The same few characters for each number, until the next call. */
const char *numbered_url(unsigned number);
struct object *make_object(const char *url, unsigned version, size_t size);
void store_object(const char *url, unsigned version, size_t size);
void store_variant(const char *url, uint32_t variant, unsigned version, size_t size);
/* So many small ones that every segment is used again. */
void turn_the_ring(unsigned from);

unsigned count_of_url(const char *url);
/* NULL: there is none. */
struct object *read_object(const char *url);
bool is_body_right(struct body *body, const char *url, unsigned version, size_t size);
/* It is there, once, and as it was. */
bool has_object(const char *url, unsigned version, size_t size);

struct volume_stream *open_stream(const char *url, size_t size);
/* Those bytes of it. */
void put_bytes(struct volume_stream *stream, const char *url, unsigned version, size_t from,
               size_t until);

/* In the file. */
uint64_t segment_at(unsigned segment);
void overwrite(uint64_t offset, size_t length);
/* Writes behind this place fail; 0: none. */
void fail_behind(uint64_t offset);

#endif
