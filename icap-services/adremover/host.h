/*
 * Tells which hosts belong to one site. A site is a public suffix with one label before it:
 * "example.co.uk". The public suffixes are those of the Public Suffix List (the list that is built
 * into libpsl).
 *
 *     site_is_same(SLICE("a.example.co.uk"), SLICE("example.co.uk"))     true
 *     site_suffix(SLICE("www.example.co.uk"))                            length of ".co.uk", 6
 *
 * Hosts are in lower case. Each IP address is a site of its own. Threads: pure.
 */
#ifndef RETORT_ADREMOVER_HOST_H
#define RETORT_ADREMOVER_HOST_H

#include "base/slice.h"

bool site_is_same(struct slice a, struct slice b);
/* The length of the public suffix at the end of the host, with the dot before it; 0: none. */
size_t site_suffix(struct slice host);

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

enum { ASCII_HOST_MAX = 256 };

bool is_ascii(struct slice text);
struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]);

#endif
