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
    "Set-Cookie2",
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
    for (unsigned i = 0; i < head.field_count; i++) {
        struct slice name = head.fields[i].name, value = head.fields[i].value;
        if (!trailer_may_pass(name))
            continue;
        memmove(bytes + kept, name.base, name.length);
        kept += name.length;
        bytes[kept++] = ':';
        memmove(bytes + kept, value.base, value.length);
        kept += value.length;
        memcpy(bytes + kept, "\r\n", 2);
        kept += 2;
    }
    return kept;
}
