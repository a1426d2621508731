/*
 * Tells what kind of page a response is: a document, which a browser shows; a fragment, which a
 * script asks for and puts into a document; or XML.
 *
 *     scanner_init(&scanner, place, page_kind(request, response));
 *
 * A browser tells it in Sec-Fetch-Dest, but sends this field only to https and to localhost.
 * Without it, a request comes from a script if it has X-Requested-With, or if its Accept does not
 * name HTML: browsers name HTML whenever they ask for a document, while fetch() and XMLHttpRequest
 * send "*" "/" "*". A request with none of these fields is for a document.
 *
 * Threads: pure.
 */
#ifndef RETORT_INJECT_PAGE_KIND_H
#define RETORT_INJECT_PAGE_KIND_H

#include "http/head.h"
#include "inject/scanner.h"

enum scanner_page page_kind(const struct http_head *request, const struct http_head *response);

#endif
