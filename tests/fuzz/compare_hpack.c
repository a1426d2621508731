/*
 * Compares our HPACK with libnghttp2's: runs the fuzzer of HPACK on its corpus, and, of each file,
 * on thousands of inputs made from it by changes that are the same in every run.
 *
 *     compare-hpack DIRECTORY-OF-THE-CORPUS
 *
 * A difference ends the program with a failed assertion. A file is a case.
 */
#include "base/assert.h"
#include "fuzz_hpack.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { COMPARE_MOST = 4096, CHANGED_PER_FILE = 20000 };

/* The same numbers in every run (xorshift). */
static uint32_t next_number(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Changes, takes out, doubles or inserts a byte or several. */
static size_t change(uint8_t *bytes, size_t length, uint32_t *state) {
    size_t at = next_number(state) % (length + 1);
    size_t count = 1 + next_number(state) % 4;
    switch (next_number(state) % 4) {
    case 0:
        if (at < length)
            bytes[at] = (uint8_t)next_number(state);
        return length;
    case 1:
        if (at < length)
            bytes[at] ^= (uint8_t)(1u << next_number(state) % 8);
        return length;
    case 2:
        count = count > length - at ? length - at : count;
        memmove(bytes + at, bytes + at + count, length - at - count);
        return length - count;
    default:
        if (length + count > COMPARE_MOST)
            return length;
        memmove(bytes + at + count, bytes + at, length - at);
        for (size_t i = 0; i < count; i++)
            bytes[at + i] = (uint8_t)next_number(state);
        return length + count;
    }
}

static void compare_file(const char *directory, const char *name, uint32_t seed) {
    uint8_t bytes[COMPARE_MOST], changed[COMPARE_MOST];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    ASSERT(file != NULL);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, length);
    for (unsigned i = 0; i < CHANGED_PER_FILE; i++) {
        size_t changed_length = length;
        memcpy(changed, bytes, length);
        for (unsigned changes = 1 + next_number(&seed) % 4; changes > 0; changes--)
            changed_length = change(changed, changed_length, &seed);
        LLVMFuzzerTestOneInput(changed, changed_length);
    }
}

int main(int argc, char **argv) {
    unsigned passed = 0;
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    if (directory == NULL) {
        fprintf(stderr, "usage: compare-hpack DIRECTORY-OF-THE-CORPUS\n");
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        compare_file(argv[1], entry->d_name, 2463534242u + passed);
        passed++;
    }
    closedir(directory);
    printf("%u passed, 0 failed\n", passed);
    return passed == 0;
}
