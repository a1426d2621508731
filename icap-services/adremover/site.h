/*
 * Which hosts belong together: a site is a public suffix and one label, "example.co.uk", as the
 * Public Suffix List has it (libpsl, with the list that is built into it).
 *
 *     site_is_same(SLICE("a.example.co.uk"), SLICE("example.co.uk"))     true
 *     site_suffix(SLICE("www.example.co.uk"))                            length of ".co.uk", 6
 *
 * Hosts are in lower case. Addresses are sites by themselves. Threads: pure.
 */
#ifndef RETORT_ADREMOVER_SITE_H
#define RETORT_ADREMOVER_SITE_H

#include "base/slice.h"

bool site_is_same(struct slice a, struct slice b);
/* How many bytes at the end are the public suffix, its leading dot included; 0: none. */
size_t site_suffix(struct slice host);

#endif
