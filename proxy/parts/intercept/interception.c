#include "intercept/interception.h"

#include "base/assert.h"

enum { CLIENTS_SHARE = 16 };

struct interception *interception_new(const struct interception_settings *settings) {
    struct interception *interception = xcalloc(1, sizeof *interception);
    interception->leaves = leaf_cache_new(settings->leaf_cache);
    interception->identities = server_identities_new(settings->identity_entries);
    interception->refusals = refusals_new();
    interception->asks_clients = refusals_new();
    return interception;
}

void interception_configure(struct interception *interception,
                            const struct interception_settings *settings) {
    leaf_cache_set_limit(interception->leaves, settings->leaf_cache);
    server_identities_set_limit(interception->identities, settings->identity_entries);
    leaf_cache_keep_authority(interception->leaves, settings->authority);
}

void interception_free(struct interception **interceptionp) {
    struct interception *interception = *interceptionp;
    *interceptionp = NULL;
    if (interception == NULL)
        return;
    leaf_cache_free(&interception->leaves);
    server_identities_free(&interception->identities);
    refusals_free(&interception->refusals);
    refusals_free(&interception->asks_clients);
    free(interception);
}

static struct refusal_rules rules_of_clients(const struct interception_settings *settings) {
    unsigned share = settings->refusal_entries / CLIENTS_SHARE;
    return (struct refusal_rules){
        .limit = settings->refusals,
        .lifetime = (time_t)(settings->refusal_time / 1000),
        .entries = settings->refusal_entries,
        .share = share > 0 ? share : 1,
    };
}

static struct refusal_rules rules_of_origins(const struct interception_settings *settings) {
    return (struct refusal_rules){
        .limit = settings->client_certificates ? 1 : 0,
        .lifetime = (time_t)(settings->refusal_time / 1000),
        .entries = settings->refusal_entries,
        .share = settings->refusal_entries,
    };
}

unsigned interception_note_refusal(struct interception *interception,
                                   const struct interception_settings *settings,
                                   const struct address *client, struct slice place, time_t now,
                                   bool *evicted) {
    const struct refusal_rules rules = rules_of_clients(settings);
    return refusals_note(interception->refusals, &rules, client, place, now, evicted);
}

bool interception_is_refused(struct interception *interception,
                             const struct interception_settings *settings,
                             const struct address *client, struct slice place, time_t now) {
    const struct refusal_rules rules = rules_of_clients(settings);
    return refusals_hold(interception->refusals, &rules, client, place, now);
}

void interception_note_acceptance(struct interception *interception, const struct address *client,
                                  struct slice place) {
    refusals_forget(interception->refusals, client, place);
}

void interception_note_asking(struct interception *interception,
                              const struct interception_settings *settings, struct slice place,
                              time_t now, bool *evicted) {
    const struct refusal_rules rules = rules_of_origins(settings);
    refusals_note(interception->asks_clients, &rules, NULL, place, now, evicted);
}

bool interception_asks_clients(struct interception *interception,
                               const struct interception_settings *settings, struct slice place,
                               time_t now) {
    const struct refusal_rules rules = rules_of_origins(settings);
    return refusals_hold(interception->asks_clients, &rules, NULL, place, now);
}
