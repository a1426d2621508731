#include "http/url.h"

#include "http/bytes.h"
#include "http/dot_segments.h"

#include <arpa/inet.h>

const struct url_scheme url_schemes[URL_SCHEMES] = {
    [URL_HTTP] = {{"http", 4}, 80},
    [URL_HTTPS] = {{"https", 5}, 443},
    [URL_ICAP] = {{"icap", 4}, 1344},
    [URL_ICAPS] = {{"icaps", 5}, 11344},
};

enum { HOST_MAX = 255, PORT_DIGITS_MAX = 5 };

const struct url_scheme *url_scheme_find(struct slice name) {
    for (size_t i = 0; i < URL_SCHEMES; i++)
        if (slice_equal_nocase(url_schemes[i].name, name))
            return &url_schemes[i];
    return NULL;
}

bool url_scheme_is_good(struct slice scheme) {
    static const char others[] = "+-.";
    if (slice_equal(scheme, SLICE("https")) || slice_equal(scheme, SLICE("http")))
        return true;
    for (size_t i = 0; i < scheme.length; i++) {
        char c = scheme.base[i], lower = (char)(c | 0x20);
        bool letter = lower >= 'a' && lower <= 'z';
        bool other = (c >= '0' && c <= '9') || (c != '\0' && strchr(others, c) != NULL);
        if (!letter && (i == 0 || !other))
            return false;
    }
    return scheme.length > 0;
}

bool url_has_default_port(const struct url *url) {
    const struct url_scheme *scheme = url_scheme_find(url->scheme);
    return scheme != NULL && url->port == scheme->port;
}

bool url_is_https(const struct url *url) {
    return slice_equal_nocase(url->scheme, url_schemes[URL_HTTPS].name);
}

bool url_is_web(const struct url *url) {
    return slice_equal_nocase(url->scheme, url_schemes[URL_HTTP].name) || url_is_https(url);
}

static bool url_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool url_is_letter(char c) {
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'z';
}

/* The bytes that a host name may contain. */
static const bool in_host_name[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
    ['-'] = true,         ['.'] = true,         ['_'] = true,
};

static bool url_is_host_name(struct slice host) {
    unsigned good = 1;
    if (host.length == 0 || host.length > HOST_MAX)
        return false;
    for (size_t i = 0; i < host.length; i++)
        good &= in_host_name[(unsigned char)host.base[i]];
    return good;
}

/* Zones ("%eth0") mean nothing outside their host and are refused. */
static bool read_ipv6(struct slice host, struct in6_addr *address) {
    char text[INET6_ADDRSTRLEN];
    if (host.length == 0 || host.length >= sizeof text ||
        memchr(host.base, '\0', host.length) != NULL)
        return false;
    memcpy(text, host.base, host.length);
    text[host.length] = '\0';
    return inet_pton(AF_INET6, text, address) == 1;
}

static bool is_ipv6(struct slice host) {
    struct in6_addr address;
    return read_ipv6(host, &address);
}

/* Takes the host and its brackets off the front of *rest. */
static bool take_host(struct url *url, struct slice *rest) {
    bool bracket = rest->base[0] == '[';
    const char *end = memchr(rest->base, bracket ? ']' : ':', rest->length);
    if (bracket && end == NULL)
        return false;
    size_t length = end == NULL ? rest->length : (size_t)(end - rest->base);
    url->host_is_ipv6 = bracket;
    url->host = slice_make(rest->base + bracket, length - bracket);
    *rest = slice_make(rest->base + length + bracket, rest->length - length - bracket);
    while (!bracket && url->host.length > 0 && url->host.base[url->host.length - 1] == '.')
        url->host.length--;
    return bracket ? is_ipv6(url->host) : url_is_host_name(url->host);
}

/* ":80", ":" or nothing (RFC 3986 §3.2.3). */
static bool take_port(struct url *url, struct slice rest, uint16_t default_port) {
    uint64_t port;
    url->port = default_port;
    url->port_given = false;
    if (rest.length == 0 || (rest.length == 1 && rest.base[0] == ':'))
        return true;
    struct slice digits = slice_make(rest.base + 1, rest.length - 1);
    if (rest.base[0] != ':' || digits.length > PORT_DIGITS_MAX || !slice_to_uint64(digits, &port) ||
        port > UINT16_MAX)
        return false;
    url->port = (uint16_t)port;
    url->port_given = true;
    return true;
}

bool url_parse_authority(struct url *url, struct slice text, uint16_t default_port) {
    memset(url, 0, sizeof *url);
    return text.length > 0 && take_host(url, &text) && take_port(url, text, default_port);
}

static inline bool url_is_one_of(char c, const char *stops) {
    for (; *stops != '\0'; stops++)
        if (c == *stops)
            return true;
    return false;
}

/* The first byte that is one of `stops`, or the end. Inlined with few constant stops: this runs
 * over every byte of every URL. */
static inline size_t length_until(struct slice text, const char *stops) {
    for (size_t i = 0; i < text.length; i++)
        if (url_is_one_of(text.base[i], stops))
            return i;
    return text.length;
}

/* Takes the path and the query, without a fragment. False: they contain bytes that no target may
 * have. */
static bool take_path_query(struct url *url, struct slice text) {
    const char *fragment = text.length == 0 ? NULL : memchr(text.base, '#', text.length);
    size_t length = fragment == NULL ? text.length : (size_t)(fragment - text.base);
    const char *end = text.base + length;
    url->path_query = slice_make(text.base, length);
    return bytes_skip(text.base, end, BYTES_TARGET) == end;
}

bool url_set_target(struct url *url, const struct url_scheme *scheme, struct slice target) {
    url->scheme = scheme->name;
    return url->port != 0 && take_path_query(url, target);
}

struct slice url_scheme_of(struct slice text) {
    struct slice scheme = slice_make(text.base, text.length == 0 ? 0 : length_until(text, ":"));
    struct slice rest = slice_make(text.base + scheme.length, text.length - scheme.length);
    bool good = slice_starts_with(rest, SLICE("://")) && url_scheme_is_good(scheme);
    return good ? scheme : SLICE("");
}

bool url_parse(struct url *url, struct slice text) {
    if (text.length == 0)
        return false;
    size_t scheme_length = length_until(text, ":");
    struct slice name = slice_make(text.base, scheme_length);
    struct slice rest = slice_make(text.base + scheme_length, text.length - scheme_length);
    const struct url_scheme *scheme = url_scheme_find(name);
    if (scheme == NULL || !slice_starts_with(rest, SLICE("://")))
        return false;
    rest = slice_make(rest.base + 3, rest.length - 3);
    size_t authority_length = length_until(rest, "/?#");
    struct slice authority = slice_make(rest.base, authority_length);
    rest = slice_make(rest.base + authority_length, rest.length - authority_length);
    if (!url_parse_authority(url, authority, scheme->port) || url->port == 0)
        return false;
    url->scheme = name;
    return take_path_query(url, rest);
}

/* Can it be a host with a port? A password that contains a '/' looks like a bad port. */
static bool ends_like_port(struct slice authority) {
    const char *colon =
        authority.length == 0 ? NULL : memrchr(authority.base, ':', authority.length);
    for (const char *at = colon; at != NULL && ++at < authority.base + authority.length;)
        if (!url_is_digit(*at))
            return false;
    return true;
}

struct slice url_user_info(struct slice text) {
    const char *slashes = text.length == 0 ? NULL : memmem(text.base, text.length, "://", 3);
    size_t begin = slashes == NULL ? 0 : (size_t)(slashes + 3 - text.base);
    struct slice rest = slice_make(text.base + begin, text.length - begin);
    struct slice authority = slice_make(rest.base, length_until(rest, "/?#"));
    if (slashes == NULL ? authority.length > 0 : !ends_like_port(authority))
        authority = rest;
    const char *at = authority.length == 0 ? NULL : memrchr(authority.base, '@', authority.length);
    return slice_make(rest.base, at == NULL ? 0 : (size_t)(at + 1 - rest.base));
}

static int url_hex_value(char c) {
    if (url_is_digit(c))
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_unreserved(char c) {
    return url_is_letter(c) || url_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Decodes an encoding such as "%41" at the front of the text; -1: there is none. */
static int encoded_byte(const char *at, size_t length) {
    if (length < 3 || at[0] != '%')
        return -1;
    int high = url_hex_value(at[1]), low = url_hex_value(at[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static char *url_put_encoded(char *at, unsigned byte) {
    static const char digits[] = "0123456789ABCDEF";
    *at++ = '%';
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 15];
    return at;
}

/* A '%' that begins no encoding stays as it is (*strays: there is one). Within two bytes after it
 * no encoding is decoded, because "%%34%31" must not become the encoding "%41". */
static char *put_path_query(char *at, struct slice text, bool *strays) {
    enum { NEAR = 2 };
    *strays = false;
    size_t near_stray = 0;
    while (text.length > 0) {
        const char *percent = memchr(text.base, '%', text.length);
        size_t plain = percent == NULL ? text.length : (size_t)(percent - text.base), taken = 0;
        at = slice_put(at, slice_make(text.base, plain));
        near_stray -= plain < near_stray ? plain : near_stray;
        text = slice_make(text.base + plain, text.length - plain);
        int byte = encoded_byte(text.base, text.length);
        if (byte >= 0 && near_stray == 0 && is_unreserved((char)byte)) {
            *at++ = (char)byte;
            taken = 3;
        } else if (byte >= 0) {
            at = url_put_encoded(at, (unsigned)byte);
            near_stray = 0;
            taken = 3;
        } else if (text.length > 0) {
            *at++ = '%';
            near_stray = NEAR;
            *strays = true;
            taken = 1;
        }
        text = slice_make(text.base + taken, text.length - taken);
    }
    return at;
}

/* The canonical form of an IPv6 address has at most this many bytes more: in "1::2:3:4:5:6:7" the
 * "::" stands for a single zero. */
enum { IPV6_MORE = 2 };

size_t url_room(const struct url *url) {
    return url->scheme.length + url->host.length + IPV6_MORE + url->path_query.length +
           sizeof "://[]:65535/" - 1;
}

/* Writes the host, in brackets if it is IPv6. *host becomes the written host without brackets. */
static char *put_host(char *at, const struct url *url, struct slice *host) {
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    struct slice name = url->host;
    if (url->host_is_ipv6 && read_ipv6(name, &address) &&
        inet_ntop(AF_INET6, &address, text, sizeof text) != NULL)
        name = slice_from(text);
    if (url->host_is_ipv6)
        *at++ = '[';
    char *end = slice_put_lower(at, name);
    *host = slice_make(at, (size_t)(end - at));
    if (url->host_is_ipv6)
        *end++ = ']';
    return end;
}

static char *put_port(char *at, uint16_t port) {
    *at++ = ':';
    return slice_put_number(at, port);
}

/* Removes the dot segments from the path, and leaves the query as it is. */
static char *remove_dot_segments(char *path, char *end) {
    char *mark = memchr(path, '?', (size_t)(end - path));
    char *path_end = mark != NULL ? mark : end;
    char *out = dot_segments_remove(path, path_end);
    if (mark == NULL || out == mark)
        return mark == NULL ? out : end;
    memmove(out, mark, (size_t)(end - mark));
    return out + (end - mark);
}

static struct slice since(const char *begin, const char *end) {
    return slice_make(begin, (size_t)(end - begin));
}

size_t url_rewrite(struct url *url, char *out, size_t capacity) {
    const struct url_scheme *scheme = url_scheme_find(url->scheme);
    if (capacity < url_room(url))
        return 0;
    char *at = slice_put_lower(out, url->scheme);
    url->scheme = since(out, at);
    at = slice_put(at, SLICE("://"));
    at = put_host(at, url, &url->host);
    url->port_given = scheme == NULL || url->port != scheme->port;
    if (url->port_given)
        at = put_port(at, url->port);
    char *path = at;
    if (url->path_query.length == 0 || url->path_query.base[0] != '/')
        *at++ = '/';
    bool strays; /* there are stray '%'; dots near them may still be encoded */
    at = put_path_query(at, url->path_query, &strays);
    if (strays || dot_segments_possible(path, at))
        at = remove_dot_segments(path, at);
    url->path_query = since(path, at);
    return (size_t)(at - out);
}

size_t url_rewrite_authority(struct url *url, char *out, size_t capacity) {
    if (capacity < url_room(url))
        return 0;
    char *at = put_port(put_host(out, url, &url->host), url->port);
    url->port_given = true;
    return (size_t)(at - out);
}

size_t url_normalise(const struct url *url, char *out, size_t capacity) {
    struct url copy = *url;
    return url_rewrite(&copy, out, capacity);
}
