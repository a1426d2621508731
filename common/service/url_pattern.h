/*
 * Patterns of URLs, for lists of what a service leaves alone.
 *
 *     struct slice url = exchange_url(exchange);             "http://shop.example/account?id=1"
 *     if (url_listed(url, &settings->skip_urls)) return NULL;
 *
 * A pattern is a URL in which "*" stands for any bytes, none too; it must cover the whole URL.
 * Letters count without their case.
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

/* The URL that the request is for, in the exchange's arena or request: made of the request line,
 * and of Host where that has a path alone. Empty when the host was given no request. */
struct slice exchange_url(const struct service_exchange *exchange);

bool url_pattern_matches(struct slice pattern, struct slice url);
bool url_listed(struct slice url, const struct service_list *patterns);

#endif
