#include "net/own_connections.h"

#include "base/assert.h"
#include "net/secret_hash.h"

#include <pthread.h>

enum { PARTS = 64, BUCKETS = 64 }; /* buckets of each part */

/* Both ends of a connection, in one form for IPv4 and for IPv4 in IPv6. */
struct ends {
    uint8_t ips[2][16];
    in_port_t ports[2];
};

struct own_connection {
    unsigned magic;
#define OWN_CONNECTION_MAGIC 0x0e4c0ec7u
    struct own_connection *next;
    uint32_t hash;
    struct ends ends;
};

struct part {
    pthread_mutex_t lock;
    struct own_connection *buckets[BUCKETS];
};

struct own_connections {
    unsigned magic;
#define OWN_CONNECTIONS_MAGIC 0x0e4c0ec5u
    struct part parts[PARTS];
};

struct own_connections *own_connections_new(void) {
    struct own_connections *set;
    ALLOC_OBJ(set, OWN_CONNECTIONS_MAGIC);
    for (unsigned i = 0; i < PARTS; i++)
        pthread_mutex_init(&set->parts[i].lock, NULL);
    return set;
}

void own_connections_free(struct own_connections **setp) {
    struct own_connections *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    for (unsigned i = 0; i < PARTS; i++)
        pthread_mutex_destroy(&set->parts[i].lock);
    FREE_OBJ(set);
}

static void put_end(struct ends *ends, unsigned end, const struct address *address) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    ends->ports[end] = address_port(address);
    if (address->any.sa_family == AF_INET6) {
        memcpy(ends->ips[end], &address->v6.sin6_addr, 16);
    } else if (address->any.sa_family == AF_INET) {
        memcpy(ends->ips[end], mapped, 12);
        memcpy(ends->ips[end] + 12, &address->v4.sin_addr, 4);
    }
}

static struct ends ends_of(const struct address *from, const struct address *to) {
    struct ends ends = {0};
    put_end(&ends, 0, from);
    put_end(&ends, 1, to);
    return ends;
}

static uint32_t ends_hash(const struct ends *ends) {
    return (uint32_t)secret_hash(slice_make((const char *)ends, sizeof *ends));
}

static struct part *own_part_of(struct own_connections *set, uint32_t hash) {
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    return &set->parts[hash % PARTS];
}

static struct own_connection **bucket_of(struct part *part, uint32_t hash) {
    return &part->buckets[hash / PARTS % BUCKETS];
}

struct own_connection *own_connections_add(struct own_connections *set, int fd,
                                           const struct address *to) {
    struct address from = {.length = sizeof from.v6};
    if (getsockname(fd, &from.any, &from.length) != 0)
        return NULL;
    struct own_connection *own;
    ALLOC_OBJ(own, OWN_CONNECTION_MAGIC);
    own->ends = ends_of(&from, to);
    own->hash = ends_hash(&own->ends);
    struct part *part = own_part_of(set, own->hash);
    pthread_mutex_lock(&part->lock);
    struct own_connection **bucket = bucket_of(part, own->hash);
    own->next = *bucket;
    *bucket = own;
    pthread_mutex_unlock(&part->lock);
    return own;
}

void own_connections_remove(struct own_connections *set, struct own_connection **ownp) {
    struct own_connection *own = *ownp;
    *ownp = NULL;
    if (own == NULL)
        return;
    CHECK_OBJ(own, OWN_CONNECTION_MAGIC);
    struct part *part = own_part_of(set, own->hash);
    pthread_mutex_lock(&part->lock);
    struct own_connection **at = bucket_of(part, own->hash);
    while (*at != own)
        at = &(*at)->next;
    *at = own->next;
    pthread_mutex_unlock(&part->lock);
    FREE_OBJ(own);
}

bool own_connections_have(struct own_connections *set, const struct address *from,
                          const struct address *to) {
    const struct ends ends = ends_of(from, to);
    uint32_t hash = ends_hash(&ends);
    struct part *part = own_part_of(set, hash);
    pthread_mutex_lock(&part->lock);
    const struct own_connection *own = *bucket_of(part, hash);
    while (own != NULL && memcmp(&own->ends, &ends, sizeof ends) != 0)
        own = own->next;
    pthread_mutex_unlock(&part->lock);
    return own != NULL;
}
