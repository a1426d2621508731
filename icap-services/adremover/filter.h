/*
 * A filter: which URLs are ads? Rules in the language of EasyList (network rules) and hosts files,
 * tens of thousands of them, answered without walking over them.
 *
 *     struct filter *filter = filter_create();
 *     filter_load(filter, "/etc/retort/easylist.txt", error, sizeof error);     false: unreadable
 *     filter_seal(filter);                                    builds the index; then read-only
 *
 *     struct filter_request request;
 *     filter_request_init(&request, url, "news.example", FILTER_TYPE_IMAGE);
 *     if (filter_match(filter, &request) == FILTER_BLOCK) ...
 *     filter_free(&filter);
 *
 * Rules
 *   ads/banner          anywhere in the URL; * stands for any bytes, ^ for a separator (any byte
 *                       but letters, digits, _ - . %) or the end
 *   |http://x  swf|     at the beginning, at the end
 *   ||example.com^      that host and all below it
 *   @@rule              an exception: what it matches is not blocked ($important overrules)
 *   rule$options        types (image, script, ~image, ...), third-party, ~third-party,
 *                       domain=a.com|~b.a.com, match-case, important
 *   0.0.0.0 ads.example a line of a hosts file: exactly that host
 *   ! comment           also # in hosts files, [Adblock ...], and all element hiding rules (##)
 * Not supported, counted and passed over: regular expressions (/.../) and options that ask for more
 * than to block or not (csp, redirect, removeparam, popup alone, elemhide, ...).
 *
 * What a proxy knows of a request is less than what a browser knows. Where it does not know the
 * type or the page a rule asks for, a blocking rule does not apply and an exception does (but not
 * one for certain pages where the page is not known): when in doubt the request passes; it is
 * counted as undecided.
 *
 * How it is fast: rules that are a whole host stand in a hash table by host, asked once for each
 * label of the request's host. Every other rule is filed under one of the words that any URL it
 * matches must contain, the rarest it has; so a request looks at the rules of its own words only.
 *
 * Threads: filled by one, then shared read-only. Errors: a bad rule is passed over and counted.
 */
#ifndef RETORT_ADREMOVER_FILTER_H
#define RETORT_ADREMOVER_FILTER_H

#include "base/slice.h"

enum { FILTER_URL_MAX = 16384 };

enum filter_type {
    FILTER_TYPE_SCRIPT = 1 << 0,
    FILTER_TYPE_IMAGE = 1 << 1,
    FILTER_TYPE_STYLESHEET = 1 << 2,
    FILTER_TYPE_OBJECT = 1 << 3,
    FILTER_TYPE_XMLHTTPREQUEST = 1 << 4,
    FILTER_TYPE_SUBDOCUMENT = 1 << 5,
    FILTER_TYPE_PING = 1 << 6,
    FILTER_TYPE_WEBSOCKET = 1 << 7,
    FILTER_TYPE_FONT = 1 << 8,
    FILTER_TYPE_MEDIA = 1 << 9,
    FILTER_TYPE_OTHER = 1 << 10,
    FILTER_TYPE_DOCUMENT = 1 << 11, /* the page itself: blocked only where a rule says $document */
    FILTER_TYPE_PARTS = FILTER_TYPE_DOCUMENT - 1, /* everything a page consists of */
};

enum filter_party { FILTER_PARTY_UNKNOWN, FILTER_PARTY_FIRST, FILTER_PARTY_THIRD };

enum filter_verdict { FILTER_PASS, FILTER_BLOCK, FILTER_EXCEPTION, FILTER_UNDECIDED };

/* A request as rules see it. */
struct filter_request {
    struct slice url; /* as it came */
    char lower[FILTER_URL_MAX + 1];
    size_t length;
    struct slice host; /* in `lower` */
    char page[256];    /* host of the page it belongs to; empty: not known */
    unsigned types;    /* what it may be: several bits where that is not known */
    enum filter_party party;
};

struct filter_counts {
    unsigned rules, exceptions, hosts;
    unsigned unsupported, bad; /* passed over */
    char first_bad[160];       /* the first bad one, with file and line */
};

struct filter;

struct filter *filter_create(void);
void filter_free(struct filter **filterp);
bool filter_load(struct filter *filter, const char *path, char *error, size_t error_size);
/* One line; `where` is for first_bad. */
void filter_add(struct filter *filter, struct slice line, const char *where);
void filter_seal(struct filter *filter);
const struct filter_counts *filter_counts(const struct filter *filter);
/* Of all that was loaded: changes when a list changes. */
uint64_t filter_fingerprint(const struct filter *filter);

/* `url` is absolute. False when it is none or too long to be looked at. `page` may be empty. */
bool filter_request_init(struct filter_request *request, struct slice url, struct slice page,
                         unsigned types);
enum filter_verdict filter_match(const struct filter *filter, const struct filter_request *request);

/* Do two hosts belong to the same site? By the last two labels, or three under "co.uk" and such. */
bool filter_same_site(struct slice a, struct slice b);

#endif
