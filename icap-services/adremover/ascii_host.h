/*
 * A host as it stands in URLs: labels in other letters than those of ASCII begin with "xn--" there
 * (RFC 3492, RFC 5891). Lists have them as people read them.
 *
 *     char room[ASCII_HOST_MAX];
 *     ascii_host(SLICE("B\u00fccher.example"), room)      "xn--bcher-kva.example", in `room`
 *     ascii_host(SLICE("ads.example"), room)              the same slice
 *
 * UTF-8, in any case; "*" passes as it is. Empty where it is no such host (UTS #46).
 * Threads: pure.
 */
#ifndef RETORT_ADREMOVER_ASCII_HOST_H
#define RETORT_ADREMOVER_ASCII_HOST_H

#include "base/slice.h"

enum { ASCII_HOST_MAX = 256 };

bool is_ascii(struct slice text);
struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]);

#endif
