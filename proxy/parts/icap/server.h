/*
 * An ICAP server and what it says about itself: the numbers of c-icap's info service. All services
 * and workers that ask the same server share one.
 *
 *     struct icap_server *server = icap_server_get(settings, endpoint);   NULL: nobody wants them
 *     if (icap_server_claim(server, loop->now)) ... it is this worker's turn to ask (icap/info.h)
 *     icap_server_answered(server, &numbers); icap_server_failed(server);
 *     icap_server_report(server, &report);
 *     icap_server_release(&server);
 *
 * It is asked every ICAP_SERVER_EVERY milliseconds, because each question takes a connection, and a
 * thread of the server, for a moment.
 *
 * Units: milliseconds of the loops' clock. Threads: any; a lock for each server.
 */
#ifndef RETORT_ICAP_SERVER_H
#define RETORT_ICAP_SERVER_H

#include "adapt/server_numbers.h"
#include "settings/settings.h"

enum { ICAP_SERVER_EVERY = 3000 };

struct icap_server;

struct icap_server *icap_server_get(const struct service_settings *settings, unsigned endpoint);
void icap_server_release(struct icap_server **serverp);
/* "icap://10.0.0.1:1344/info?view=text" */
const char *icap_server_uri(const struct icap_server *server);
bool icap_server_claim(struct icap_server *server, uint64_t now);
void icap_server_answered(struct icap_server *server, const struct server_numbers *numbers);
void icap_server_failed(struct icap_server *server);
/* NULL: it is not asked. */
void icap_server_report(struct icap_server *server, struct server_report *report);

#endif
