#include "net/own_connections.h"

#include "base/assert.h"
#include "base/shared_table.h"

/* Both ends of a connection, in one form for IPv4 and for IPv4 in IPv6. */
struct ends {
    uint8_t ips[2][16];
    in_port_t ports[2];
};

struct own_connection {
    struct shared_entry entry;
    unsigned magic;
#define OWN_CONNECTION_MAGIC 0x0e4c0ec7u
    struct ends ends;
};

struct own_connections {
    unsigned magic;
#define OWN_CONNECTIONS_MAGIC 0x0e4c0ec5u
    struct shared_table *table;
};

static void own_connection_on_removal(struct shared_entry *entry) {
    struct own_connection *own = CONTAINER_OF(entry, struct own_connection, entry);
    CHECK_OBJ(own, OWN_CONNECTION_MAGIC);
    FREE_OBJ(own);
}

struct own_connections *own_connections_new(void) {
    struct own_connections *set;
    ALLOC_OBJ(set, OWN_CONNECTIONS_MAGIC);
    set->table = shared_table_new(SHARED_TABLE_ANY, own_connection_on_removal);
    return set;
}

void own_connections_free(struct own_connections **setp) {
    struct own_connections *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    shared_table_free(&set->table);
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

static struct slice ends_bytes(const struct ends *ends) {
    return slice_make((const char *)ends, sizeof *ends);
}

struct own_connection *own_connections_add(struct own_connections *set, int fd,
                                           const struct address *to) {
    struct address from = {.length = sizeof from.v6};
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    if (getsockname(fd, &from.any, &from.length) != 0)
        return NULL;
    struct own_connection *own;
    ALLOC_OBJ(own, OWN_CONNECTION_MAGIC);
    own->ends = ends_of(&from, to);
    struct slice key = ends_bytes(&own->ends);
    struct shared_part *part = shared_table_lock(set->table, key, 0);
    shared_part_put(part, &own->entry, key, 1);
    shared_part_unlock(part);
    return own;
}

void own_connections_remove(struct own_connections *set, struct own_connection **ownp) {
    struct own_connection *own = *ownp;
    *ownp = NULL;
    if (own == NULL)
        return;
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    struct shared_part *part = shared_table_lock_of(set->table, &own->entry);
    shared_part_remove(part, &own->entry);
    shared_part_unlock(part);
}

bool own_connections_have(struct own_connections *set, const struct address *from,
                          const struct address *to) {
    const struct ends ends = ends_of(from, to);
    CHECK_OBJ(set, OWN_CONNECTIONS_MAGIC);
    struct shared_part *part = shared_table_lock(set->table, ends_bytes(&ends), 0);
    bool found = shared_part_find(part) != NULL;
    shared_part_unlock(part);
    return found;
}
