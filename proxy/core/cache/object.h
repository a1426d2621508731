/*
 * A cache object: one stored response, immutable but for its body, which may still be arriving.
 *
 *     struct object *object = object_new(key, url, &request, &response, &freshness, body);
 *     cache_insert(cache, object, &arrival);              see cache/store.h
 *     object_release(&object);
 *
 * object_head() is ready to be sent: status line and field lines, each with its CRLF, without the
 * fields that each delivery makes anew (Age, Connection, Content-Length, Trailer,
 * Transfer-Encoding) and without the empty line. A 304 makes a new object with a new head on the
 * same body.
 *
 * An object tells how services had a hand in it (struct object_provenance). Services may have seen a
 * response before it was stored. Services behind the cache may have made a variant of a stored
 * response: this variant stands beside it, for requests that pass the same chain of services.
 *
 * A cache may hold many millions of objects, so the struct is kept below 124 bytes. Times are 32
 * bits of seconds (until 2106), and the struct does not repeat what can be read from the text.
 *
 * Threads: shared by all workers; read-only after object_new but for its lifetime, which is one
 * atomic. Ownership: references.
 */
#ifndef RETORT_CACHE_OBJECT_H
#define RETORT_CACHE_OBJECT_H

#include "base/fetch.h"
#include "cache/body.h"
#include "cache/freshness.h"
#include "cache/name.h"

/* The requests that a response may be used for. In reverse mode a URL stands for what a map rule
 * says; in forward mode a URL stands for the server of that name. A response of one mode must never
 * be served in the other. Some clients may reach the proxy's own machine: a response that they
 * brought into the cache is not for clients that may not. */
enum object_scope {
    OBJECT_FOR_ALL,
    OBJECT_FORWARD,
    OBJECT_REVERSE,
    OBJECT_FORWARD_LOCAL, /* of listeners whose clients reach the machine itself */
    OBJECT_SCOPES,
};

enum object_trait {
    OBJECT_ALWAYS_REVALIDATE = 1,
    OBJECT_NEVER_STALE = 2,
    OBJECT_HEURISTIC = 4,
    OBJECT_HAS_MODIFIED = 8, /* changed_by is its Last-Modified */
    OBJECT_EXPIRED = 16,     /* see struct freshness */
};

struct object {
    unsigned magic;
#define OBJECT_MAGIC 0x0b1ec700u
    uint16_t status, etag_length;
    struct list_link eviction; /* shard.h */
    struct body *body;
    /* see object_freshness */
    _Atomic int32_t lifetime;
    int32_t initial_age, stale_if_error, stale_while_revalidate;
    uint32_t response_time;
    uint32_t changed_by; /* Last-Modified, else Date, else when it came (RFC 9111 §4.3.2) */
    uint32_t head_length, vary_length; /* of the text: URL, head, vary */
    /* The next members belong to the store. Those that are not atomic are under the
     * shard's lock. */
    _Atomic bool visited, pinned;
    bool indexed;
    uint8_t scope;            /* enum object_scope; set before it is inserted */
    _Atomic uint32_t checked; /* the newest ban that it was compared with; any thread */
    /* These two stand in one cache line: a hit writes both, `hits` under the shard's lock. */
    _Atomic uint32_t references, hits;
    struct cache_key key;
    /* The members that a walk through all objects reads stand together from here on;
     * see object_prefetch. */
    struct object *next;
    _Atomic uint32_t purged; /* the newest purge that can't concern it, see purge.h; any thread */
    uint32_t tags; /* a bit for each surrogate key in the head, by its hash; see object_has_tag */
    uint32_t url_length;
    uint16_t etag_at, type_at; /* of their values, in the head; type_at 0: see object_type */
    uint16_t holds;            /* see cache_hold; under the shard's lock */
    _Atomic uint8_t traits;    /* enum object_trait */
    char bytes[];
};

/* The URL that the response answers, normalised and reduced: see cache/name.h. */
static inline struct slice object_url(const struct object *object) {
    return slice_make(object->bytes, object->url_length);
}

static inline struct cache_name object_name(const struct object *object) {
    return (struct cache_name){.url = object_url(object), .key = object->key};
}

static inline bool object_has_name(const struct object *object, const struct cache_name *name) {
    return cache_key_equal(object->key, name->key) && object->url_length == name->url.length &&
           memcmp(object->bytes, name->url.base, name->url.length) == 0;
}

static inline struct slice object_head(const struct object *object) {
    return slice_make(object->bytes + object->url_length, object->head_length);
}

/* How services had a hand in an object. It stands as the first line of the object's vary, so that
 * an object which no service has seen needs no memory for it. */
enum object_kind {
    OBJECT_UNSEEN,
    OBJECT_SEEN,       /* by services, before it was stored */
    OBJECT_MADE,       /* by services behind the cache, of a stored response */
    OBJECT_LEFT_ALONE, /* likewise, but equal to it: the services changed nothing */
    OBJECT_UNABLE, /* as OBJECT_SEEN, but a service could not do its work: the object is used while
                        * it is fresh, never confirmed by the origin, never served stale */
};

/* The address that the response came from, IPv4 as IPv4-mapped; all zero: it is not known. It is
 * noted while access sections depend on the addresses of hosts, as the next line of the vary. */
struct object_source {
    unsigned char ip[16];
};

struct object_provenance {
    enum object_kind kind;
    uint32_t chain; /* which services */
    uint32_t tag;   /* what their tags came to (adapt/service_tag.h) when they saw it */
    struct object_source source;
};

enum {
    OBJECT_PROVENANCE = 1 + 6 + 6 + 1 + 1, /* ":CHAIN", the tag, the kind, a line end */
    OBJECT_SOURCE = 2 + 4 * 6 + 1,         /* "@:ADDRESS", a line end */
};

/* The making and the source of the object, if it has them, and then what the variant was selected
 * by; see object_selector. */
static inline struct slice object_vary(const struct object *object) {
    return slice_make(object->bytes + object->url_length + object->head_length,
                      object->vary_length);
}

static inline bool object_is_made(const struct object *object) {
    return object->vary_length >= OBJECT_PROVENANCE && object_vary(object).base[0] == ':';
}

struct object_provenance object_provenance(const struct object *object);
/* The chain of services behind the cache that made this variant; 0: the object is a
 * stored response. */
uint32_t object_chain(const struct object *object);

/* The fields of a request that select the object; see object_matches. */
static inline struct slice object_selector(const struct object *object) {
    struct slice vary = object_vary(object);
    size_t lines = object_is_made(object) ? OBJECT_PROVENANCE : 0;
    if (vary.length >= lines + OBJECT_SOURCE && vary.base[lines] == '@')
        lines += OBJECT_SOURCE;
    return slice_make(vary.base + lines, vary.length - lines);
}

bool object_source_is_known(const struct object_source *source);
/* Did both come from the same address, or both from one that is not known? */
bool object_source_equal(const struct object_source *a, const struct object_source *b);

/* base NULL: none */
static inline struct slice object_etag(const struct object *object) {
    if (object->etag_length == 0)
        return slice_make(NULL, 0);
    return slice_make(object->bytes + object->url_length + object->etag_at, object->etag_length);
}

/* Content-Type; empty: none */
static inline struct slice object_type(const struct object *object) {
    if (object->type_at == 0)
        return slice_make("", 0);
    struct slice head = object_head(object);
    const char *value = head.base + object->type_at;
    const char *end = memchr(value, '\r', head.length - object->type_at);
    return slice_make(value, (size_t)(end - value));
}

/* 0: none */
static inline time_t object_last_modified(const struct object *object) {
    uint8_t traits = atomic_load_explicit(&object->traits, memory_order_relaxed);
    return (traits & OBJECT_HAS_MODIFIED) != 0 ? (time_t)object->changed_by : 0;
}

/* Bytes of memory that the object takes, with all of its body. */
size_t object_cost(const struct object *object);
/* Prefetches the members that a walk and a filter read, and the beginning of the URL. */
static inline __attribute__((always_inline)) void object_prefetch(const struct object *object) {
    fetch_ahead(&object->next, CACHE_LINE);
}

/* Prefetches the object up to the first `head_length` bytes of its head. */
static inline __attribute__((always_inline)) void object_prefetch_whole(const struct object *object,
                                                                        size_t head_length) {
    const char *at = (const char *)object, *end = object_head(object).base + head_length;
    fetch_ahead(at, (size_t)(end - at));
}

static inline struct freshness object_freshness(const struct object *object) {
    uint8_t traits = atomic_load_explicit(&object->traits, memory_order_relaxed);
    return (struct freshness){
        .storable = true,
        .always_revalidate = (traits & OBJECT_ALWAYS_REVALIDATE) != 0,
        .never_stale = (traits & OBJECT_NEVER_STALE) != 0,
        .heuristic = (traits & OBJECT_HEURISTIC) != 0,
        .expired = (traits & OBJECT_EXPIRED) != 0,
        .lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed),
        .stale_if_error = object->stale_if_error,
        .stale_while_revalidate = object->stale_while_revalidate,
        .initial_age = object->initial_age,
        .response_time = object->response_time,
    };
}

/* Makes the object fresh for `seconds` from `now` on. 0: makes it stale; an object that is stale
 * already keeps the time since when it is. */
void object_set_lifetime(struct object *object, int64_t seconds, time_t now);

/* Does what a purge that does not remove does: PURGE_STALE, PURGE_DOUBT. */
void object_outdate(struct object *object, bool doubted, time_t now);

/* `key` is the key of `url`. `response` has been cleaned of hop-by-hop fields. The body
 * is referenced. */
struct object *object_new(struct cache_key key, struct slice url, const struct http_head *request,
                          const struct http_head *response, const struct freshness *freshness,
                          struct body *body);
/* Like object_new; `making` says how services had a hand in the object. `selector`, in the form of
 * object_selector, replaces what the response's Vary says; NULL: Vary counts. */
struct object *object_new_made(struct cache_key key, struct slice url,
                               const struct http_head *request, const struct http_head *response,
                               const struct freshness *freshness, struct body *body,
                               const struct object_provenance *provenance,
                               const struct slice *selector);
/* RFC 9111 §3.2: makes the stored head with the fields of a 304 in place of its own. `merged`
 * is scratch space and afterwards holds the new head, from which the caller computes
 * `freshness`. False: both heads together have more fields than a head may have, and a missing
 * field may matter. */
bool object_merge_head(const struct object *object, const struct http_head *not_modified,
                       struct http_head *merged);
/* The data of an object besides its key, its text and its body, for storing it elsewhere. */
struct object_image {
    int32_t lifetime, initial_age, stale_if_error, stale_while_revalidate;
    uint32_t response_time, changed_by, tags, etag_at;
    uint16_t etag_length, status;
    uint8_t scope, traits, unused[2];
};

void object_export(const struct object *object, struct object_image *image);
/* NULL: the data is not that of an object. The body is referenced. */
struct object *object_import(struct cache_key key, const struct object_image *image,
                             struct slice url, struct slice head, struct slice vary,
                             struct body *body);
struct object *object_reference(struct object *object);
void object_release(struct object **objectp);
/* Prefetches the memory that object_release will read. */
void object_prefetch_release(const struct object *object);

/* Does this request, on that kind of listener, select this variant (RFC 9111 §4.1), whichever
 * services had a hand in it? */
bool object_matches(const struct object *object, const struct http_head *request,
                    enum object_scope scope);
/* Do both stand for the same requests? */
bool object_same_variant(const struct object *a, const struct object *b);
/* Have both the same name, and is there a request that selects both, so that the newer object takes
 * the other's place (RFC 9111 §4)? */
bool object_overlaps(const struct object *a, const struct object *b);
/* Is `made` a variant that services made of `stored`? Its selector begins with the selector
 * of `stored`. */
bool object_is_made_of(const struct object *made, const struct object *stored);
/* Is `tag` one of the keys in Surrogate-Key (separated by blanks) or Cache-Tag (by commas)? The
 * keys are read from the stored head. An object has no second copy of them, only a few bits that
 * rule out most objects without the key. */
bool object_has_tag(const struct object *object, struct slice tag);
/* Calls `see` for each of those keys. */
void object_each_tag(const struct object *object, void (*see)(void *arg, struct slice tag),
                     void *arg);
/* Which bit of object.tags is the key's. */
unsigned object_tag_bit(struct slice tag);
/* Like object_has_tag, by those bits alone: true may be wrong. */
bool object_may_have_tag(const struct object *object, struct slice tag);
/* Parses the stored head again, for the paths that need single fields. */
void object_parse_head(const struct object *object, struct http_head *head);

#endif
