/*
 * Content codings, and how each is undone a piece at a time (RFC 9110 §8.4.1, RFC 7932 for br, RFC
 * 8878 and RFC 9659 for zstd).
 *
 *     const struct coding *codings[CODING_LAYERS_MAX];
 *     int count = coding_list(value, codings);     "gzip, br": gzip was applied first
 *     void *state = codings[i]->open();            NULL: no memory
 *     struct coding_room room = {in, in_length, out, out_length};
 *     switch (codings[i]->run(state, &room))       moves both ends of the room
 *     CODING_MORE     wants more input, or more room
 *     CODING_WHOLE    the same, but the input may end here
 *     CODING_OVER     the end was in the input; what follows belongs to nothing
 *     CODING_BROKEN   this was never coded so
 *     codings[i]->close(state);
 *
 * gzip: several members one after the other are one body (RFC 1952 §2.2). Bytes behind the last
 * one that do not begin another are passed over, as all browsers do; the same goes for frames of
 * zstd, and for what follows br and deflate. deflate is taken with zlib's frame, as it should be,
 * and without, as some servers send it. zstd may ask for a window of 8 MB, and for no more.
 *
 * The part codings undoes them (parts/codings/part.c). Without it none can be undone.
 *
 * Threads: a state belongs to one.
 */
#ifndef RETORT_ADAPT_CODING_H
#define RETORT_ADAPT_CODING_H

#include "base/slice.h"

enum { CODING_LAYERS_MAX = 4, CODING_UNKNOWN = -1 };

enum coding_result { CODING_MORE, CODING_WHOLE, CODING_OVER, CODING_BROKEN };

struct coding_room {
    const char *in;
    size_t in_length;
    char *out;
    size_t out_length;
};

struct coding {
    struct slice name;
    void *(*open)(void);
    enum coding_result (*run)(void *state, struct coding_room *room);
    void (*close)(void *state);
};

/* The codings of a Content-Encoding in the order in which they were applied, without identity.
 * Returns how many; CODING_UNKNOWN when one can't be undone, or when they are more than
 * CODING_LAYERS_MAX. */
int coding_list(struct slice value, const struct coding *codings[CODING_LAYERS_MAX]);

#endif
