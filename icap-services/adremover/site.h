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
#ifndef RETORT_ADREMOVER_SITE_H
#define RETORT_ADREMOVER_SITE_H

#include "base/slice.h"

bool site_is_same(struct slice a, struct slice b);
/* The length of the public suffix at the end of the host, with the dot before it; 0: none. */
size_t site_suffix(struct slice host);

#endif
