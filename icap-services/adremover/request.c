#include "adremover/request.h"

#include "adremover/hash.h"
#include "adremover/host.h"
#include "http/url.h"

/* The bytes of words in lower case; 0: the byte is not part of a word. */
static const unsigned char word_bytes[256] = {
#define LETTER(upper, lower) [upper] = lower, [lower] = lower
    LETTER('A', 'a'), LETTER('B', 'b'), LETTER('C', 'c'), LETTER('D', 'd'), LETTER('E', 'e'),
    LETTER('F', 'f'), LETTER('G', 'g'), LETTER('H', 'h'), LETTER('I', 'i'), LETTER('J', 'j'),
    LETTER('K', 'k'), LETTER('L', 'l'), LETTER('M', 'm'), LETTER('N', 'n'), LETTER('O', 'o'),
    LETTER('P', 'p'), LETTER('Q', 'q'), LETTER('R', 'r'), LETTER('S', 's'), LETTER('T', 't'),
    LETTER('U', 'u'), LETTER('V', 'v'), LETTER('W', 'w'), LETTER('X', 'x'), LETTER('Y', 'y'),
    LETTER('Z', 'z'), ['0'] = '0',      ['1'] = '1',      ['2'] = '2',      ['3'] = '3',
    ['4'] = '4',      ['5'] = '5',      ['6'] = '6',      ['7'] = '7',      ['8'] = '8',
    ['9'] = '9',
};

/* Makes the lower case and finds the words in one pass. */
static void read_text(struct filter_request *request) {
    const unsigned char *text = (const unsigned char *)request->url.base;
    size_t length = request->url.length, at = 0;
    unsigned count = 0;
    while (at < length) {
        unsigned char byte = word_bytes[text[at]];
        if (byte == 0) {
            request->lower[at] = (char)text[at];
            at++;
            continue;
        }
        size_t begin = at;
        uint32_t hash = HASH_WORD_SEED;
        do {
            request->lower[at++] = (char)byte;
            hash = hash_word_step(hash, byte);
        } while (at < length && (byte = word_bytes[text[at]]) != 0);
        if (at - begin >= 2)
            request->words[count++] =
                (struct filter_word){hash, (uint16_t)begin, (uint16_t)(at - begin)};
    }
    request->lower[length] = 0;
    request->length = length;
    request->word_count = count;
}

/* The host is read from its end, so that each host above it is met on the way. If there are too
 * many labels, the lowest are left out, but the whole host is kept. */
static void read_labels(struct filter_labels *labels, struct slice host) {
    uint64_t hash = HASH_HOST_SEED;
    unsigned count = 0;
    for (size_t i = host.length; i-- > 0;) {
        hash = hash_host_step(hash, (unsigned char)host.base[i]);
        if (i > 0 && (host.base[i - 1] != '.' || count == FILTER_LABELS_MAX - 1))
            continue;
        labels->label[count].hash = hash;
        labels->label[count++].at = (uint16_t)i;
    }
    labels->count = count;
    for (unsigned low = 0, high = count; low + 1 < high; low++) {
        high--;
        __typeof__(labels->label[0]) other = labels->label[low];
        labels->label[low] = labels->label[high];
        labels->label[high] = other;
    }
}

/* Finds the parts of a URL that rules ask for, without a look at each byte of its path: read_text
 * looks at those. */
static bool request_parse(struct url *url, struct slice text) {
    static const struct {
        struct slice prefix;
        uint16_t port;
    } schemes[] = {
        {{"http://", 7}, 80}, {{"https://", 8}, 443}, {{"ws://", 5}, 80}, {{"wss://", 6}, 443}};
    unsigned i = 0;
    while (i < 4 && !slice_starts_with_nocase(text, schemes[i].prefix))
        i++;
    if (i == 4)
        return false;
    size_t begin = schemes[i].prefix.length, end = begin;
    while (end < text.length && text.base[end] != '/' && text.base[end] != '?' &&
           text.base[end] != '#')
        end++;
    if (!url_parse_authority(url, slice_make(text.base + begin, end - begin), schemes[i].port))
        return false;
    const char *fragment = memchr(text.base + end, '#', text.length - end);
    size_t stop = fragment == NULL ? text.length : (size_t)(fragment - text.base);
    url->scheme = slice_make(text.base, begin - 3);
    url->path_query = slice_make(text.base + end, stop - end);
    return true;
}

bool filter_request_init(struct filter_request *request, struct slice text) {
    if (text.length > FILTER_URL_MAX || !request_parse(&request->parsed, text))
        return false;
    const struct url *url = &request->parsed;
    size_t begin = (size_t)(url->host.base - text.base), length = url->host.length;
    text.length = (size_t)(url->path_query.base + url->path_query.length - text.base);
    request->url = text;
    request->types = FILTER_TYPE_PARTS;
    request->method = FILTER_METHOD_GET;
    request->party = FILTER_PARTY_UNKNOWN;
    request->party_known = request->host_entities_known = request->page_entities_known = false;
    request->work_left = FILTER_WORK_MAX;
    request->page = slice_make(request->page_text, 0);
    request->page_labels.count = 0;
    read_text(request);
    if (length > 0 && request->lower[begin + length - 1] == '.' && !url->host_is_ipv6)
        length--; /* the root's dot */
    request->host = slice_make(request->lower + begin, length);
    read_labels(&request->host_labels, request->host);
    return true;
}

void filter_request_set_page(struct filter_request *request, struct slice page) {
    if (page.length > 0 && page.base[page.length - 1] == '.')
        page.length--;
    if (page.length == 0 || page.length >= sizeof request->page_text)
        return;
    for (size_t i = 0; i < page.length; i++)
        request->page_text[i] = (char)ascii_lower((unsigned char)page.base[i]);
    request->page.length = page.length;
    read_labels(&request->page_labels, request->page);
}

enum filter_party filter_request_party(struct filter_request *request) {
    if (request->party_known || request->party != FILTER_PARTY_UNKNOWN)
        return request->party;
    request->party_known = true;
    if (request->page.length > 0)
        request->party =
            site_is_same(request->host, request->page) ? FILTER_PARTY_FIRST : FILTER_PARTY_THIRD;
    return request->party;
}

static void read_entities(struct filter_labels *entities, struct slice host) {
    size_t suffix = site_suffix(host);
    entities->count = 0;
    if (suffix > 0 && host.length > suffix && host.length <= FILTER_HOST_MAX) {
        char text[FILTER_HOST_MAX + 2];
        size_t length = host.length - suffix;
        memcpy(text, host.base, length);
        memcpy(text + length, ".*", 2);
        read_labels(entities, slice_make(text, length + 2));
        entities->count--; /* "*" alone */
    }
}

const struct filter_labels *filter_request_host_entities(struct filter_request *request) {
    if (!request->host_entities_known)
        read_entities(&request->host_entities, request->host);
    request->host_entities_known = true;
    return &request->host_entities;
}

const struct filter_labels *filter_request_page_entities(struct filter_request *request) {
    if (!request->page_entities_known)
        read_entities(&request->page_entities, request->page);
    request->page_entities_known = true;
    return &request->page_entities;
}

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
    {"audioworklet", FILTER_TYPE_SCRIPT},
    {"paintworklet", FILTER_TYPE_SCRIPT},
    {"xslt", FILTER_TYPE_STYLESHEET},
    {"fencedframe", FILTER_TYPE_SUBDOCUMENT},
    {"manifest", FILTER_TYPE_OTHER},
    {"report", FILTER_TYPE_OTHER},
    {"webidentity", FILTER_TYPE_OTHER},
    {"empty", FILTER_TYPE_XMLHTTPREQUEST},
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

/* What a field of its own tells (RFC 6455 §4.1; HTML, "hyperlink auditing"). */
static unsigned types_of_own_field(const struct http_head *head) {
    if (http_head_find_text(head, SLICE("Sec-WebSocket-Key")) != NULL)
        return FILTER_TYPE_WEBSOCKET;
    return http_head_find_text(head, SLICE("Ping-To")) != NULL ? FILTER_TYPE_PING : 0;
}

/* navigator.sendBeacon looks as a script's request does, and is always a POST. */
static unsigned types_of_destination(const struct http_head *head) {
    const struct http_field *field = http_head_find_text(head, SLICE("Sec-Fetch-Dest"));
    if (field == NULL)
        return 0;
    unsigned types = request_kind_look_up(destinations, sizeof destinations / sizeof *destinations,
                                          field->value);
    bool may_be_beacon = types == FILTER_TYPE_XMLHTTPREQUEST && head->method_id == HTTP_METHOD_POST;
    return may_be_beacon ? types | FILTER_TYPE_PING : types;
}

unsigned request_kind_types(const struct http_head *head, struct slice path) {
    unsigned types = types_of_own_field(head);
    if (types == 0)
        types = types_of_destination(head);
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
    case HTTP_METHOD_OPTIONS: return FILTER_METHOD_OPTIONS;
    case HTTP_METHOD_PATCH: return FILTER_METHOD_PATCH;
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
