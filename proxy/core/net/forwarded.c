#include "net/forwarded.h"

#include "base/assert.h"

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct address *address) {
    struct address plain = *address;
    address_unmap(&plain);
    for (size_t i = 0; i < trust->proxy_count; i++)
        if (network_contains(&trust->proxies[i], &plain))
            return true;
    return false;
}

/* In a quoted string a quotation mark behind a backslash is text. */
static bool is_escaped(struct slice text, size_t at) {
    size_t slashes = 0;
    while (slashes < at && text.base[at - slashes - 1] == '\\')
        slashes++;
    return slashes % 2 == 1;
}

bool forwarded_take_last(struct slice *list, struct slice *element) {
    struct slice text = *list;
    bool quoted = false;
    if (text.base == NULL)
        return false;
    for (size_t i = text.length; i-- > 0;) {
        if (text.base[i] == '"' && !is_escaped(text, i))
            quoted = !quoted;
        if (text.base[i] == ',' && !quoted) {
            *element = slice_trim(slice_make(text.base + i + 1, text.length - i - 1));
            *list = slice_make(text.base, i);
            return true;
        }
    }
    *element = slice_trim(text);
    *list = slice_make(NULL, 0);
    return true;
}

/* A port is decimal digits, or a name that hides it and begins with '_' (RFC 7239 §6). */
static bool parse_node_port(struct slice text, uint16_t *port) {
    uint64_t number;
    *port = 0;
    if (text.length > 1 && text.base[0] == '_')
        return true;
    if (text.length > 5 || !slice_to_uint64(text, &number) || number == 0 || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}

/* An IPv6 address in brackets, perhaps with a port. */
static bool parse_bracketed(struct slice text, struct address *address) {
    const char *end = memchr(text.base, ']', text.length);
    uint16_t port = 0;
    if (end == NULL)
        return false;
    struct slice ip = slice_make(text.base + 1, (size_t)(end - text.base - 1));
    struct slice rest = slice_make(end + 1, (size_t)(text.base + text.length - end - 1));
    if (rest.length > 0 && (rest.base[0] != ':' ||
                            !parse_node_port(slice_make(rest.base + 1, rest.length - 1), &port)))
        return false;
    return memchr(ip.base, ':', ip.length) != NULL && address_parse_ip(address, ip, port);
}

/* An IPv4 address with a port. */
static bool parse_with_port(struct slice text, struct address *address) {
    const char *colon = memchr(text.base, ':', text.length);
    uint16_t port;
    if (colon == NULL ||
        !parse_node_port(slice_make(colon + 1, (size_t)(text.base + text.length - colon - 1)),
                         &port))
        return false;
    struct slice ip = slice_make(text.base, (size_t)(colon - text.base));
    return memchr(ip.base, '.', ip.length) != NULL && address_parse_ip(address, ip, port);
}

bool forwarded_parse_x(struct slice text, struct address *address) {
    enum { LONGEST = ADDRESS_IP_TEXT + sizeof "[]:65535" };
    if (text.length == 0 || text.length > LONGEST)
        return false;
    bool good = text.base[0] == '['
                    ? parse_bracketed(text, address)
                    : address_parse_ip(address, text, 0) || parse_with_port(text, address);
    if (good)
        address_unmap(address);
    return good;
}

/* Takes the next "name=value" off the front of an element. The value has no quotation marks any
 * more, but the backslashes that it had in them: no address has one. */
static bool take_parameter(struct slice *rest, struct slice *name, struct slice *value) {
    const char *end = rest->base + rest->length, *at = rest->base;
    const char *equals = rest->length > 0 ? memchr(at, '=', rest->length) : NULL;
    if (equals == NULL)
        return false;
    *name = slice_trim(slice_make(at, (size_t)(equals - at)));
    at = equals + 1;
    bool quoted = at < end && *at == '"';
    const char *begin = quoted ? ++at : at;
    while (at < end && *at != (quoted ? '"' : ';'))
        at += quoted && *at == '\\' && at + 1 < end ? 2 : 1;
    *value = slice_make(begin, (size_t)(at - begin));
    if (quoted && at++ == end)
        return false;
    *rest = slice_trim(slice_make(at, (size_t)(end - at)));
    if (rest->length == 0)
        return true;
    if (rest->base[0] != ';')
        return false;
    *rest = slice_make(rest->base + 1, rest->length - 1);
    return true;
}

/* The value of "for" is a node (RFC 7239 §6): IPv4, or IPv6 in brackets, and perhaps a port, which
 * makes it a quoted string. Two values of "for" in an element contradict one another. */
bool forwarded_parse(struct slice element, struct address *address) {
    struct slice rest = element, name, value, node = slice_make(NULL, 0);
    while (rest.length > 0) {
        if (!take_parameter(&rest, &name, &value))
            return false;
        if (!slice_equal_nocase(name, SLICE("for")))
            continue;
        if (node.base != NULL)
            return false;
        node = slice_trim(value);
    }
    return node.length > 0 && forwarded_parse_x(node, address);
}

/* All fields of a request, from the last to the first. */
struct forwarded_walk {
    const struct http_head *head;
    enum forwarded_field field;
    unsigned next; /* fields before this one have not been read */
    struct slice list;
};

static bool is_walked(const struct forwarded_walk *walk, const struct http_field *field) {
    return walk->field == FORWARDED_BY_X ? field->id == HTTP_X_FORWARDED_FOR
                                         : field->id == HTTP_FORWARDED;
}

static bool walk_back(struct forwarded_walk *walk, struct slice *element) {
    while (!forwarded_take_last(&walk->list, element)) {
        do {
            if (walk->next == 0)
                return false;
            walk->next--;
        } while (!is_walked(walk, &walk->head->fields[walk->next]));
        walk->list = walk->head->fields[walk->next].value;
    }
    return true;
}

bool forwarded_client(const struct http_head *head, const struct forwarded_trust *trust,
                      const struct address *peer, struct address *client) {
    struct forwarded_walk walk = {.head = head, .field = trust->field, .next = head->field_count};
    struct slice element;
    *client = *peer;
    for (unsigned hops = 0; hops < FORWARDED_HOPS && forwarded_is_trusted(trust, client); hops++) {
        struct address before;
        if (!walk_back(&walk, &element))
            break;
        if (element.length == 0) /* RFC 9110 §5.6.1.2: it stands for nothing */
            continue;
        if (!(trust->field == FORWARDED_BY_X ? forwarded_parse_x(element, &before)
                                             : forwarded_parse(element, &before)))
            break;
        *client = before;
    }
    return !address_equal(client, peer);
}

size_t forwarded_write(char out[FORWARDED_ELEMENT], const struct address *client,
                       struct slice scheme) {
    char ip[ADDRESS_IP_TEXT], *at = slice_put(out, SLICE("for="));
    struct slice text = slice_make(ip, address_format_ip(client, ip));
    bool v6 = memchr(text.base, ':', text.length) != NULL;
    at = slice_put(at, v6 ? SLICE("\"[") : SLICE(""));
    at = slice_put(at, text);
    at = slice_put(at, v6 ? SLICE("]\"") : SLICE(""));
    if (scheme.length > 0 && scheme.length <= sizeof "https") {
        at = slice_put(at, SLICE(";proto="));
        at = slice_put(at, scheme);
    }
    ASSERT(at <= out + FORWARDED_ELEMENT);
    return (size_t)(at - out);
}
