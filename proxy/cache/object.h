/*
 * A cache object: one stored response, immutable but for its body, which may still be arriving.
 *
 *     struct object *object = object_new(key, url, &request, &response, &freshness, body);
 *     cache_insert(cache, object);
 *     object_release(&object);
 *
 * `head` is ready to be sent: status line and field lines, each with its CRLF, without the fields
 * that each delivery makes anew (Age, Connection, Content-Length, Trailer, Transfer-Encoding) and without
 * the empty line. A 304 makes a new object with a new head on the same body (object_refreshed).
 *
 * Threads: shared by all workers; read-only after object_new. Ownership: references.
 */
#ifndef RETORT_CACHE_OBJECT_H
#define RETORT_CACHE_OBJECT_H

#include "cache/body.h"
#include "cache/freshness.h"

struct cache_key {
    uint64_t high, low;
};

/* For whom a response is: in reverse mode a URL stands for what a map rule says, in forward mode
 * for the server of that name. One must never be served as the other. */
enum object_scope { OBJECT_FOR_ALL, OBJECT_FORWARD, OBJECT_REVERSE };

struct object {
    unsigned magic;
#define OBJECT_MAGIC 0x0b1ec700u
    _Atomic unsigned references;
    /* Counted under the shard's lock, in the cache line whose `references` a hit writes anyway. */
    _Atomic uint32_t hits;
    struct cache_key key;
    unsigned status;
    struct freshness freshness;
    struct slice head;
    struct slice etag;    /* in head; base NULL: none */
    time_t last_modified; /* 0: none */
    bool tagged;          /* the head names surrogate keys; see object_has_tag */
    time_t changed_by;    /* Last-Modified, else Date, else when it came (RFC 9111 §4.3.2) */
    struct slice url;     /* normalised */
    struct slice vary;    /* what the stored variant was selected by; see object_matches */
    struct body *body;
    /* the store's, under its shard's lock */
    struct object *next;
    struct list_link sieve;
    bool indexed;
    _Atomic bool pinned;
    uint32_t born;            /* the newest ban when it came */
    _Atomic uint32_t checked; /* the newest ban that it was compared with; any thread */
    size_t cost;
    _Atomic bool visited;
    enum object_scope scope; /* set before it is inserted */
    unsigned max_variants;   /* of its key; 0: any number. Set before it is inserted */
    char bytes[];
};

/* The key of a normalised URL. */
struct cache_key cache_key_of(struct slice url);

/* `response` has been cleaned of hop-by-hop fields. The body is referenced. */
struct object *object_new(struct cache_key key, struct slice url, const struct http_head *request,
                          const struct http_head *response, const struct freshness *freshness,
                          struct body *body);
/* The same response with another freshness, on the same body. */
struct object *object_with_freshness(const struct object *object,
                                     const struct freshness *freshness);
/* RFC 9111 §3.2: the stored head with the fields of a 304 put over it. `merged` is scratch space
 * and afterwards holds the new head, for the caller to compute `freshness` from. */
void object_merge_head(const struct object *object, const struct http_head *not_modified,
                       struct http_head *merged);
struct object *object_reference(struct object *object);
void object_release(struct object **objectp);

/* Would this request, by way of that kind of listener, have selected this variant (RFC 9111 §4.1)?
 */
bool object_matches(const struct object *object, const struct http_head *request,
                    enum object_scope scope);
/* Do both stand for the same requests? */
bool object_same_variant(const struct object *a, const struct object *b);
/* Is it one of the keys in Surrogate-Key (separated by blanks) or Cache-Tag (by commas)? They are
 * read from the stored head: objects keep no second copy. */
bool object_has_tag(const struct object *object, struct slice tag);
/* Parses the stored head again, for the paths that need single fields. */
void object_parse_head(const struct object *object, struct http_head *head);

#endif
