/*
 * Words: texts and numbers, each with its NUL, one behind the other. So the proxy tells a process what
 * it is to run, and the process what it has found.
 *
 *     struct words words = {0};
 *     words_add(&words, "gray");
 *     words_add_number(&words, 3);
 *     ... words.bytes, words.length ...
 *     words_release(&words);
 *
 *     struct words_reader reader = {bytes, length};
 *     const char *name = words_next(&reader);                NULL: there is none, or no NUL behind it
 *     uint64_t number = words_next_number(&reader);          0, and reader.bad: it is no number
 *
 * Threads: values.
 */
#ifndef RETORT_RUNNER_WORDS_H
#define RETORT_RUNNER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct words {
    char *bytes;
    size_t length;
};

void words_add(struct words *words, const char *word);
void words_add_bytes(struct words *words, const char *bytes, size_t length); /* without a NUL */
void words_add_number(struct words *words, uint64_t number);
void words_release(struct words *words);

struct words_reader {
    const char *at;
    size_t left;
    bool bad;
};

const char *words_next(struct words_reader *reader);
uint64_t words_next_number(struct words_reader *reader);

#endif
