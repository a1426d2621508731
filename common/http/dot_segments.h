/*
 * Segments of paths that are "." or "..", and segments that a server may treat as such.
 *
 *     char *end = dot_segments_remove(path, end);          "/a/./b/../c" becomes "/a/c"
 *     if (dot_segments_may_be_seen(SLICE("/a/..%2fb")))     a server may decode before it splits
 *
 * dot_segments_remove follows RFC 3986 §5.2.4. An encoded dot ("%2E") counts as a dot (§6.2.2.2);
 * dot_segments_possible does not find encoded dots. ".." above the root is removed.
 *
 * Servers differ in the separators that they accept. To be safe, dot_segments_may_be_seen also
 * treats these as separators: a backslash, encoded separators ("%2F", "%5C"), separators encoded
 * several times ("%252F") or in more bytes than UTF-8 allows ("%C0%AF"). A segment also ends at a
 * semicolon ("..;x=1/"), because parameters follow it (RFC 3986 §3.3). No honest path needs such
 * segments.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_HTTP_DOT_SEGMENTS_H
#define RETORT_HTTP_DOT_SEGMENTS_H

#include "base/slice.h"

/* Removes the segments from a path that begins with '/', in place. Returns the new end. */
char *dot_segments_remove(char *begin, char *end);
/* May the path have such segments? The text may include a query; a match there does no harm. */
static inline bool dot_segments_possible(const char *begin, const char *end) {
    for (const char *at = begin; (at = memchr(at, '.', (size_t)(end - at))) != NULL; at++)
        if (at > begin && at[-1] == '/')
            return true;
    return false;
}
/* May a server see such a segment in this path? */
bool dot_segments_may_be_seen(struct slice path);

#endif
