/*
 * A large set of URLs and of beginnings of URLs.
 *
 *     struct url_set *set = url_set_new();
 *     url_set_add(set, SLICE("http://www.example.com/page?a=1"), error, sizeof error);  this URL
 *     url_set_add(set, SLICE("http://www.example.com/ads*"), ...);       all that begin like that
 *     url_set_add(set, SLICE("www.example.com/shop/"), ...);             of http and of https
 *     url_set_seal(set);                                   once, before the first question
 *     if (url_set_has(set, url)) ...                       normalised (http/url.h)
 *     url_set_free(&set);
 *
 * Entries are normalised as the URLs of requests are, so that one spelling stands for all. Whole
 * URLs are found by a hash; the longest beginning by a binary search, since of two beginnings of
 * which one begins like the other only the shorter one is kept.
 *
 * Threads: read-only once sealed.
 */
#ifndef RETORT_LISTS_URL_SET_H
#define RETORT_LISTS_URL_SET_H

#include "base/slice.h"

struct url_set;

struct url_set *url_set_new(void);
void url_set_free(struct url_set **setp);
/* False, with what is wrong in `error`: it is not a URL. */
bool url_set_add(struct url_set *set, struct slice text, char *error, size_t error_size);
void url_set_seal(struct url_set *set);
bool url_set_has(const struct url_set *set, struct slice url);

#endif
