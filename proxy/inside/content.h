/*
 * The content of the cache, for the services inside the proxy: their instances' accounts in the room
 * of content (content/account.h).
 *
 *     inside_content_use(room);                              the server, before services start
 *     instance->host.content = &inside_content_calls;
 *     instance->content = inside_content_open(settings, numbers);    after its start
 *     content_account_close(&instance->content);             after its stop
 *
 * Threads: use and open by the one that starts services; the calls by any.
 */
#ifndef RETORT_INSIDE_CONTENT_H
#define RETORT_INSIDE_CONTENT_H

#include "content/account.h"
#include "settings/settings.h"

/* NULL: there is none, as when a configuration is only tested. */
void inside_content_use(struct content_room *room);
/* NULL: there is no room. */
struct content_account *inside_content_open(const struct service_settings *settings,
                                            struct content_numbers *numbers);

extern const struct service_content_calls inside_content_calls;

#endif
