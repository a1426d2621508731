#include "service/url_pattern.h"

struct slice exchange_url(const struct service_exchange *exchange) {
    const struct http_head *request = exchange->request;
    struct slice target = request->target;
    if (target.length == 0 || target.base[0] != '/')
        return target;
    return arena_concat(exchange->arena, SLICE("http://"), http_head_value(request, HTTP_HOST),
                        target);
}

/* After a mismatch, matching goes back to the last "*" only. So the work is at most the product of
 * the two lengths. */
bool url_pattern_matches(struct slice pattern, struct slice url) {
    size_t at = 0, in = 0, star = SIZE_MAX, resume = 0;
    while (in < url.length) {
        if (at < pattern.length && pattern.base[at] == '*') {
            star = at++;
            resume = in;
        } else if (at < pattern.length && ascii_lower((unsigned char)pattern.base[at]) ==
                                              ascii_lower((unsigned char)url.base[in])) {
            at++;
            in++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            in = ++resume;
        } else
            return false;
    }
    while (at < pattern.length && pattern.base[at] == '*')
        at++;
    return at == pattern.length;
}

bool url_listed(struct slice url, const struct service_list *patterns) {
    for (unsigned i = 0; i < patterns->count; i++)
        if (url_pattern_matches(slice_from(patterns->items[i]), url))
            return true;
    return false;
}
