/*
 * A request as rules see it: its URL, the page it belongs to, and what kind of thing it asks for.
 * The URL is put into lower case and cut into words and labels once, for all rules.
 *
 *     struct filter_request request;                    60 KB: no need to clear it
 *     if (!filter_request_init(&request, url)) ...      no absolute URL, or a URL that is too long
 *     request.types = FILTER_TYPE_IMAGE;                by default all parts of a page
 *     request.method = FILTER_METHOD_GET;               the default
 *     filter_request_set_page(&request, SLICE("news.example"));      when it is known
 *     filter_match(filter, &request, &answer);
 *
 * The slices point into the URL that was given and into the request itself, so the request must not
 * be copied. Some facts cost time and few rules ask for them, such as whether page and URL belong
 * to one site. The request finds them out at the first question and remembers them. So matching
 * changes the request.
 *
 * Threads: one request, one thread. Nothing is allocated.
 */
#ifndef RETORT_ADREMOVER_REQUEST_H
#define RETORT_ADREMOVER_REQUEST_H

#include "http/head.h"
#include "http/url.h"

enum {
    FILTER_URL_MAX = 16384,
    FILTER_WORDS_MAX = FILTER_URL_MAX / 3 + 1,
    FILTER_LABELS_MAX = 24,
    FILTER_HOST_MAX = 256,
    FILTER_WORK_MAX = 1 << 18,
};

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

enum filter_method {
    FILTER_METHOD_GET = 1 << 0,
    FILTER_METHOD_HEAD = 1 << 1,
    FILTER_METHOD_POST = 1 << 2,
    FILTER_METHOD_PUT = 1 << 3,
    FILTER_METHOD_DELETE = 1 << 4,
    FILTER_METHOD_OPTIONS = 1 << 5,
    FILTER_METHOD_PATCH = 1 << 6,
    FILTER_METHOD_OTHER = 1 << 7,
};

enum filter_party { FILTER_PARTY_UNKNOWN, FILTER_PARTY_FIRST, FILTER_PARTY_THIRD };

/* A word: at least two letters or digits in a row, with no letter or digit before and behind. */
struct filter_word {
    uint32_t hash;
    uint16_t at, length;
};

/* A host and each host above it, each with its hash_host. The whole host is the first. */
struct filter_labels {
    unsigned count;
    struct {
        uint64_t hash;
        uint16_t at;
    } label[FILTER_LABELS_MAX];
};

struct filter_request {
    struct slice url;        /* as it came, without a fragment */
    struct url parsed;       /* of it */
    size_t length;           /* of `lower` */
    struct slice host;       /* in `lower` */
    struct slice page;       /* host of the page it belongs to, in `page_text`; empty: not known */
    unsigned types;          /* enum filter_type: several where that is not known */
    unsigned method;         /* enum filter_method */
    enum filter_party party; /* the caller may set it; if not, filter_request_party finds it out */
    bool party_known;
    bool host_entities_known, page_entities_known;
    struct filter_labels host_labels, page_labels;
    /* Of the host and of the page, with "*" for the public suffix: "news.*". */
    struct filter_labels host_entities, page_entities;
    /* Steps that the search for rules may still take; 0: it has been given up. A URL can be made to fit the
     * beginning of thousands of rules at thousands of places, and whoever asks waits meanwhile. */
    uint32_t work_left;
    unsigned word_count;
    char page_text[FILTER_HOST_MAX];
    struct filter_word words[FILTER_WORDS_MAX];
    char lower[FILTER_URL_MAX + 1];
};

/* Begins a request without a page, for a GET of any part of a page. False: the URL is not absolute,
 * or it is too long. */
bool filter_request_init(struct filter_request *request, struct slice url);
/* `page` is a host. If it is longer than a host may be, the request has no page. */
void filter_request_set_page(struct filter_request *request, struct slice page);
/* Takes steps of the work that is left. False: there are not so many, and the search is given up. */
static inline bool filter_request_work(struct filter_request *request, size_t steps) {
    bool enough = request->work_left > steps;
    request->work_left = enough ? request->work_left - (uint32_t)steps : 0;
    return enough;
}
enum filter_party filter_request_party(struct filter_request *request);
const struct filter_labels *filter_request_host_entities(struct filter_request *request);
const struct filter_labels *filter_request_page_entities(struct filter_request *request);

/*
 * What kind of resource a request asks for, and for which page, as far as its head tells.
 *
 *     unsigned types = request_kind_types(head, path);      enum filter_type, or-ed
 *     struct slice page = request_kind_page(head);          host; empty when not told
 *     enum filter_party party = request_kind_party(head);
 *
 * Sec-Fetch-Dest tells the type, but browsers send it only to https. Without this field, the ending
 * of the path and the Accept field tell which types are possible. Sec-WebSocket-Key and Ping-To tell
 * theirs. Threads: pure.
 */

/* `path` may have a query behind it. */
unsigned request_kind_types(const struct http_head *head, struct slice path);
struct slice request_kind_page(const struct http_head *head);
unsigned request_kind_method(const struct http_head *head); /* enum filter_method */
/* Reads Sec-Fetch-Site, which browsers send even when they hold back Referer. */
enum filter_party request_kind_party(const struct http_head *head);

#endif
