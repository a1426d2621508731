/*
 * URLs of http, https, icap and icaps, as in requests and settings (RFC 3986, RFC 9110 §4.2).
 *
 *     struct url url;
 *     if (!url_parse(&url, SLICE("http://[::1]:8080/a?b"))) -> not an absolute URL
 *     url.host "::1" (no brackets), url.port 8080, url.path_query "/a?b"
 *
 * Slices point into the text. A fragment is cut off. User info ("user@") is refused, because it can
 * mislead people. Schemes other than these four are refused. Hosts are checked: a name consists of
 * letters, digits, '-', '.' and '_'; an IPv6 address is inside brackets. Dots at the end of a name
 * only mark it as complete, and are cut off.
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP_URL_H
#define RETORT_HTTP_URL_H

#include "base/slice.h"

struct url_scheme {
    struct slice name; /* lower case */
    uint16_t port;     /* for a URL without a port */
};

enum url_scheme_id { URL_HTTP, URL_HTTPS, URL_ICAP, URL_ICAPS, URL_SCHEMES };
extern const struct url_scheme url_schemes[URL_SCHEMES];

struct url {
    struct slice scheme; /* as written; compare without case */
    struct slice host;   /* without brackets */
    bool host_is_ipv6;   /* the host was in brackets */
    uint16_t port;       /* the port of the scheme (url_schemes) when absent */
    bool port_given;
    struct slice path_query; /* from the first '/' or '?'; empty when absent (stands for "/") */
};

bool url_parse(struct url *url, struct slice text);
/* "host", "host:port", "[v6]:port": Host, CONNECT targets and listen addresses. The port is
 * `default_port` when it is absent, also behind a colon ("host:"). `default_port` may be 0. Code
 * that needs a port (CONNECT) checks port_given and port. */
bool url_parse_authority(struct url *url, struct slice text, uint16_t default_port);
/* Makes a URL of a scheme, a parsed authority (Host) and a target that begins with '/'. */
bool url_set_target(struct url *url, const struct url_scheme *scheme, struct slice target);
/* Finds the user info ("user:password@") in a text that need not be a URL, such as the target of a
 * request that is refused: with its '@', empty when there is none. */
struct slice url_user_info(struct slice text);
/* Finds the scheme by its name, without case; NULL: another scheme. */
const struct url_scheme *url_scheme_find(struct slice name);
/* Is it of the grammar of schemes (RFC 3986 §3.1)? */
bool url_scheme_is_good(struct slice scheme);
/* The scheme of a text that begins as a URL does, "scheme://", whether the scheme is known or not;
 * else empty. */
struct slice url_scheme_of(struct slice text);
/* Is the port of the URL the default port of its scheme? */
bool url_has_default_port(const struct url *url);
/* Is it a URL of https? */
bool url_is_https(const struct url *url);
/* Is it a URL of http or https? */
bool url_is_web(const struct url *url);
/* The path without the query; "/" when it is empty. */
static inline struct slice url_path(const struct url *url) {
    struct slice path = url->path_query;
    const char *query = path.length > 0 ? memchr(path.base, '?', path.length) : NULL;
    if (query != NULL)
        path.length = (size_t)(query - path.base);
    return path.length == 0 ? SLICE("/") : path;
}

/* Writes the canonical form of the URL, which the cache, the classes and requests to origins use.
 * Scheme and host are in lower case, an IPv6 address has the form of RFC 5952, and a default port
 * is left out. An empty path becomes "/". Percent-encodings of unreserved bytes are decoded, the
 * others are in upper case, and "." and ".." segments are removed (RFC 3986 §6.2.2). A '%' that
 * encodes nothing stays as it is, and so do empty segments. Returns the length, or 0 when the
 * capacity is less than url_room. */
size_t url_normalise(const struct url *url, char *out, size_t capacity);
/* The room that the canonical form needs: at most eleven bytes more than the parsed text. */
size_t url_room(const struct url *url);
/* Like url_normalise; *url then describes the written URL, and its slices point into `out`. */
size_t url_rewrite(struct url *url, char *out, size_t capacity);
/* Like url_rewrite, for "host:port" alone, the target of CONNECT. The port is always written. */
size_t url_rewrite_authority(struct url *url, char *out, size_t capacity);

#endif
