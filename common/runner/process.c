#include "runner/process.h"

#include "base/assert.h"
#include "base/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_add_bytes(struct words *words, const char *bytes, size_t length) {
    words->bytes = xrealloc(words->bytes, words->length + length + 1);
    if (length > 0)
        memcpy(words->bytes + words->length, bytes, length);
    words->length += length;
    words->bytes[words->length++] = '\0';
}

void words_add(struct words *words, const char *word) {
    words_add_bytes(words, word, strlen(word));
}

void words_add_number(struct words *words, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    words_add(words, text);
}

void words_release(struct words *words) {
    free(words->bytes);
    *words = (struct words){0};
}

const char *words_next(struct words_reader *reader) {
    const char *word = reader->at;
    const char *end = reader->left == 0 ? NULL : memchr(word, '\0', reader->left);
    if (end == NULL) {
        reader->bad = true;
        return NULL;
    }
    reader->left -= (size_t)(end + 1 - word);
    reader->at = end + 1;
    return word;
}

uint64_t words_next_number(struct words_reader *reader) {
    const char *word = words_next(reader);
    uint64_t number = 0;
    if (word == NULL || !slice_to_uint64(slice_from(word), &number)) {
        reader->bad = true;
        return 0;
    }
    return number;
}
