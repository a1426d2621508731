/*
 * A leaf: the certificate that the proxy shows to the client of an intercepted connection. The
 * authority of the settings signs it.
 *
 *     char error[LEAF_ERROR];
 *     struct leaf_request request = {.name = SLICE("www.example.com"), .not_after = expiry};
 *     struct leaf *leaf = leaf_mint(authority, key, &request, time(NULL), error);
 *     if (leaf != NULL)
 *         ...                        show leaf->certificate and leaf->chain, sign with leaf->key
 *     leaf_release(&leaf);
 *
 * The leaf is for exactly one name: its subjectAltName has that DNS name or IP address and nothing
 * else. The name is checked and then stored as an ASN.1 object; it is never part of a text that
 * anything parses. A text that is neither a valid host name (tls/server_name.h) nor an IP address
 * is refused.
 *
 * A leaf begins LEAF_BACK_DATED before it is minted, since clocks of clients may be wrong. It is
 * valid for LEAF_LIFETIME, but never before or after its authority, and never after the origin's
 * certificate. It has a random serial number of 128 bits. The name is also the subject's common
 * name if it has at most 64 bytes (RFC 5280 appendix A.1); otherwise the subject is empty and the
 * subjectAltName is critical.
 *
 * A refusable leaf is signed with a key that nobody knows or trusts, so that a browser warns its
 * user.
 *
 * A leaf takes about 65 microseconds to mint if the authority has a P-256 key, and about 420 if it
 * has an RSA key of 2048 bits.
 *
 * Threads: any; read-only once minted; the reference count is atomic. Units: seconds since 1970.
 */
#ifndef RETORT_INTERCEPT_LEAF_H
#define RETORT_INTERCEPT_LEAF_H

#include "base/slice.h"
#include "tls/authority.h"

enum {
    LEAF_ERROR = 200,
    LEAF_LIFETIME = 30 * 24 * 3600,
    LEAF_BACK_DATED = 2 * 24 * 3600,
    LEAF_COMMON_NAME_MAX = 64,
};

struct leaf_request {
    struct slice name; /* a host name, or an IP address without brackets; case does not matter */
    bool rsa;          /* for a client that can't verify ECDSA with P-256 */
    bool refusable;    /* the client's browser is to warn its user */
    int64_t not_after; /* of the origin's certificate; 0: unknown */
};

struct leaf {
    unsigned magic;
#define LEAF_MAGIC 0x1eaf1eafu
    _Atomic unsigned references;
    X509 *certificate;
    EVP_PKEY *key;
    struct stack_st_X509 *chain; /* the authority's */
    struct authority *authority;
    int64_t expires;
};

/* NULL: `error` has a sentence. Takes a reference of its own on the key. */
struct leaf *leaf_mint(struct authority *authority, EVP_PKEY *key,
                       const struct leaf_request *request, int64_t now, char error[LEAF_ERROR]);
struct leaf *leaf_reference(struct leaf *leaf);
void leaf_release(struct leaf **leafp);
/* When a leaf that is minted now would expire. */
int64_t leaf_expiry(const struct authority *authority, const struct leaf_request *request,
                    int64_t now);

/* Writes the canonical form of the name: a host name in lower case without a dot at its end, or an
 * IP address as inet_ntop(3) writes it. False: it is neither. */
enum { LEAF_NAME_ROOM = 256 };
bool leaf_put_name(char out[LEAF_NAME_ROOM], struct slice name);

#endif
