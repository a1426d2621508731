#include "adremover/request.h"

#include "adremover/hash.h"
#include "adremover/site.h"

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
    request->party_known = request->entities_known = false;
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

const struct filter_labels *filter_request_entities(struct filter_request *request) {
    if (request->entities_known)
        return &request->entities;
    request->entities_known = true;
    request->entities.count = 0;
    size_t suffix = site_suffix(request->page);
    if (suffix > 0 && request->page.length > suffix) {
        char text[FILTER_HOST_MAX + 2];
        size_t length = request->page.length - suffix;
        memcpy(text, request->page.base, length);
        memcpy(text + length, ".*", 2);
        read_labels(&request->entities, slice_make(text, length + 2));
        request->entities.count--; /* "*" alone */
    }
    return &request->entities;
}
