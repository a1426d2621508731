#include "net/pool.h"

#include "base/assert.h"
#include "base/table.h"

#include <limits.h>

enum { EMPTY_KEPT = 64 };

/* The idle connections of one key. The keys that became empty last are kept, since their
 * connections usually come back. */
struct pool_key {
    struct table_entry entry;
    unsigned magic;
#define POOL_KEY_MAGIC 0x900150e7u
    struct pool *pool;
    struct list_link idle;       /* newest first */
    struct list_link empty_link; /* in pool->empty while the key has no idle connection */
    unsigned count;
    char bytes[];
};

struct pool {
    unsigned magic;
#define POOL_MAGIC 0x90019001u
    struct net_context *net;
    uint64_t *idle_gauge;
    unsigned count, limit;
    unsigned hand; /* the chain of keys where the next connection is dropped for another one */
    struct table keys;
    struct list_link empty; /* keys, oldest first */
    unsigned empty_count;
};

struct pool *pool_new(struct net_context *net, uint64_t *idle_gauge) {
    struct pool *pool;
    ALLOC_OBJ(pool, POOL_MAGIC);
    pool->net = net;
    pool->idle_gauge = idle_gauge;
    pool->limit = UINT_MAX;
    table_init(&pool->keys);
    list_init(&pool->empty);
    return pool;
}

void pool_set_limit(struct pool *pool, unsigned limit) {
    CHECK_OBJ(pool, POOL_MAGIC);
    pool->limit = limit;
}

/* NULL: there is none. */
static struct pool_key *pool_key_of(struct table_entry *entry) {
    return entry == NULL ? NULL : CONTAINER_OF(entry, struct pool_key, entry);
}

static void forget_oldest_empty(struct pool *pool) {
    struct pool_key *key = CONTAINER_OF(list_first(&pool->empty), struct pool_key, empty_link);
    list_remove(&key->empty_link);
    pool->empty_count--;
    table_remove(&pool->keys, &key->entry);
    FREE_OBJ(key);
}

static void forget_empty(struct pool *pool) {
    while (pool->empty_count > 0)
        forget_oldest_empty(pool);
}

static void note_empty(struct pool_key *key) {
    struct pool *pool = key->pool;
    list_append(&pool->empty, &key->empty_link);
    if (++pool->empty_count > EMPTY_KEPT)
        forget_oldest_empty(pool);
}

/* Takes a connection out of its key. The timer is switched off but stays in the heap, so that it is
 * cheap to set when the connection comes back. */
static void pool_leave(struct connection *connection) {
    struct pool_key *key;
    CAST_OBJ(key, connection->pool_key, POOL_KEY_MAGIC);
    list_remove(&connection->pool_link);
    timer_set(&connection->net->loop->timers, &connection->timer, TIMER_NEVER);
    connection->pool_key = NULL;
    (*key->pool->idle_gauge)--;
    key->pool->count--;
    if (--key->count == 0)
        note_empty(key);
}

static void pool_drop(struct connection *connection) {
    pool_leave(connection);
    connection_close(&connection);
}

/* The read is needed only when the last read filled its buffer. */
bool pool_would_take(struct connection *connection) {
    char byte;
    size_t got;
    if (connection->hangup)
        return false;
    return !connection->readable || connection_read(connection, &byte, 1, &got) == IO_WAIT;
}

/* A TLS server may send records without data, such as session tickets. Such a connection stays in
 * the pool. */
static void pool_on_ready(struct connection *connection) {
    if (connection->readable && (connection->tls == NULL || !pool_would_take(connection)))
        pool_drop(connection);
}

static void pool_on_timeout(struct timer *timer) {
    pool_drop(CONTAINER_OF(timer, struct connection, timer));
}

void pool_close_idle(struct pool *pool) {
    CHECK_OBJ(pool, POOL_MAGIC);
    forget_empty(pool); /* otherwise pool_drop could free a key that the loop below still uses */
    TABLE_FOR_EACH_SAFE(entry, following, &pool->keys) {
        struct pool_key *key = pool_key_of(entry);
        for (unsigned left = key->count; left > 0; left--)
            pool_drop(CONTAINER_OF(list_first(&key->idle), struct connection, pool_link));
    }
}

unsigned pool_count(const struct pool *pool) {
    CHECK_OBJ(pool, POOL_MAGIC);
    return pool->count;
}

void pool_free(struct pool **poolp) {
    struct pool *pool = *poolp;
    *poolp = NULL;
    if (pool == NULL)
        return;
    pool_close_idle(pool);
    forget_empty(pool);
    table_release(&pool->keys);
    FREE_OBJ(pool);
}

static struct pool_key *key_with_idle(struct pool *pool, struct slice text) {
    CHECK_OBJ(pool, POOL_MAGIC);
    struct pool_key *key = pool_key_of(table_find(&pool->keys, text));
    return key == NULL || key->count == 0 ? NULL : key;
}

void pool_close_key(struct pool *pool, struct slice text) {
    struct pool_key *key;
    while ((key = key_with_idle(pool, text)) != NULL)
        pool_drop(CONTAINER_OF(list_first(&key->idle), struct connection, pool_link));
}

void pool_visit(struct pool *pool, struct slice text,
                void (*visit)(struct connection *connection, void *arg), void *arg) {
    struct pool_key *key = key_with_idle(pool, text);
    if (key == NULL)
        return;
    LIST_FOR_EACH (link, &key->idle)
        visit(CONTAINER_OF(link, struct connection, pool_link), arg);
}

static struct connection *newest(struct pool_key *key) {
    return CONTAINER_OF(list_first(&key->idle), struct connection, pool_link);
}

struct connection *pool_take(struct pool *pool, struct slice text, connection_ready_fn *ready,
                             void *owner) {
    struct pool_key *key = key_with_idle(pool, text);
    if (key == NULL)
        return NULL;
    struct connection *connection = newest(key);
    pool_leave(connection);
    connection_set_owner(connection, ready, owner);
    return connection;
}

/* Since the connection became idle, the loop has asked for events and served all of them. If bytes
 * had arrived, the pool would have closed the connection. */
static bool was_quiet(const struct connection *connection) {
    const struct loop *loop = connection->net->loop;
    return loop->seen == loop->looks && loop->seen > connection->pooled_at;
}

/* Returns the newest connection that is known to be quiet, or else the newest one. For connections
 * that came in a moment ago, only a system call can tell. */
static struct connection *quietest(struct pool_key *key) {
    LIST_FOR_EACH (link, &key->idle) {
        struct connection *connection = CONTAINER_OF(link, struct connection, pool_link);
        if (was_quiet(connection))
            return connection;
    }
    return newest(key);
}

struct connection *pool_take_quiet(struct pool *pool, struct slice text, connection_ready_fn *ready,
                                   void *owner) {
    struct pool_key *key;
    while ((key = key_with_idle(pool, text)) != NULL) {
        struct connection *connection = quietest(key);
        char byte;
        size_t got;
        pool_leave(connection);
        if (was_quiet(connection) || connection_read(connection, &byte, 1, &got) == IO_WAIT) {
            connection_set_owner(connection, ready, owner);
            return connection;
        }
        connection_close(&connection);
    }
    return NULL;
}

static struct pool_key *key_that_has_some(struct table_entry *entry) {
    while (entry != NULL && pool_key_of(entry)->count == 0)
        entry = entry->next;
    return pool_key_of(entry);
}

/* Makes room for one connection. Whose is closed is left to the order of the table: a client that
 * fills the pool with connections to many names must not close those of one chosen name. */
static void pool_drop_any(struct pool *pool) {
    struct pool_key *key;
    do
        key = key_that_has_some(table_chain(&pool->keys, pool->hand++));
    while (key == NULL);
    pool_drop(CONTAINER_OF(key->idle.prev, struct connection, pool_link));
    pool->net->counters.idle_connections_dropped++;
}

static struct pool_key *pool_make_key(struct pool *pool, struct slice text, uint64_t hash) {
    struct pool_key *key = xcalloc(1, sizeof *key + text.length);
    key->magic = POOL_KEY_MAGIC;
    key->pool = pool;
    list_init(&key->idle);
    list_init(&key->empty_link);
    table_add_hashed(&pool->keys, &key->entry, slice_copy(key->bytes, text), hash);
    return key;
}

void pool_give(struct pool *pool, struct slice text, struct connection **connectionp,
               uint64_t idle_timeout, unsigned max_idle) {
    struct connection *connection = *connectionp;
    *connectionp = NULL;
    uint64_t hash = secret_hash(text);
    if (max_idle > 0 && pool->count > 0 && pool->count >= pool->limit)
        pool_drop_any(pool);
    struct pool_key *key = pool_key_of(table_find_hashed(&pool->keys, text, hash));
    if (max_idle == 0 || (key != NULL && key->count >= max_idle) || !pool_would_take(connection)) {
        connection_close(&connection);
        return;
    }
    if (key == NULL)
        key = pool_make_key(pool, text, hash);
    connection_set_owner(connection, pool_on_ready, pool);
    connection->pool_key = key;
    connection->pooled_at = pool->net->loop->looks;
    if (key->count++ == 0 && !list_empty(&key->empty_link)) {
        list_remove(&key->empty_link);
        pool->empty_count--;
    }
    (*pool->idle_gauge)++;
    pool->count++;
    list_prepend(&key->idle, &connection->pool_link);
    connection_await(connection, 1);
    connection->timer.on_timeout = pool_on_timeout;
    loop_timer_after(pool->net->loop, &connection->timer, idle_timeout);
}
