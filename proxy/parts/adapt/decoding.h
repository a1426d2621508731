/*
 * The decoding of a response for services that read no content codings: once for all of a chain,
 * with the original kept until it is known whether it is wanted again.
 *
 *     struct decoding *decoding = decoding_begin(message, service->settings, arena, net);
 *     ... NULL: there is nothing to decode, or nobody may; else message->response and ->body are
 *     the decoded ones, as if the origin had sent no coding
 *     if (decoding_error(decoding) != NULL) ...         it can't be decoded after all
 *     if (decoding_restore(decoding, message)) ...      the original, byte for byte
 *     decoding_commit(decoding);                        the original is not wanted any more
 *     decoding_close(decoding);
 *
 * These responses stay as they are: those without a coding or with an unknown one; those whose body
 * is known to be empty; and those for which the response or the request says no-transform (RFC 9110
 * §7.7). The original is kept as adapt/virgin_body keeps bodies, within the service's keep and
 * keep_on_disk; a larger original can't be restored. The reader of the decoded body must have
 * stopped before decoding_restore is called.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_DECODING_H
#define RETORT_ADAPT_DECODING_H

#include "adapt/decoder.h"
#include "adapt/message.h"
#include "adapt/virgin_body.h"
#include "net/context.h"
#include "settings/settings.h"

struct decoding {
    unsigned magic;
#define DECODING_MAGIC 0xdec0d100u
    struct net_context *net;
    const char *service; /* in front of which it is done, and the URL: for the log */
    struct slice url;
    struct http_head *head;   /* of the original */
    struct virgin_body coded; /* the original body */
    struct decoder decoder;
};

struct decoding *decoding_begin(struct adapt_message *message,
                                const struct service_settings *service, struct arena *arena,
                                struct net_context *net);
/* Would a response with this head be decoded, if there were a body? */
bool decoding_would_begin(const struct http_head *request, const struct http_head *response,
                          struct arena *arena);
/* Why the body can't be decoded; NULL: it can, as far as it has come. */
const char *decoding_error(const struct decoding *decoding);
/* False: more of the original was read than is kept. */
bool decoding_restore(struct decoding *decoding, struct adapt_message *message);
void decoding_commit(struct decoding *decoding);
void decoding_close(struct decoding *decoding);

#endif
