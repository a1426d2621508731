#include "client/coalescing.h"

#include "tls/certificate_names.h"
#include "tls/certificate_set.h"

#include <string.h>

enum { NAME_MOST = 255 };

static bool choice_covers(const struct certificate_choice *choice, const char *host) {
    for (int kind = 0; kind < CERTIFICATE_KINDS; kind++)
        if (choice->of[kind] != NULL && certificate_names_include(choice->of[kind]->leaf, host))
            return true;
    return false;
}

/* Is the certificate that this connection was shown for the host as well? */
static bool certificate_covers(const struct certificate_set *set, struct slice asked,
                               struct slice host) {
    char text[NAME_MOST + 1];
    const struct certificate_choice *choice =
        asked.length > 0 ? certificate_set_find(set, asked) : NULL;
    if (host.length > NAME_MOST)
        return false;
    *slice_put(text, host) = '\0';
    return choice_covers(choice != NULL ? choice : certificate_set_default(set), text);
}

bool coalescing_allows(const struct exchange_ends *ends, const struct listen_settings *listen,
                       struct slice authority) {
    struct url url;
    struct address address;
    if (listen == NULL || listen->mode != LISTEN_REVERSE || listen->tls.set == NULL ||
        ends->tls == NULL)
        return true;
    struct slice asked = slice_from(ends->tls->server_name);
    if (slice_equal_nocase(authority, asked) || !url_parse_authority(&url, authority, 0))
        return true;
    while (url.host.length > 0 && url.host.base[url.host.length - 1] == '.')
        url.host.length--;
    if (slice_equal_nocase(url.host, asked))
        return true;
    /* RFC 6066 §3: a client that connects to an address asks for no name. */
    if (asked.length == 0 && address_parse_ip(&address, url.host, 0))
        return true;
    return certificate_covers(listen->tls.set, asked, url.host);
}
