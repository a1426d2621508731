#include "transparent/own_connections.h"

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

struct own_table {
    struct own_connections base;
    unsigned magic;
#define OWN_TABLE_MAGIC 0x0e4c0ec5u
    struct shared_table *table;
};

static struct own_table *own_table_of(struct own_connections *base) {
    struct own_table *set = CONTAINER_OF(base, struct own_table, base);
    CHECK_OBJ(set, OWN_TABLE_MAGIC);
    return set;
}

static void own_connection_on_removal(struct shared_entry *entry) {
    struct own_connection *own = CONTAINER_OF(entry, struct own_connection, entry);
    CHECK_OBJ(own, OWN_CONNECTION_MAGIC);
    FREE_OBJ(own);
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

static struct own_connection *own_connections_add(struct own_connections *base, int fd,
                                                  const struct address *to) {
    struct own_table *set = own_table_of(base);
    struct address from = {.length = sizeof from.v6};
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

static void own_connections_remove(struct own_connections *base, struct own_connection **ownp) {
    struct own_connection *own = *ownp;
    *ownp = NULL;
    struct shared_part *part = shared_table_lock_of(own_table_of(base)->table, &own->entry);
    shared_part_remove(part, &own->entry);
    shared_part_unlock(part);
}

bool own_connections_have(struct own_connections *base, const struct address *from,
                          const struct address *to) {
    const struct ends ends = ends_of(from, to);
    struct shared_part *part = shared_table_lock(own_table_of(base)->table, ends_bytes(&ends), 0);
    bool found = shared_part_find(part) != NULL;
    shared_part_unlock(part);
    return found;
}

struct own_connections *own_connections_new(void) {
    struct own_table *set;
    ALLOC_OBJ(set, OWN_TABLE_MAGIC);
    set->base = (struct own_connections){own_connections_add, own_connections_remove};
    set->table = shared_table_new(SHARED_TABLE_ANY, own_connection_on_removal);
    return &set->base;
}

void own_connections_free(struct own_connections **basep) {
    struct own_connections *base = *basep;
    *basep = NULL;
    if (base == NULL)
        return;
    struct own_table *set = own_table_of(base);
    shared_table_free(&set->table);
    FREE_OBJ(set);
}
