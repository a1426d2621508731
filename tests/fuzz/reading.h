/*
 * What a parser makes of a message head, for comparing Retort's with llhttp, the one of Node.js.
 *
 *     struct reading ours, theirs;
 *     reading_by_retort(&ours, head);
 *     reading_by_llhttp(&theirs, head);
 *     const char *what = reading_difference(&ours, &theirs);     NULL: none
 *
 * A head that begins with "HTTP/" is that of a response (to a GET), any other that of a request.
 * The framing is part of the reading: whoever can't say where the body ends has refused the head.
 *
 * Threads: one; llhttp is called with a byte at a time, so that it is known where its head ends.
 */
#ifndef RETORT_TESTS_FUZZ_READING_H
#define RETORT_TESTS_FUZZ_READING_H

#include "http/framing.h"

/* Heads of this length and no more can be read. */
enum { READING_MAX = 16 << 10, READING_FIELDS_MAX = READING_MAX / 4 };

enum reading_verdict { READING_INCOMPLETE, READING_REFUSED, READING_ACCEPTED };

struct reading {
    enum reading_verdict verdict;
    const char *error; /* where it is refused */
    /* The rest where it is accepted. */
    size_t used; /* bytes of the head */
    unsigned status;
    struct slice method, target;
    enum framing_kind kind; /* FRAMING_NONE also for a length of 0 */
    uint64_t length;
    unsigned field_count;
    size_t text_length;
    char text[READING_MAX]; /* what the slices point to, where it is not the input */
    struct {
        struct slice name, value;
    } fields[READING_FIELDS_MAX + 1];
};

bool reading_is_response(struct slice head);
void reading_by_retort(struct reading *reading, struct slice head);
void reading_by_llhttp(struct reading *reading, struct slice head);

/* The same verdict, and when that is good, the same message. NULL, or what differs. */
const char *reading_difference(const struct reading *a, const struct reading *b);

#endif
