/*
 * What a response is to the one who asked: a document, which a browser shows, a fragment of one,
 * which a script asks for and puts somewhere, or XML.
 *
 *     scanner_init(&scanner, place, page_kind(request, response));
 *
 * A browser tells by Sec-Fetch-Dest, but only to https and to localhost; without that a script
 * is known by X-Requested-With, and by an Accept that does not name HTML: browsers name it whenever
 * they ask for a document, while fetch() and XMLHttpRequest say "*" "/" "*". A request that says
 * nothing of all this is for a document.
 *
 * Threads: pure.
 */
#ifndef RETORT_INJECT_PAGE_KIND_H
#define RETORT_INJECT_PAGE_KIND_H

#include "http/head.h"
#include "inject/scanner.h"

enum scanner_page page_kind(const struct http_head *request, const struct http_head *response);

#endif
