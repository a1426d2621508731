/*
 * A digest with a secret of the process: HMAC-SHA256 (RFC 2104). It stands for credentials in
 * memory: whoever reads it can't try passwords against it elsewhere, or after a restart.
 *
 *     unsigned char digest[SECRET_DIGEST];
 *     const struct slice pieces[] = {user, password};
 *     secret_digest(pieces, 2, digest);
 *     if (secret_digest_equal(digest, entry->digest)) ...        takes the same time for all
 *
 * The pieces count with their lengths: "ab","c" is not "a","bc".
 *
 * Threads: any.
 */
#ifndef RETORT_SECRETS_SECRET_DIGEST_H
#define RETORT_SECRETS_SECRET_DIGEST_H

#include "base/slice.h"

enum { SECRET_DIGEST = 32 };

void secret_digest(const struct slice *pieces, size_t count, unsigned char digest[SECRET_DIGEST]);
bool secret_digest_equal(const unsigned char a[SECRET_DIGEST],
                         const unsigned char b[SECRET_DIGEST]);

#endif
