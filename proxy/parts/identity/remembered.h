/*
 * Results of checks that are remembered: credentials that were good need no new check for a while,
 * and neither do those that were not.
 *
 *     const struct slice pieces[] = {digest_of_the_section, scheme, user, password};
 *     secret_digest(pieces, 4, key);
 *     switch (remembered_find(remembered, key, now, wall, &identity)) {
 *     case REMEMBERED_PROVEN:  identity is a new one, the caller's
 *     case REMEMBERED_FAILED:  refuse
 *     case REMEMBERED_NOTHING: check, and then one of
 *         remembered_note_proven(remembered, key, client, identity, now, expires, until);
 *         remembered_note_failed(remembered, key, client, now, expires);
 *     }
 *
 * The key is all that is kept of credentials; it is compared whole, in the same time for all. It
 * contains the digest of the authenticator section, so after a reload that changes who is proved
 * nothing old is found.
 *
 * Good and bad results stand in tables of their own, of fixed size. An entry stands in a row of a
 * few places that its key says. When the row is full, the oldest entry of the client makes room
 * that has most of them there: one client can't drive out the results of others.
 *
 * Threads: any. Units: `now` and `expires` in milliseconds of a clock that is never set back,
 * `wall` and `until` in seconds since 1970.
 */
#ifndef RETORT_IDENTITY_REMEMBERED_H
#define RETORT_IDENTITY_REMEMBERED_H

#include "client/identity.h"
#include "secrets/secret_digest.h"

struct remembered;

enum remembered_state { REMEMBERED_NOTHING, REMEMBERED_PROVEN, REMEMBERED_FAILED };

struct remembered *remembered_new(size_t entries);
void remembered_free(struct remembered **rememberedp);

enum remembered_state remembered_find(struct remembered *remembered,
                                      const unsigned char key[SECRET_DIGEST], uint64_t now,
                                      int64_t wall, struct identity **identity);
/* `client`: a key of address_network_key. `until`: when the proof expires by itself; 0: never.
 * Returns whether another entry that was still good made room. */
bool remembered_note_proven(struct remembered *remembered, const unsigned char key[SECRET_DIGEST],
                            struct slice client, const struct identity *identity, uint64_t now,
                            uint64_t expires, int64_t until);
bool remembered_note_failed(struct remembered *remembered, const unsigned char key[SECRET_DIGEST],
                            struct slice client, uint64_t now, uint64_t expires);

#endif
