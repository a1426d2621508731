/*
 * What the proxy and a process that runs a service for it say to each other besides frames, by a
 * socket pair of SOCK_SEQPACKET: PROCESS_SOCKET in the process.
 *
 *     to the process:   the descriptors, PROCESS_DESCRIPTORS at most in one message, in the order board,
 *                       wish, eventfd of the runner, eventfds of the workers. Nothing else comes; when
 *                       the proxy closes its end, or is gone, the process ends.
 *     back:             one letter, and words (runner/process.h) or a text behind it
 *       PROCESS_READY   fingerprint, points, preview size, whether it wants the client's address,
 *                       answers_within, whether it has functions for events, name, description, notice, the number of counters, counters
 *       PROCESS_ERROR   a sentence: it can't start, and ends
 *       PROCESS_LOG     a digit for the level, and a line
 *
 * The wish is a memfd of words: name of the section, where it stands, module, helpers (empty: none),
 * nice value, number of workers, number of settings, and for each its name, value, and where it stands.
 *
 * Threads: constants.
 */
#ifndef RETORT_RUNNER_PROCESS_H
#define RETORT_RUNNER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESS_SOCKET = 3,
    PROCESS_DESCRIPTORS = 64,
    PROCESS_MESSAGE = 32 * 1024, /* bytes at most */
    PROCESS_WISH = 1 << 20,
    PROCESS_WORKERS = 4096,
    PROCESS_GRACE = 3, /* seconds that it has to end when the proxy wants it to */
};

#define PROCESS_READY 'R'
#define PROCESS_ERROR 'E'
#define PROCESS_LOG   'L'

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
