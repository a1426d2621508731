/*
 * What a service may be told about the client beside the message: the fields X-Client-IP and the
 * like, and the client's credentials for this proxy. Which of them a service gets is a set of bits,
 * by which it asks for them or is configured to get them (icap_service.include).
 *
 *     unsigned fields = CLIENT_FIELD_IP | CLIENT_FIELD_PORT;
 *     size_t length = client_fields_write(fields, &client, out, capacity);   "X-Client-IP: ...\r\n"
 *
 *     for (size_t i = 0; i < CLIENT_FIELD_NAMES; i++)
 *         if (http_head_has_token(head, HTTP_X_INCLUDE, client_field_names[i].name))
 *             fields |= client_field_names[i].field;
 *
 * Called by adapters that write a request. The names are those of draft-stecher-icap-subid-00 and of
 * the list of ICAP extensions; docs/ICAP.md has them all.
 *
 * Threads: pure functions on values. Ownership: the slices are the transaction's. Errors: none; a value
 * that is not known makes no field.
 */
#ifndef RETORT_ADAPT_CLIENT_FIELDS_H
#define RETORT_ADAPT_CLIENT_FIELDS_H

#include "base/arena.h"

#include <stdint.h>

/* The TLS connection of the client, as far as it is known. */
struct adapt_client_tls {
    struct slice sni;             /* the server name that it asked for */
    struct slice version, cipher; /* empty: there was no handshake with it */
    struct slice subject, serial; /* of the certificate that the client showed */
    struct slice subject_issuer;
    /* Of an intercepted connection: the issuer of the origin's certificate, and "ok" or why it is
     * not trusted. */
    struct slice issuer, verification;
};

struct requester;

/* What is empty, or 0, is not known. */
struct adapt_client {
    struct slice ip;
    struct slice server_ip; /* of the origin that is asked for it */
    uint16_t port;
    struct slice user; /* proved, or claimed where nobody is asked for a proof */
    struct slice authenticated_user, authenticated_groups; /* proved, in the form of the fields */
    struct slice proxy_authorization;   /* credentials of the request, taken out of its head */
    struct slice proxy_authenticate;    /* challenge of the response, likewise */
    struct slice access_rule;           /* the class of the access section that decided */
    const struct adapt_client_tls *tls; /* NULL: clear text */
    const struct requester *requester;  /* client/requester.h; NULL: not known */
    bool of_service;                    /* the request is a service's own */
};

enum client_field {
    CLIENT_FIELD_IP = 1,
    CLIENT_FIELD_PORT = 2,
    CLIENT_FIELD_SERVER_IP = 4,
    CLIENT_FIELD_CREDENTIALS = 8,
    CLIENT_FIELD_USERNAME = 16,
    CLIENT_FIELD_TLS_SNI = 32,
    CLIENT_FIELD_TLS_VERSION = 64,
    CLIENT_FIELD_TLS_CIPHER = 128,
    CLIENT_FIELD_TLS_ISSUER = 256,
    CLIENT_FIELD_TLS_VERIFICATION = 512,
    CLIENT_FIELD_TLS_CLIENT = 1024, /* X-TLS-Client-Subject */
    CLIENT_FIELD_TLS_CLIENT_ISSUER = 2048,
    CLIENT_FIELD_TLS_CLIENT_SERIAL = 4096,
    CLIENT_FIELD_AUTHENTICATED_USER = 8192,
    CLIENT_FIELD_AUTHENTICATED_GROUPS = 16384,
    CLIENT_FIELD_ACCESS_RULE = 32768,
    CLIENT_FIELDS_OF_USER = CLIENT_FIELD_CREDENTIALS | CLIENT_FIELD_USERNAME |
                            CLIENT_FIELD_AUTHENTICATED_USER | CLIENT_FIELD_AUTHENTICATED_GROUPS |
                            CLIENT_FIELD_TLS_CLIENT | CLIENT_FIELD_TLS_CLIENT_ISSUER |
                            CLIENT_FIELD_TLS_CLIENT_SERIAL,
};

/* Base64 of "Local://NAME" (X-Authenticated-User of draft-stecher-icap-subid-00), and of such names
 * joined by commas; as many as have room in a field. Memory: the arena. */
struct slice client_fields_authenticated(const struct slice *names, size_t count,
                                         struct arena *arena);

/* Fields that are not known are left out. Returns the length of the text; with more than `capacity`
 * nothing useful was written. */
size_t client_fields_write(unsigned fields, const struct adapt_client *client, char *out,
                           size_t capacity);

/* Do the values of these fields tell whose request it is? The address counts as in X-Forwarded-For:
 * it is nobody's name. */
bool client_fields_tell_user(unsigned fields, const struct adapt_client *client);

/* The fields that a service may ask for by their names: all but the credentials. */
enum { CLIENT_FIELD_NAMES = 15 };
struct client_field_name {
    enum client_field field;
    struct slice name;
};
extern const struct client_field_name client_field_names[CLIENT_FIELD_NAMES];

#endif
