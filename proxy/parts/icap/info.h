/*
 * The questions of one worker to the info service of an endpoint's server: c-icap's counters.
 *
 *     endpoint->info = icap_info_start(endpoint, server);       asks when it is its turn
 *     icap_info_end(&endpoint->info);
 *
 * A question is a REQMOD of its own connection, whose answer has a text (icap/info.h). All
 * workers have such an object; icap/server.h says whose turn it is. The answer has ICAP_INFO_PATIENCE
 * milliseconds, ICAP_INFO_HEAD bytes for its heads and ICAP_INFO_TEXT for its text. What goes wrong
 * is a failure that is counted, and nothing else: the health of the service does not depend on it.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_INFO_H
#define RETORT_ICAP_INFO_H

#include "adapt/server_numbers.h"
#include "base/slice.h"
#include "icap/endpoint.h"
#include "icap/server.h"

enum { ICAP_INFO_PATIENCE = 2000, ICAP_INFO_HEAD = 16 << 10, ICAP_INFO_TEXT = 64 << 10 };

struct icap_info;

/* `server` lives longer. NULL: it is not asked, and there is no object. */
struct icap_info *icap_info_start(struct icap_endpoint *endpoint, struct icap_server *server);
void icap_info_end(struct icap_info **infop);

/*
 * The text of the answer (?view=text), as numbers:
 *
 *     Running Servers Statistics
 *     ===========================
 *     Children number: 2
 *     REQUESTS : 1027
 *     BYTES IN : 3 Kbs 78 bytes
 *
 * Lines that are not known are skipped. All that are known must be there, each once, with numbers that
 * can be counts: the text comes from the network. A "Kb" is 1024 bytes. False: it is no such text.
 */

bool icap_info_text_read(struct slice text, struct server_numbers *numbers);

#endif
