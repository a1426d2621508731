/*
 * Hashes of passwords as htpasswd files have them: those of crypt(3) (bcrypt, yescrypt, gost-
 * yescrypt, scrypt, SHA-crypt), apr1 and {SHA}.
 *
 *     char reason[200];
 *     if (!password_hash_check("$2y$05$...", reason, sizeof reason)) ...   why it can't be used
 *     if (password_hash_matches("$2y$05$...", password)) ...               takes its time
 *
 * Plain text, DES, MD5-crypt of crypt(3) and NT hashes are refused: they are no protection.
 *
 * Threads: any; password_hash_matches uses 32 KB of its own, which it wipes.
 */
#ifndef RETORT_IDENTITY_PASSWORD_HASH_H
#define RETORT_IDENTITY_PASSWORD_HASH_H

#include "base/slice.h"

enum { PASSWORD_HASH_MAX = 383 }; /* CRYPT_OUTPUT_SIZE without the NUL */

bool password_hash_check(const char *hash, char *reason, size_t reason_size);
/* The hash is one that was checked. The password contains no NUL. Compares in the same time for all
 * passwords. */
bool password_hash_matches(const char *hash, struct slice password);

#endif
