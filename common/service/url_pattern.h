/*
 * Patterns of URLs, for lists of URLs that a service does not change.
 *
 *     struct slice url = exchange_url(exchange);             "http://shop.example/account?id=1"
 *     if (url_listed(url, &settings->skip_urls)) return NULL;
 *
 * A pattern is a URL in which "*" stands for any number of bytes, also none. The pattern must match
 * the whole URL. The case of letters does not matter.
 *
 *     http://shop.example/account*
 *     *.example/login*
 *     *?*token=*
 *
 * Threads: pure.
 */
#ifndef RETORT_SERVICE_URL_PATTERN_H
#define RETORT_SERVICE_URL_PATTERN_H

#include "service/service.h"

/* The URL of the request. It is the target of the request line; if that is only a path, the URL is
 * made with the Host field. Its bytes are in the exchange's arena or request. Empty when the host
 * was given no request. */
struct slice exchange_url(const struct service_exchange *exchange);

bool url_pattern_matches(struct slice pattern, struct slice url);
bool url_listed(struct slice url, const struct service_list *patterns);

#endif
