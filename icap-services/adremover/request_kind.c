#include "adremover/request_kind.h"

#include "adremover/request.h"
#include "http/url.h"

struct kind {
    const char *text;
    unsigned types;
};

/* Fetch standard, "destination". */
static const struct kind destinations[] = {
    {"image", FILTER_TYPE_IMAGE},
    {"script", FILTER_TYPE_SCRIPT},
    {"style", FILTER_TYPE_STYLESHEET},
    {"iframe", FILTER_TYPE_SUBDOCUMENT},
    {"frame", FILTER_TYPE_SUBDOCUMENT},
    {"document", FILTER_TYPE_DOCUMENT},
    {"font", FILTER_TYPE_FONT},
    {"audio", FILTER_TYPE_MEDIA},
    {"video", FILTER_TYPE_MEDIA},
    {"track", FILTER_TYPE_MEDIA},
    {"object", FILTER_TYPE_OBJECT},
    {"embed", FILTER_TYPE_OBJECT},
    {"worker", FILTER_TYPE_SCRIPT},
    {"sharedworker", FILTER_TYPE_SCRIPT},
    {"serviceworker", FILTER_TYPE_SCRIPT},
    {"xslt", FILTER_TYPE_STYLESHEET},
    {"empty", FILTER_TYPE_XMLHTTPREQUEST | FILTER_TYPE_PING | FILTER_TYPE_OTHER},
};

static const struct kind endings[] = {
    {"js", FILTER_TYPE_SCRIPT},  {"mjs", FILTER_TYPE_SCRIPT}, {"css", FILTER_TYPE_STYLESHEET},
    {"gif", FILTER_TYPE_IMAGE},  {"jpg", FILTER_TYPE_IMAGE},  {"jpeg", FILTER_TYPE_IMAGE},
    {"png", FILTER_TYPE_IMAGE},  {"webp", FILTER_TYPE_IMAGE}, {"avif", FILTER_TYPE_IMAGE},
    {"bmp", FILTER_TYPE_IMAGE},  {"ico", FILTER_TYPE_IMAGE},  {"svg", FILTER_TYPE_IMAGE},
    {"swf", FILTER_TYPE_OBJECT}, {"woff", FILTER_TYPE_FONT},  {"woff2", FILTER_TYPE_FONT},
    {"ttf", FILTER_TYPE_FONT},   {"otf", FILTER_TYPE_FONT},   {"mp4", FILTER_TYPE_MEDIA},
    {"webm", FILTER_TYPE_MEDIA}, {"mp3", FILTER_TYPE_MEDIA},  {"flv", FILTER_TYPE_MEDIA},
    {"ogg", FILTER_TYPE_MEDIA},
};

static unsigned request_kind_look_up(const struct kind *kinds, size_t count, struct slice text) {
    for (size_t i = 0; i < count; i++)
        if (slice_equal_nocase(text, slice_from(kinds[i].text)))
            return kinds[i].types;
    return 0;
}

static struct slice ending_of(struct slice path) {
    size_t length = 0;
    while (length < path.length && path.base[length] != '?' && path.base[length] != ';')
        length++;
    for (size_t at = length; at-- > 0 && path.base[at] != '/';)
        if (path.base[at] == '.')
            return slice_make(path.base + at + 1, length - at - 1);
    return slice_make("", 0);
}

static unsigned types_of_accept(const struct http_head *head) {
    struct slice rest = SLICE(""), first;
    for (unsigned i = 0; i < head->field_count; i++)
        if (slice_equal_nocase(head->fields[i].name, SLICE("Accept")))
            rest = head->fields[i].value;
    if (!slice_next_element(&rest, &first))
        return FILTER_TYPE_PARTS;
    if (slice_starts_with_nocase(first, SLICE("image/")))
        return FILTER_TYPE_IMAGE;
    if (slice_starts_with_nocase(first, SLICE("text/css")))
        return FILTER_TYPE_STYLESHEET;
    if (!slice_starts_with_nocase(first, SLICE("text/html")))
        return FILTER_TYPE_PARTS;
    /* A page, or a frame in one; without a referrer it was not reached from a page. */
    return http_head_has(head, HTTP_REFERER) ? FILTER_TYPE_DOCUMENT | FILTER_TYPE_SUBDOCUMENT
                                             : FILTER_TYPE_DOCUMENT;
}

unsigned request_kind_types(const struct http_head *head, struct slice path) {
    const struct http_field *field = http_head_find_text(head, SLICE("Sec-Fetch-Dest"));
    unsigned types = 0;
    if (field != NULL)
        types = request_kind_look_up(destinations, sizeof destinations / sizeof *destinations,
                                     field->value);
    if (types == 0)
        types = request_kind_look_up(endings, sizeof endings / sizeof *endings, ending_of(path));
    return types != 0 ? types : types_of_accept(head);
}

unsigned request_kind_method(const struct http_head *head) {
    switch (head->method_id) {
    case HTTP_METHOD_GET: return FILTER_METHOD_GET;
    case HTTP_METHOD_HEAD: return FILTER_METHOD_HEAD;
    case HTTP_METHOD_POST: return FILTER_METHOD_POST;
    case HTTP_METHOD_PUT: return FILTER_METHOD_PUT;
    case HTTP_METHOD_DELETE: return FILTER_METHOD_DELETE;
    default: return FILTER_METHOD_OTHER;
    }
}

enum filter_party request_kind_party(const struct http_head *head) {
    const struct http_field *field = http_head_find_text(head, SLICE("Sec-Fetch-Site"));
    if (field == NULL)
        return FILTER_PARTY_UNKNOWN;
    if (slice_equal_nocase(field->value, SLICE("cross-site")))
        return FILTER_PARTY_THIRD;
    if (slice_equal_nocase(field->value, SLICE("same-site")) ||
        slice_equal_nocase(field->value, SLICE("same-origin")))
        return FILTER_PARTY_FIRST;
    return FILTER_PARTY_UNKNOWN;
}

struct slice request_kind_page(const struct http_head *head) {
    struct url url;
    struct slice referer = http_head_value(head, HTTP_REFERER);
    const struct http_field *origin = http_head_find_text(head, SLICE("Origin"));
    if (referer.base != NULL && url_parse(&url, referer))
        return url.host;
    if (origin != NULL && url_parse(&url, origin->value))
        return url.host;
    return slice_make("", 0);
}
