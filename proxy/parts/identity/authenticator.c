#include "identity/authenticator.h"

#include "base/assert.h"
#include "identity/helper_groups.h"
#include "identity/identity_method.h"
#include "tls/context.h"
#include "tls/facts.h"

#include <string.h>

static const struct identity_method *
authenticator_method_of(const struct authenticator_settings *settings) {
    switch (settings->type) {
    case AUTHENTICATOR_BEARER: return &identity_bearer;
    case AUTHENTICATOR_CERTIFICATE: return &identity_certificate;
    case AUTHENTICATOR_NEGOTIATE: return &identity_negotiate;
    case AUTHENTICATOR_BASIC: break;
    }
    return settings->helper != NULL ? &identity_basic_helper : &identity_basic_file;
}

void authenticator_digest(struct authenticator *authenticator, struct slice bytes) {
    uint64_t length = bytes.length;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(context != NULL);
    EVP_DigestInit_ex(context, algorithm_sha256(), NULL);
    EVP_DigestUpdate(context, authenticator->digest, sizeof authenticator->digest);
    EVP_DigestUpdate(context, &length, sizeof length);
    EVP_DigestUpdate(context, bytes.base, bytes.length);
    EVP_DigestFinal_ex(context, authenticator->digest, NULL);
    EVP_MD_CTX_free(context);
}

struct authenticator *authenticator_new(struct authenticator_settings *settings,
                                        void (*release)(struct authenticator_settings *settings),
                                        bool without_files, char error[AUTHENTICATOR_ERROR]) {
    struct authenticator *authenticator;
    ALLOC_OBJ(authenticator, AUTHENTICATOR_MAGIC);
    authenticator->references = 1;
    authenticator->settings = *settings;
    authenticator->method = authenticator_method_of(settings);
    authenticator_digest(authenticator, slice_from(settings->name));
    authenticator_digest(authenticator, slice_from(authenticator->method->name));
    helper_groups_digest(authenticator);
    error[0] = '\0';
    if (!without_files && authenticator->method->configure != NULL &&
        !authenticator->method->configure(authenticator, error, AUTHENTICATOR_ERROR)) {
        authenticator_release(&authenticator);
        return NULL;
    }
    authenticator->release_settings = release;
    *settings = (struct authenticator_settings){.name = NULL};
    return authenticator;
}

struct authenticator *authenticator_reference(struct authenticator *authenticator) {
    CHECK_OBJ(authenticator, AUTHENTICATOR_MAGIC);
    atomic_fetch_add_explicit(&authenticator->references, 1, memory_order_relaxed);
    return authenticator;
}

void authenticator_release(struct authenticator **authenticatorp) {
    struct authenticator *authenticator = *authenticatorp;
    *authenticatorp = NULL;
    if (authenticator == NULL)
        return;
    CHECK_OBJ(authenticator, AUTHENTICATOR_MAGIC);
    if (atomic_fetch_sub_explicit(&authenticator->references, 1, memory_order_acq_rel) != 1)
        return;
    if (authenticator->method->release != NULL)
        authenticator->method->release(authenticator);
    if (authenticator->release_settings != NULL)
        authenticator->release_settings(&authenticator->settings);
    FREE_OBJ(authenticator);
}

bool authenticator_takes(const struct authenticator *authenticator, struct slice authorization,
                         const struct tls_facts *tls) {
    struct authorization parsed;
    CHECK_OBJ(authenticator, AUTHENTICATOR_MAGIC);
    if (authenticator->method->scheme == NULL)
        return tls != NULL && tls->subject[0] != '\0';
    return authorization_parse(authorization, &parsed) &&
           authorization_is(&parsed, authenticator->method->scheme);
}

void authenticator_check(struct authenticator *authenticator, struct credentials_check *check,
                         struct slice authorization, const struct address *client,
                         struct task *waker) {
    CHECK_OBJ(authenticator, AUTHENTICATOR_MAGIC);
    check->authenticator = authenticator_reference(authenticator);
    check->client = *client;
    check->waker = waker;
    credentials_check_start(check, authorization);
}

/* Each kind of challenge once: two realms of one scheme would only confuse clients. */
size_t authenticators_challenge(struct authenticator *const *authenticators, size_t count,
                                struct slice realm, bool refused, struct arena *arena,
                                struct slice challenges[AUTHENTICATOR_CHALLENGES]) {
    const struct authenticator *chosen[AUTHENTICATOR_CHALLENGES];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct identity_method *method = authenticators[i]->method;
        size_t at = 0;
        while (at < found && chosen[at]->method->order < method->order)
            at++;
        if (method->challenge == NULL || found == AUTHENTICATOR_CHALLENGES ||
            (at < found && chosen[at]->method->order == method->order))
            continue;
        memmove(&chosen[at + 1], &chosen[at], (found - at) * sizeof *chosen);
        chosen[at] = authenticators[i];
        found++;
    }
    for (size_t i = 0; i < found; i++) {
        struct slice own = slice_from(chosen[i]->settings.realm);
        challenges[i] =
            chosen[i]->method->challenge(chosen[i], realm.length > 0 ? realm : own, refused, arena);
    }
    return found;
}
