#include "adremover/site.h"

#include <libpsl.h>

enum { HOST_SIZE = 256 };

/* The place where the last `count` labels begin. */
static size_t last_labels(struct slice host, unsigned count) {
    for (size_t i = host.length; i-- > 0;)
        if (host.base[i] == '.' && --count == 0)
            return i + 1;
    return 0;
}

static bool site_is_address(struct slice host) {
    if (host.length == 0 || memchr(host.base, ':', host.length) != NULL)
        return true;
    size_t last = last_labels(host, 1);
    return last < host.length && host.base[last] >= '0' && host.base[last] <= '9';
}

/* The place where the registrable domain begins; 0 when the host is a public suffix itself. */
static size_t site_begin(struct slice host) {
    char text[HOST_SIZE];
    const psl_ctx_t *list = psl_builtin();
    if (list == NULL || host.length >= sizeof text)
        return last_labels(host, 2);
    memcpy(text, host.base, host.length);
    text[host.length] = 0;
    const char *domain = psl_registrable_domain(list, text);
    return domain == NULL ? 0 : (size_t)(domain - text);
}

static struct slice tail(struct slice host, size_t begin) {
    return slice_make(host.base + begin, host.length - begin);
}

bool site_is_same(struct slice a, struct slice b) {
    if (slice_equal(a, b))
        return true;
    if (site_is_address(a) || site_is_address(b))
        return false;
    /* A site has at least two labels. Most pairs of hosts differ in these, so the list is not
     * needed. */
    if (!slice_equal(tail(a, last_labels(a, 2)), tail(b, last_labels(b, 2))))
        return false;
    return slice_equal(tail(a, site_begin(a)), tail(b, site_begin(b)));
}

size_t site_suffix(struct slice host) {
    if (site_is_address(host))
        return 0;
    struct slice site = tail(host, site_begin(host));
    const char *dot = memchr(site.base, '.', site.length);
    return dot == NULL ? 0 : site.length - (size_t)(dot - site.base);
}
