/*
 * What a service is told of the client beside the message: ICAP fields such as X-Client-IP, where
 * it asks for them in its OPTIONS or is configured to get them (icap_service.include).
 *
 *     unsigned told = icap_told_at(endpoint);
 *     size_t length = icap_told_write(told, &request, out, capacity);    "X-Client-IP: ...\r\n" ...
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_TOLD_H
#define RETORT_ICAP_TOLD_H

#include <stddef.h>

struct icap_endpoint;
struct icap_request;
struct icap_service;

enum icap_told {
    ICAP_TOLD_CLIENT_IP = 1,
    ICAP_TOLD_CLIENT_PORT = 2,
    ICAP_TOLD_SERVER_IP = 4,
    ICAP_TOLD_CREDENTIALS = 8,
};

/* Or-ed; the second: at any of its endpoints, as far as they are known. */
unsigned icap_told_at(const struct icap_endpoint *endpoint);
unsigned icap_told_by(const struct icap_service *service);
/* As http_head_write_request: with more than `capacity` nothing useful was written. */
size_t icap_told_write(unsigned told, const struct icap_request *request, char *out,
                       size_t capacity);

#endif
