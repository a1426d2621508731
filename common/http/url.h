/*
 * http and https URLs as they stand in requests and settings (RFC 3986, RFC 9110 §4.2), and ICAP's.
 *
 *     struct url url;
 *     if (!url_parse(&url, SLICE("http://[::1]:8080/a?b"))) -> not an absolute URL
 *     url.host "::1" (no brackets), url.port 8080, url.path_query "/a?b"
 *
 * Slices point into the text. A fragment is cut off. User info ("user@") is refused: it is a way to
 * mislead. Other schemes than these four are refused. Hosts are checked: letters, digits, '-', '.',
 * '_', an IPv6 address inside brackets, no other bytes. Dots at the end of a name, which only say
 * that it is whole, are cut off.
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP_URL_H
#define RETORT_HTTP_URL_H

#include "base/slice.h"

struct url_scheme {
    struct slice name; /* lower case */
    uint16_t port;     /* where a URL names none */
};

enum url_scheme_id { URL_HTTP, URL_HTTPS, URL_ICAP, URL_ICAPS, URL_SCHEMES };
extern const struct url_scheme url_schemes[URL_SCHEMES];

struct url {
    struct slice scheme; /* as written; compare without case */
    struct slice host;   /* without brackets */
    bool host_is_ipv6;   /* stood in brackets */
    uint16_t port;       /* the scheme's (url_schemes) when absent */
    bool port_given;
    struct slice path_query; /* from the first '/' or '?'; empty when absent (stands for "/") */
};

bool url_parse(struct url *url, struct slice text);
/* "host", "host:port", "[v6]:port": Host, CONNECT targets and listen addresses. The port is
 * `default_port` when absent, also behind a colon ("host:"); it may be 0. Whom that does not suit
 * (CONNECT) looks at port_given and port. */
bool url_parse_authority(struct url *url, struct slice text, uint16_t default_port);
/* Makes a URL of a scheme, a parsed authority (Host) and a target that begins with '/'. */
bool url_set_target(struct url *url, const struct url_scheme *scheme, struct slice target);
/* Without case; NULL: none of these. */
const struct url_scheme *url_scheme_find(struct slice name);
/* A URL names this port, or its scheme does for it. */
bool url_has_default_port(const struct url *url);
/* The path without the query; "/" when it is empty. */
struct slice url_path(const struct url *url);

/* Writes the canonical form, by which the cache and the classes go and which the origin is asked
 * for: lower-case scheme and host, an IPv6 address as RFC 5952 has it, no default port, "/" for an
 * empty path, percent-encodings of unreserved bytes decoded and the others in upper case, no "." or
 * ".." segments (RFC 3986 §6.2.2). A '%' that encodes nothing stays as it is, and so do empty
 * segments. Returns the length, 0 when the capacity is less than url_room. */
size_t url_normalise(const struct url *url, char *out, size_t capacity);
/* The room that it takes at the most: at most eleven bytes more than the text that was parsed. */
size_t url_room(const struct url *url);
/* The same, and *url becomes that of what was written. */
size_t url_rewrite(struct url *url, char *out, size_t capacity);
/* The same of "host:port" alone, which always has a port: what CONNECT asks for. */
size_t url_rewrite_authority(struct url *url, char *out, size_t capacity);

#endif
