/*
 * A table of fixed size whose entries are found by a digest with a secret. It is divided into rows
 * of a few entries; the digest says which row an entry is in, and nobody can choose it. What an
 * entry is, which one is the wanted, and which one makes room when the row is full, is the user's
 * matter. base/shared_table.h evicts by use alone; here a client must not drive out another one's.
 *
 *     struct digest_rows table;
 *     digest_rows_init(&table, 20000, sizeof(struct entry));
 *     struct entry *row = digest_rows_lock(&table, key);
 *     for (size_t i = 0; i < DIGEST_ROW; i++) ... row[i] ...
 *     digest_rows_unlock(&table, key);
 *     digest_rows_release(&table);
 *
 * Threads: any. Locks: a few, shared by the rows. A thread holds one at a time, and holds it only
 * while it looks at a row.
 */
#ifndef RETORT_IDENTITY_DIGEST_ROWS_H
#define RETORT_IDENTITY_DIGEST_ROWS_H

#include "secrets/secret_digest.h"

#include <pthread.h>

enum { DIGEST_ROW = 8, DIGEST_ROWS_LOCKS = 64 };

struct digest_rows {
    char *entries;
    size_t entry_size, rows;
    pthread_mutex_t locks[DIGEST_ROWS_LOCKS];
};

/* `entries`: for how many there is room at least. All bytes of them are 0. */
void digest_rows_init(struct digest_rows *table, size_t entries, size_t entry_size);
void digest_rows_release(struct digest_rows *table);

/* The first of the DIGEST_ROW entries among which that of the key is. */
void *digest_rows_lock(struct digest_rows *table, const unsigned char key[SECRET_DIGEST]);
void digest_rows_unlock(struct digest_rows *table, const unsigned char key[SECRET_DIGEST]);

/* For the end: an entry of the whole table, without its lock. NULL: there are no more. */
void *digest_rows_entry(const struct digest_rows *table, size_t at);

#endif
