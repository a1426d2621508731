#include "claims.h"

#include "base/assert.h"
#include "net/listener.h"

#include <unistd.h>

struct claims {
    unsigned magic;
#define CLAIMS_MAGIC 0xc1a1350fu
    size_t count;
    int fds[]; /* in the order of settings->listens; -1: no claim, or taken */
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

static bool listens_at(const struct settings *settings, const struct address *address) {
    for (size_t i = 0; settings != NULL && i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, address))
            return true;
    return false;
}

/* Is there a socket of our own that overlaps with this address? Then the kernel would refuse a
 * socket without SO_REUSEPORT. A wildcard socket of ours keeps other processes away already. */
static bool is_ours(const struct claims *claims, const struct settings *settings,
                    const struct settings *old, const struct address *address) {
    for (size_t i = 0; old != NULL && i < old->listen_count; i++)
        if (overlap(&old->listens[i].address, address))
            return true;
    for (size_t i = 0; i < claims->count; i++)
        if (claims->fds[i] >= 0 && overlap(&settings->listens[i].address, address))
            return true;
    return false;
}

static void claims_claim(struct claims *claims, size_t i, const struct settings *settings,
                         const struct settings *old, struct findings *findings) {
    const struct address *address = &settings->listens[i].address;
    char error[LISTENER_ERROR];
    if (listens_at(old, address))
        return;
    bool alone = !settings->share_listeners && !is_ours(claims, settings, old, address);
    claims->fds[i] = listener_claim(address, alone, error);
    if (claims->fds[i] < 0)
        findings_add(findings, "%s", error);
}

struct claims *claims_make(const struct settings *settings, const struct settings *old,
                           struct findings *findings) {
    size_t count = settings->listen_count;
    struct claims *claims = xcalloc(1, sizeof *claims + count * sizeof claims->fds[0]);
    claims->magic = CLAIMS_MAGIC;
    claims->count = count;
    for (size_t i = 0; i < count; i++)
        claims->fds[i] = -1;
    for (int wildcards = 1; wildcards >= 0; wildcards--)
        for (size_t i = 0; i < count; i++)
            if (claims_is_wildcard(&settings->listens[i].address) == (wildcards == 1))
                claims_claim(claims, i, settings, old, findings);
    if (findings->count > 0)
        claims_free(&claims);
    return claims;
}

int claims_take(struct claims *claims, size_t i) {
    if (claims == NULL)
        return -1;
    CHECK_OBJ(claims, CLAIMS_MAGIC);
    ASSERT(i < claims->count);
    int fd = claims->fds[i];
    claims->fds[i] = -1;
    return fd;
}

void claims_free(struct claims **claimsp) {
    struct claims *claims = *claimsp;
    *claimsp = NULL;
    if (claims == NULL)
        return;
    CHECK_OBJ(claims, CLAIMS_MAGIC);
    for (size_t i = 0; i < claims->count; i++)
        if (claims->fds[i] >= 0)
            close(claims->fds[i]);
    FREE_OBJ(claims);
}
