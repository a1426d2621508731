/*
 * Neutral resources: for each kind, the smallest file that a browser accepts without an error. A
 * service sends them in place of something that it blocks, such as an advertisement.
 *
 *     const struct neutral *neutral = neutral_find(SLICE("empty.js"));      NULL: no such name
 *     http_head_add(head, SLICE("Content-Type"), neutral->type);
 *     ... neutral->body
 *
 * The names are file names, so that they can be used in URLs: the proxy serves them as
 * http://retort.internal/NAME. neutral_find also knows them by the names that filter lists use
 * ("1x1.gif", "noopjs", "abp-resource:blank-js").
 *
 *     blank.gif blank.png blank-2x2.png blank-3x2.png blank-32x32.png     one transparent colour
 *     empty.js empty.css empty.html empty.txt empty.json empty.mp4        nothing, validly
 *
 * Threads: constants.
 */
#ifndef RETORT_HTTP_NEUTRAL_H
#define RETORT_HTTP_NEUTRAL_H

#include "base/slice.h"

struct neutral {
    struct slice name, type, body;
};

const struct neutral *neutral_find(struct slice name);

#endif
