#include "adremover/host.h"

#include <idn2.h>
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

bool is_ascii(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.base[i] >= 0x80)
            return false;
    return true;
}

struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]) {
    char text[ASCII_HOST_MAX], *ascii = NULL;
    size_t length = 0;
    if (is_ascii(host))
        return host;
    if (host.length >= sizeof text || memchr(host.base, '\0', host.length) != NULL)
        return SLICE("");
    memcpy(text, host.base, host.length);
    text[host.length] = '\0';
    if (idn2_to_ascii_8z(text, &ascii, IDN2_NONTRANSITIONAL) == IDN2_OK)
        length = strlen(ascii);
    if (length > ASCII_HOST_MAX)
        length = 0;
    memcpy(room, ascii == NULL ? "" : ascii, length);
    idn2_free(ascii);
    return slice_make(room, length);
}
