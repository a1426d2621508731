/*
 * Segments of paths that are "." or "..", and those that a server may take for such.
 *
 *     char *end = dot_segments_remove(path, end);          "/a/./b/../c" becomes "/a/c"
 *     if (dot_segments_may_be_seen(SLICE("/a/..%2fb")))     a server may decode before it splits
 *
 * Removal is that of RFC 3986 §5.2.4; an encoded dot ("%2E") is a dot (§6.2.2.2), whose encoding
 * dot_segments_possible does not see. ".." above the root goes.
 *
 * Servers differ in what they take for a separator. To be on the safe side these are looked at as
 * separators too: a backslash, encoded separators ("%2F", "%5C"), encoded several times ("%252F")
 * or in more bytes than UTF-8 allows ("%C0%AF"); and a segment ends at a semicolon ("..;x=1/"),
 * behind which stand parameters (RFC 3986 §3.3). What so looks like "." or ".." has no other use.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_HTTP_DOT_SEGMENTS_H
#define RETORT_HTTP_DOT_SEGMENTS_H

#include "base/slice.h"

/* Of a path that begins with '/', in its place; returns its new end. */
char *dot_segments_remove(char *begin, char *end);
/* May a path have any? Of what stands behind it, as a query, it does not matter what it says. */
static inline bool dot_segments_possible(const char *begin, const char *end) {
    for (const char *at = begin; (at = memchr(at, '.', (size_t)(end - at))) != NULL; at++)
        if (at > begin && at[-1] == '/')
            return true;
    return false;
}
bool dot_segments_may_be_seen(struct slice path);

#endif
