/*
 * The content of the cache, for the services inside the proxy: their instances' accounts with the part that carries out what
 * they ask for (cache/content_numbers.h).
 *
 *     instance->host.content = &inside_content_calls;
 *     instance->content = inside_content_open(settings, numbers);    after its start
 *     inside_content_close(&instance->content);                      after its stop
 *
 * Threads: open and close by the one that starts services; the calls by any.
 */
#ifndef RETORT_INSIDE_CONTENT_H
#define RETORT_INSIDE_CONTENT_H

#include "cache/content_numbers.h"

/* NULL: there is no cache, or nobody gives its content. */
struct content_account *inside_content_open(const struct service_settings *settings,
                                            struct content_numbers *numbers);
/* NULL does nothing. */
void inside_content_close(struct content_account **accountp);

extern const struct service_content_calls inside_content_calls;

#endif
