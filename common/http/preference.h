/*
 * What a client prefers: the fields Accept and Accept-Language with their quality values (RFC 9110
 * §12.4.2).
 *
 *     preference_of_type(SLICE("text/html, application/json;q=0.5"), SLICE("application/json"))
 *                                                    .quality is 500
 *     preference_of_language(SLICE("de-AT, en;q=0.5"), SLICE("de")).quality is 1000
 *
 * The most specific range that matches decides. A field that is not there, an empty slice, prefers
 * nothing: then all is as good, 1000. What can't be read is skipped; after PREFERENCE_RANGES
 * ranges nothing more is read.
 *
 * Threads: pure.
 */
#ifndef RETORT_HTTP_PREFERENCE_H
#define RETORT_HTTP_PREFERENCE_H

#include "base/slice.h"

enum { PREFERENCE_RANGES = 40 };

struct preference {
    unsigned quality; /* 0, the client does not want it, to 1000 */
    unsigned fit;     /* how specific the range is; 0: none is for it */
    unsigned at;      /* the place of the range in the field */
};

/* Is a preferred to b? Of the same quality, what is named is preferred to what "*" stands for, and
 * what is named first to the rest: "application/json, text/plain, ..." */
bool preference_is_better(struct preference a, struct preference b);

/* RFC 9110 §12.5.1; parameters other than q are not compared. */
struct preference preference_of_type(struct slice accept, struct slice type);
/* RFC 9110 §12.5.4, RFC 4647: a range is for its language and those below it ("de" for "de-AT"); a
 * client that asks for "de-AT" also takes "de" where there is no better one. */
struct preference preference_of_language(struct slice accept_language, struct slice language);

#endif
