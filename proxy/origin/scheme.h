/*
 * The schemes of URLs that Retort fetches from origins.
 *
 *     if (!origin_can_fetch(url.scheme)) ...      501
 *
 * Threads: any.
 */
#ifndef RETORT_ORIGIN_SCHEME_H
#define RETORT_ORIGIN_SCHEME_H

#include "http/url.h"

bool origin_can_fetch(struct slice scheme);

#endif
