/*
 * Which fields about the client (adapt/client_fields.h) a service gets: those that it asks for in
 * its OPTIONS, or is configured to get (icap_service.include).
 *
 *     unsigned fields = icap_client_fields_at(endpoint);        bits of enum client_field
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_CLIENT_FIELDS_H
#define RETORT_ICAP_CLIENT_FIELDS_H

struct icap_endpoint;
struct icap_service;
struct service_settings;

/* Those that the operator has configured. */
unsigned icap_client_fields_configured(const struct service_settings *settings);
unsigned icap_client_fields_at(const struct icap_endpoint *endpoint);
/* At any of its endpoints, as far as they are known. */
unsigned icap_client_fields_of(const struct icap_service *service);

#endif
