#include "identity/digest_rows.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

void digest_rows_init(struct digest_rows *table, size_t entries, size_t entry_size) {
    table->rows = entries / DIGEST_ROW + 1;
    table->entry_size = entry_size;
    table->entries = xcalloc(table->rows * DIGEST_ROW, entry_size);
    for (size_t i = 0; i < DIGEST_ROWS_LOCKS; i++)
        pthread_mutex_init(&table->locks[i], NULL);
}

void digest_rows_release(struct digest_rows *table) {
    for (size_t i = 0; i < DIGEST_ROWS_LOCKS; i++)
        pthread_mutex_destroy(&table->locks[i]);
    free(table->entries);
    table->entries = NULL;
}

static size_t digest_row_of(const struct digest_rows *table, const unsigned char *key) {
    uint64_t number;
    memcpy(&number, key, sizeof number);
    return number % table->rows;
}

void *digest_rows_lock(struct digest_rows *table, const unsigned char key[SECRET_DIGEST]) {
    size_t row = digest_row_of(table, key);
    pthread_mutex_lock(&table->locks[row % DIGEST_ROWS_LOCKS]);
    return table->entries + row * DIGEST_ROW * table->entry_size;
}

void digest_rows_unlock(struct digest_rows *table, const unsigned char key[SECRET_DIGEST]) {
    pthread_mutex_unlock(&table->locks[digest_row_of(table, key) % DIGEST_ROWS_LOCKS]);
}

void *digest_rows_entry(const struct digest_rows *table, size_t at) {
    return at < table->rows * DIGEST_ROW ? table->entries + at * table->entry_size : NULL;
}
