#include "claims.h"

#include "base/assert.h"
#include "net/listener.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SOCKETS_MOST = 1024 }; /* of one address */

/* The sockets of one address. */
struct claim {
    int *fds; /* -1: taken */
    unsigned count;
    bool inherited; /* the one at place i is for worker i % workers */
};

struct claims {
    unsigned magic;
#define CLAIMS_MAGIC 0xc1a1350fu
    unsigned workers;
    size_t count;
    struct claim all[]; /* in the order of settings->listens */
};

static bool claims_is_wildcard(const struct address *address) {
    if (address->any.sa_family == AF_INET)
        return address->v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* Do both addresses have the same port, and is one of them the wildcard address? */
static bool overlap(const struct address *a, const struct address *b) {
    return address_port(a) == address_port(b) && (claims_is_wildcard(a) || claims_is_wildcard(b));
}

/* Is there a socket of our own that overlaps with this address? Then the kernel would refuse a
 * socket without SO_REUSEPORT. A wildcard socket of ours keeps other processes away already. */
static bool is_ours(const struct claims *claims, const struct settings *settings,
                    const struct settings *old, const struct inherited *inherited,
                    const struct address *address) {
    for (size_t i = 0; old != NULL && i < old->listen_count; i++)
        if (overlap(&old->listens[i].address, address))
            return true;
    for (size_t i = 0; i < claims->count; i++)
        if (claims->all[i].count > 0 && overlap(&settings->listens[i].address, address))
            return true;
    return inherited_has_port(inherited, address_port(address));
}

/* True: another process opened sockets at the address. */
static bool claim_inherited(struct claims *claims, struct claim *claim, struct inherited *inherited,
                            const struct address *address) {
    int fds[SOCKETS_MOST];
    unsigned count = inherited_take(inherited, address, fds, SOCKETS_MOST);
    if (count == 0)
        return false;
    unsigned all = count > claims->workers ? count : claims->workers;
    claim->fds = xcalloc(all, sizeof *claim->fds);
    for (unsigned i = 0; i < all; i++)
        claim->fds[i] = i < count ? fds[i] : fcntl(fds[i % count], F_DUPFD_CLOEXEC, 0);
    for (unsigned i = 0; i < count; i++)
        listener_adopt(fds[i]);
    claim->count = all;
    claim->inherited = true;
    return true;
}

static void claims_claim(struct claims *claims, size_t i, const struct settings *settings,
                         const struct settings *old, struct inherited *inherited,
                         struct findings *findings) {
    const struct address *address = &settings->listens[i].address;
    struct claim *claim = &claims->all[i];
    char error[LISTENER_ERROR];
    if ((old != NULL && settings_listens_at(old, address)) ||
        claim_inherited(claims, claim, inherited, address))
        return;
    bool alone = !settings->share_listeners && !is_ours(claims, settings, old, inherited, address);
    int fd = listener_claim(address, alone, error);
    if (fd < 0) {
        findings_add(findings, "%s", error);
        return;
    }
    claim->fds = xcalloc(1, sizeof *claim->fds);
    claim->fds[0] = fd;
    claim->count = 1;
}

struct claims *claims_make(const struct settings *settings, const struct settings *old,
                           struct inherited *inherited, struct findings *findings) {
    size_t count = settings->listen_count;
    struct claims *claims = xcalloc(1, sizeof *claims + count * sizeof claims->all[0]);
    claims->magic = CLAIMS_MAGIC;
    claims->workers = settings->workers;
    claims->count = count;
    for (int wildcards = 1; wildcards >= 0; wildcards--)
        for (size_t i = 0; i < count; i++)
            if (claims_is_wildcard(&settings->listens[i].address) == (wildcards == 1))
                claims_claim(claims, i, settings, old, inherited, findings);
    if (findings->count > 0)
        claims_free(&claims);
    return claims;
}

int claims_take(struct claims *claims, size_t i, unsigned worker) {
    if (claims == NULL)
        return -1;
    CHECK_OBJ(claims, CLAIMS_MAGIC);
    ASSERT(i < claims->count);
    struct claim *claim = &claims->all[i];
    for (unsigned j = 0; j < claim->count; j++) {
        int fd = claim->fds[j];
        if (fd < 0 || (claim->inherited && j % claims->workers != worker))
            continue;
        claim->fds[j] = -1;
        return fd;
    }
    return -1;
}

void claims_free(struct claims **claimsp) {
    struct claims *claims = *claimsp;
    *claimsp = NULL;
    if (claims == NULL)
        return;
    CHECK_OBJ(claims, CLAIMS_MAGIC);
    for (size_t i = 0; i < claims->count; i++) {
        for (unsigned j = 0; j < claims->all[i].count; j++)
            if (claims->all[i].fds[j] >= 0)
                close(claims->all[i].fds[j]);
        free(claims->all[i].fds);
    }
    FREE_OBJ(claims);
}
