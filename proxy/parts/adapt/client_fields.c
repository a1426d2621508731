#include "adapt/client_fields.h"

#include <openssl/evp.h>

#define NAME(text)                                                                                 \
    { text, sizeof(text) - 1 }

const struct client_field_name client_field_names[CLIENT_FIELD_NAMES] = {
    {CLIENT_FIELD_IP, NAME("X-Client-IP")},
    {CLIENT_FIELD_PORT, NAME("X-Client-Port")},
    {CLIENT_FIELD_SERVER_IP, NAME("X-Server-IP")},
    {CLIENT_FIELD_USERNAME, NAME("X-Client-Username")},
    {CLIENT_FIELD_AUTHENTICATED_USER, NAME("X-Authenticated-User")},
    {CLIENT_FIELD_AUTHENTICATED_GROUPS, NAME("X-Authenticated-Groups")},
    {CLIENT_FIELD_ACCESS_RULE, NAME("X-Access-Rule")},
    {CLIENT_FIELD_TLS_SNI, NAME("X-TLS-SNI")},
    {CLIENT_FIELD_TLS_VERSION, NAME("X-TLS-Version")},
    {CLIENT_FIELD_TLS_CIPHER, NAME("X-TLS-Cipher")},
    {CLIENT_FIELD_TLS_ISSUER, NAME("X-TLS-Issuer")},
    {CLIENT_FIELD_TLS_VERIFICATION, NAME("X-TLS-Verification")},
    {CLIENT_FIELD_TLS_CLIENT, NAME("X-TLS-Client-Subject")},
    {CLIENT_FIELD_TLS_CLIENT_ISSUER, NAME("X-TLS-Client-Issuer")},
    {CLIENT_FIELD_TLS_CLIENT_SERIAL, NAME("X-TLS-Client-Serial")},
};

/* Lines being written; `length` counts also what has no room. */
struct lines {
    char *out;
    size_t capacity, length;
};

static void client_fields_put(struct lines *lines, struct slice name, struct slice value) {
    size_t line = name.length + value.length + sizeof ": \r\n" - 1;
    if (value.length == 0)
        return;
    if (lines->length + line <= lines->capacity) {
        char *at = slice_put(lines->out + lines->length, name);
        slice_put(slice_put(slice_put(at, SLICE(": ")), value), SLICE("\r\n"));
    }
    lines->length += line;
}

static void client_fields_put_client(struct lines *lines, unsigned fields,
                                     const struct adapt_client *client) {
    char port[SLICE_DIGITS];
    if (fields & CLIENT_FIELD_IP)
        client_fields_put(lines, SLICE("X-Client-IP"), client->ip);
    if ((fields & CLIENT_FIELD_PORT) && client->port > 0)
        client_fields_put(lines, SLICE("X-Client-Port"), slice_of_number(port, client->port));
    if (fields & CLIENT_FIELD_SERVER_IP)
        client_fields_put(lines, SLICE("X-Server-IP"), client->server_ip);
    if (fields & CLIENT_FIELD_USERNAME)
        client_fields_put(lines, SLICE("X-Client-Username"), client->user);
    if (fields & CLIENT_FIELD_AUTHENTICATED_USER)
        client_fields_put(lines, SLICE("X-Authenticated-User"), client->authenticated_user);
    if (fields & CLIENT_FIELD_AUTHENTICATED_GROUPS)
        client_fields_put(lines, SLICE("X-Authenticated-Groups"), client->authenticated_groups);
    if (fields & CLIENT_FIELD_ACCESS_RULE)
        client_fields_put(lines, SLICE("X-Access-Rule"), client->access_rule);
    if (fields & CLIENT_FIELD_CREDENTIALS) {
        client_fields_put(lines, SLICE("Proxy-Authorization"), client->proxy_authorization);
        client_fields_put(lines, SLICE("Proxy-Authenticate"), client->proxy_authenticate);
    }
}

static void client_fields_put_tls(struct lines *lines, unsigned fields,
                                  const struct adapt_client_tls *tls) {
    if (fields & CLIENT_FIELD_TLS_SNI)
        client_fields_put(lines, SLICE("X-TLS-SNI"), tls->sni);
    if (fields & CLIENT_FIELD_TLS_VERSION)
        client_fields_put(lines, SLICE("X-TLS-Version"), tls->version);
    if (fields & CLIENT_FIELD_TLS_CIPHER)
        client_fields_put(lines, SLICE("X-TLS-Cipher"), tls->cipher);
    if (fields & CLIENT_FIELD_TLS_ISSUER)
        client_fields_put(lines, SLICE("X-TLS-Issuer"), tls->issuer);
    if (fields & CLIENT_FIELD_TLS_VERIFICATION)
        client_fields_put(lines, SLICE("X-TLS-Verification"), tls->verification);
    if (fields & CLIENT_FIELD_TLS_CLIENT)
        client_fields_put(lines, SLICE("X-TLS-Client-Subject"), tls->subject);
    if (fields & CLIENT_FIELD_TLS_CLIENT_ISSUER)
        client_fields_put(lines, SLICE("X-TLS-Client-Issuer"), tls->subject_issuer);
    if (fields & CLIENT_FIELD_TLS_CLIENT_SERIAL)
        client_fields_put(lines, SLICE("X-TLS-Client-Serial"), tls->serial);
}

size_t client_fields_write(unsigned fields, const struct adapt_client *client, char *out,
                           size_t capacity) {
    struct lines lines = {out, capacity, 0};
    client_fields_put_client(&lines, fields, client);
    if (client->tls != NULL)
        client_fields_put_tls(&lines, fields, client->tls);
    return lines.length;
}

bool client_fields_tell_user(unsigned fields, const struct adapt_client *client) {
    struct adapt_client user = *client;
    user.proxy_authenticate = slice_make("", 0); /* of the response */
    return client_fields_write(fields & CLIENT_FIELDS_OF_USER, &user, NULL, 0) > 0;
}

enum { AUTHENTICATED_MAX = 3072 }; /* bytes before base64 */

/* A comma in a name would look like the end of the name. */
static char *put_name(char *at, struct slice name) {
    static const char digits[] = "0123456789ABCDEF";
    at = slice_put(at, SLICE("Local://"));
    for (size_t i = 0; i < name.length; i++) {
        unsigned char byte = (unsigned char)name.base[i];
        if (byte != ',' && byte != '%') {
            *at++ = (char)byte;
            continue;
        }
        *at++ = '%';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    return at;
}

struct slice client_fields_authenticated(const struct slice *names, size_t count,
                                         struct arena *arena) {
    char *text = arena_alloc(arena, AUTHENTICATED_MAX), *at = text;
    for (size_t i = 0; i < count; i++) {
        size_t most = 3 * names[i].length + sizeof ",Local://";
        if (most > AUTHENTICATED_MAX - (size_t)(at - text))
            break;
        if (at > text)
            *at++ = ',';
        at = put_name(at, names[i]);
    }
    size_t length = (size_t)(at - text);
    char *out = arena_alloc(arena, 4 * ((length + 2) / 3) + 1);
    return slice_make(out, (size_t)EVP_EncodeBlock((unsigned char *)out,
                                                   (const unsigned char *)text, (int)length));
}
