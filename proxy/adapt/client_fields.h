/*
 * What a service may be told about the client beside the message: the fields X-Client-IP and the
 * like, and the client's credentials for this proxy. Which of them a service gets is a set of bits,
 * by which it asks for them or is configured to get them (icap_service.include).
 *
 *     unsigned fields = CLIENT_FIELD_IP | CLIENT_FIELD_PORT;
 *     size_t length = client_fields_write(fields, &client, out, capacity);   "X-Client-IP: ...\r\n"
 *
 * Threads: values; the slices are the transaction's.
 */
#ifndef RETORT_ADAPT_CLIENT_FIELDS_H
#define RETORT_ADAPT_CLIENT_FIELDS_H

#include "base/slice.h"

#include <stdint.h>

/* What is empty, or 0, is not known. */
struct adapt_client {
    struct slice ip;
    struct slice server_ip; /* of the origin that is asked for it */
    uint16_t port;
    struct slice proxy_authorization; /* credentials of the request, taken out of its head */
    struct slice proxy_authenticate;  /* challenge of the response, likewise */
};

enum client_field {
    CLIENT_FIELD_IP = 1,
    CLIENT_FIELD_PORT = 2,
    CLIENT_FIELD_SERVER_IP = 4,
    CLIENT_FIELD_CREDENTIALS = 8,
};

/* Fields that are not known are left out. Returns the length of the text; with more than `capacity`
 * nothing useful was written. */
size_t client_fields_write(unsigned fields, const struct adapt_client *client, char *out,
                           size_t capacity);

#endif
