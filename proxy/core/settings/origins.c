#include "settings/origins.h"

#include "base/assert.h"

#include "base/failure.h"
#include "net/address.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the next word off the front of the text; empty at the end. */
static struct slice origins_next_word(struct slice *rest) {
    *rest = slice_trim(*rest);
    size_t length = 0;
    while (length < rest->length && rest->base[length] != ' ' && rest->base[length] != '\t')
        length++;
    struct slice word = slice_make(rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
    return word;
}

static bool origins_is_label(struct slice label) {
    for (size_t i = 0; i < label.length; i++)
        if (!isalnum((unsigned char)label.base[i]) && label.base[i] != '-' && label.base[i] != '_')
            return false;
    return label.length > 0 && label.length <= 63;
}

/* A name of DNS, and no IP address. */
static bool is_dns_name(struct slice name) {
    struct address address;
    if (name.length > 253 || address_parse_spelt_ip(&address, name, 0))
        return false;
    for (;;) {
        size_t length = 0;
        while (length < name.length && name.base[length] != '.')
            length++;
        if (!origins_is_label(slice_make(name.base, length)))
            return false;
        if (length == name.length)
            return true;
        name = slice_make(name.base + length + 1, name.length - length - 1);
    }
}

/* The name behind its first label; the name itself where that does not begin with "_". */
static struct slice without_service_label(struct slice name) {
    const char *dot = memchr(name.base, '.', name.length);
    if (name.length == 0 || name.base[0] != '_' || dot == NULL)
        return name;
    size_t length = (size_t)(dot + 1 - name.base);
    return slice_make(name.base + length, name.length - length);
}

/* "_SERVICE._PROTOCOL.DOMAIN" (RFC 2782). */
static bool is_srv_name(struct slice name) {
    struct slice rest = without_service_label(name);
    return rest.length < name.length && without_service_label(rest).length < rest.length;
}

static char *copy_lower(struct slice text) {
    char *copy = xcalloc(1, text.length + 1);
    slice_put_lower(copy, text);
    return copy;
}

static bool origins_parse_name(struct origin_server_settings *server, struct slice name,
                               char *error, size_t error_size) {
    if (!is_dns_name(name))
        return failure(error, error_size,
                       "has a name= that is not the name of a host: write "
                       "name=shop.example, without a port");
    free(server->name);
    server->name = copy_lower(name);
    return true;
}

/* After all words. */
static bool check_srv(struct origin_server_settings *server, char *error, size_t error_size) {
    struct slice host = server->url.host;
    if (!server->srv && server->name != NULL)
        return failure(error, error_size,
                       "has name= without srv; other servers are called as in their URL");
    if (!server->srv && is_srv_name(host))
        return failure(error, error_size,
                       "is a name of SRV records and not of a host: write srv behind it");
    if (!server->srv)
        return true;
    if (!is_dns_name(host) || server->url.port_given)
        return failure(error, error_size,
                       "can not be looked up as SRV records: write "
                       "\"https://_https._tcp.shop.example srv\", without a port, which "
                       "the records say");
    if (server->weight != 0)
        return failure(error, error_size,
                       "has srv and weight=; the weights are those of the SRV records");
    if (server->name == NULL)
        server->name = copy_lower(without_service_label(without_service_label(host)));
    return true;
}

static bool parse_word(struct origin_server_settings *server, struct slice word, char *error,
                       size_t error_size) {
    struct slice weight = SLICE("weight="), name = SLICE("name=");
    uint64_t value;
    if (slice_equal(word, SLICE("srv"))) {
        server->srv = true;
        return true;
    }
    if (slice_starts_with(word, name))
        return origins_parse_name(server,
                                  slice_make(word.base + name.length, word.length - name.length),
                                  error, error_size);
    if (slice_equal(word, SLICE("backup"))) {
        server->backup = true;
        return true;
    }
    if (slice_equal(word, SLICE("drain"))) {
        server->drain = true;
        return true;
    }
    if (!slice_starts_with(word, weight))
        return failure(
            error, error_size,
            "has \"%.*s\" after the URL; only weight=N, backup and drain may follow it, or "
            "srv and name=HOST",
            SLICE_PRINT(word));
    word = slice_make(word.base + weight.length, word.length - weight.length);
    if (!slice_to_uint64(word, &value) || value < 1 || value > ORIGINS_WEIGHT_MAX)
        return failure(error, error_size, "has a weight that is not a number from 1 to 256");
    server->weight = (unsigned)value;
    return true;
}

static bool is_place(const struct url *url) {
    return url_is_web(url) && url->host.length <= 255 && url->port != 0 &&
           (url->path_query.length == 0 || slice_equal(url->path_query, SLICE("/")));
}

bool origins_parse_server(struct origin_server_settings *server, const char *text, char *error,
                          size_t error_size) {
    struct slice rest = slice_from(text), word = origins_next_word(&rest);
    *server = (struct origin_server_settings){.text = slice_dup(word)};
    if (!url_parse(&server->url, slice_from(server->text)) || !is_place(&server->url) ||
        strchr(server->text, '#') != NULL)
        return failure(error, error_size,
                       "is not a server: write \"http://HOST:PORT\" or "
                       "\"https://HOST:PORT\" without a path, optionally followed by "
                       "weight=N, backup or drain, or by srv");
    while ((word = origins_next_word(&rest)).length > 0)
        if (!parse_word(server, word, error, error_size))
            return false;
    if (!check_srv(server, error, error_size))
        return false;
    server->weight += server->weight == 0;
    return true;
}

void origins_release_server(struct origin_server_settings *server) {
    free(server->text);
    free(server->name);
    server->text = server->name = NULL;
}

bool origins_check_server(const char *text, char *error, size_t error_size) {
    struct origin_server_settings server;
    bool good = origins_parse_server(&server, text, error, error_size);
    origins_release_server(&server);
    return good;
}

bool origins_check_status(const char *text, char *error, size_t error_size) {
    uint64_t status;
    if (strcmp(text, "none") == 0 ||
        (slice_to_uint64(slice_from(text), &status) && status >= 500 && status <= 599))
        return true;
    return failure(error, error_size, "is not a status from 500 to 599, or none");
}

bool origins_check_alias(const char *text, char *error, size_t error_size) {
    struct url url;
    bool web = url_parse(&url, slice_from(text)) && url_is_web(&url);
    if (strcmp(text, "none") == 0 || (web && strpbrk(text, "?#") == NULL))
        return true;
    return failure(error, error_size,
                   "is not the beginning of a URL: write \"http://HOST:PORT/PATH\", or none");
}
