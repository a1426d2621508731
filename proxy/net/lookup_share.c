#include "net/lookup_share.h"

#include "base/assert.h"
#include "net/secret_hash.h"

#include <stdlib.h>

struct lookup_share {
    struct lookup_share *next;
    struct network client;
    unsigned count;
};

static struct network share_key(const struct address *client) {
    struct network key = {.v6 = false};
    struct address address = *client;
    address_unmap(&address);
    if (!network_around(&key, &address, false, 32))
        network_around(&key, &address, true, 64);
    return key;
}

static struct lookup_share **lookup_share_find(struct lookup_shares *shares,
                                               const struct network *client) {
    struct slice bytes = slice_make((const char *)client->prefix, sizeof client->prefix);
    struct lookup_share **at = &shares->table[secret_hash(bytes) % LOOKUP_SHARES_SIZE];
    while (*at != NULL && ((*at)->client.v6 != client->v6 ||
                           memcmp((*at)->client.prefix, client->prefix, sizeof client->prefix)))
        at = &(*at)->next;
    return at;
}

bool lookup_share_take(struct lookup_shares *shares, const struct address *client, unsigned most,
                       struct lookup_share **share) {
    *share = NULL;
    if (client == NULL || client->any.sa_family == AF_UNIX)
        return true;
    struct network key = share_key(client);
    struct lookup_share **at = lookup_share_find(shares, &key);
    if (*at == NULL) {
        *at = xcalloc(1, sizeof **at);
        (*at)->client = key;
    }
    if ((*at)->count >= most)
        return false;
    *share = *at;
    (*at)->count++;
    return true;
}

void lookup_share_give(struct lookup_shares *shares, struct lookup_share **sharep) {
    struct lookup_share *share = *sharep;
    *sharep = NULL;
    if (share == NULL || --share->count > 0)
        return;
    struct lookup_share **at = lookup_share_find(shares, &share->client);
    ASSERT(*at == share);
    *at = share->next;
    free(share);
}
