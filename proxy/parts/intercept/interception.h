/*
 * What all workers share for interception: the certificates that were minted, the origins whose
 * identity is known, and the refusals.
 *
 *     struct interception *interception = interception_new(settings);
 *     if (interception_is_refused(interception, settings, &client, SLICE("a.example:443"), now))
 *         ... splice ...
 *     interception_free(&interception);
 *
 * Threads: any. Units of `now`: seconds of a clock that is never set back (loop_seconds).
 */
#ifndef RETORT_INTERCEPT_INTERCEPTION_H
#define RETORT_INTERCEPT_INTERCEPTION_H

#include "intercept/leaf_cache.h"
#include "intercept/refusals.h"
#include "intercept/server_identity.h"
#include "intercept/settings.h"

struct interception {
    struct leaf_cache *leaves;
    struct server_identities *identities; /* of origins */
    struct refusals *refusals;            /* of our certificates, by clients */
    struct refusals *asks_clients;        /* origins that ask for client certificates */
};

struct interception *interception_new(const struct interception_settings *settings);
/* For a reload: follows the limits, and forgets what another authority has signed. */
void interception_configure(struct interception *interception,
                            const struct interception_settings *settings);
void interception_free(struct interception **interceptionp);

/* The client has refused our certificate for the place, "host:port". Returns how often. */
unsigned interception_note_refusal(struct interception *interception,
                                   const struct interception_settings *settings,
                                   const struct address *client, struct slice place, time_t now,
                                   bool *evicted);
/* Are connections of the client to the place to be spliced, because it refused too often? */
bool interception_is_refused(struct interception *interception,
                             const struct interception_settings *settings,
                             const struct address *client, struct slice place, time_t now);
/* The client has accepted our certificate for the place. */
void interception_note_acceptance(struct interception *interception, const struct address *client,
                                  struct slice place);
/* The origin has asked for a client certificate. */
void interception_note_asking(struct interception *interception,
                              const struct interception_settings *settings, struct slice place,
                              time_t now, bool *evicted);
/* Are connections to the place to be spliced, because it did? */
bool interception_asks_clients(struct interception *interception,
                               const struct interception_settings *settings, struct slice place,
                               time_t now);

#endif
