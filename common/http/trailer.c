#include "http/trailer.h"

#include "base/assert.h"
#include "http/head_parser.h"

static const char *const forbidden[] = {
    /* framing and routing */
    "Content-Length",
    "Host",
    "Transfer-Encoding",
    "Via",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    /* hop-by-hop */
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Upgrade",
    /* request modifiers */
    "Expect",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Max-Forwards",
    "Pragma",
    "Range",
    /* authentication and state */
    "Authorization",
    "Cookie",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Set-Cookie",
    "WWW-Authenticate",
    /* control of responses and caches */
    "Age",
    "Cache-Control",
    "Cache-Status",
    "CDN-Cache-Control",
    "Date",
    "Expires",
    "Location",
    "Retry-After",
    "Surrogate-Control",
    "Vary",
    "Warning",
    /* processing of content */
    "Content-Encoding",
    "Content-Location",
    "Content-Range",
    "Content-Type",
};

bool trailer_may_pass(struct slice name) {
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (slice_equal_nocase(name, slice_from(forbidden[i])))
            return false;
    return name.length > 0;
}

size_t trailer_filter(char *bytes, size_t length) {
    struct http_head head;
    size_t kept = 0;
    if (http_head_parse_fields(&head, bytes, length) != (ssize_t)length)
        return 0;
    for (size_t at = 0; at < length;) {
        const char *begin = bytes + at;
        const char *end = memchr(begin, '\n', length - at);
        ASSERT(end != NULL);
        size_t line = (size_t)(end + 1 - begin);
        const char *colon = memchr(begin, ':', line);
        if (colon != NULL && trailer_may_pass(slice_make(begin, (size_t)(colon - begin)))) {
            memmove(bytes + kept, begin, line);
            kept += line;
        }
        at += line;
    }
    return kept;
}
