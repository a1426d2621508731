#include "net/lookup_share.h"

#include "base/assert.h"

#include <stdlib.h>

enum { SHARE_KEY = 1 + 16 }; /* the family, and the address of the network */

struct lookup_share {
    struct table_entry entry;
    unsigned count;
    char key[SHARE_KEY];
};

static struct slice share_key(const struct address *client, char room[SHARE_KEY]) {
    struct network network = {.v6 = false};
    struct address address = *client;
    address_unmap(&address);
    if (!network_around(&network, &address, false, 32))
        network_around(&network, &address, true, 64);
    room[0] = network.v6;
    memcpy(room + 1, network.prefix, sizeof network.prefix);
    return slice_make(room, SHARE_KEY);
}

static struct lookup_share *lookup_share_of(struct table *shares, const struct address *client) {
    char room[SHARE_KEY];
    struct slice key = share_key(client, room);
    struct table_entry *entry = table_find(shares, key);
    if (entry != NULL)
        return CONTAINER_OF(entry, struct lookup_share, entry);
    struct lookup_share *share = xcalloc(1, sizeof *share);
    table_add(shares, &share->entry, slice_copy(share->key, key));
    return share;
}

bool lookup_share_take(struct table *shares, const struct address *client, unsigned most,
                       struct lookup_share **sharep) {
    *sharep = NULL;
    if (client == NULL || client->any.sa_family == AF_UNIX)
        return true;
    struct lookup_share *share = lookup_share_of(shares, client);
    if (share->count >= most)
        return false;
    share->count++;
    *sharep = share;
    return true;
}

void lookup_share_give(struct table *shares, struct lookup_share **sharep) {
    struct lookup_share *share = *sharep;
    *sharep = NULL;
    if (share == NULL || --share->count > 0)
        return;
    table_remove(shares, &share->entry);
    free(share);
}
