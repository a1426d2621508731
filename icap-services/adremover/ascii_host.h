/*
 * Turns a host as people write it into the host as it stands in URLs. A label with letters that are
 * not ASCII begins with "xn--" there (RFC 3492, RFC 5891). Filter lists may have either form.
 *
 *     char room[ASCII_HOST_MAX];
 *     ascii_host(SLICE("B\u00fccher.example"), room)      "xn--bcher-kva.example", in `room`
 *     ascii_host(SLICE("ads.example"), room)              the same slice
 *
 * The host is UTF-8, in upper or lower case. A "*" in it stays. The result is empty when the text
 * is no valid host (UTS #46). Threads: pure.
 */
#ifndef RETORT_ADREMOVER_ASCII_HOST_H
#define RETORT_ADREMOVER_ASCII_HOST_H

#include "base/slice.h"

enum { ASCII_HOST_MAX = 256 };

bool is_ascii(struct slice text);
struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]);

#endif
