/*
 * An authenticator: a section authenticator NAME { ... } of the configuration, with the files that
 * it names. It belongs to the snapshot of the settings, and lives as long as checks need it.
 *
 *     struct authenticator *authenticator = identity_settings(settings)->authenticators[0];
 *     if (authenticator_takes(authenticator, authorization, tls))
 *         authenticator_check(authenticator, check, authorization, &client, &task);
 *
 *     struct slice challenges[8];
 *     size_t count = authenticators_challenge(wanted, wanted_count, realm, refused, &arena,
 *                                             challenges);       "Basic realm=\"Staff\", charset=..."
 *
 * authenticator_check may end the check at once: the credentials are malformed, or were proved
 * lately, or may not be tried now.
 *
 * Threads: read-only after authenticator_new; the count of references is atomic.
 */
#ifndef RETORT_IDENTITY_AUTHENTICATOR_H
#define RETORT_IDENTITY_AUTHENTICATOR_H

#include "identity/authenticator_settings.h"
#include "identity/credentials_check.h"

#include <stdatomic.h>

struct identity_method;

enum { AUTHENTICATOR_ERROR = 600, AUTHENTICATOR_DIGEST = 32 };

struct authenticator {
    unsigned magic;
#define AUTHENTICATOR_MAGIC 0xa47e4071u
    _Atomic unsigned references;
    struct authenticator_settings settings; /* the values belong to it */
    void (*release_settings)(struct authenticator_settings *settings);
    const struct identity_method *method;
    void *state; /* the method's: what it has loaded */
    /* Of all that decides who is proved: what was remembered under another one is not found. */
    unsigned char digest[AUTHENTICATOR_DIGEST];
};

/* Takes the settings over, and frees their values by `release` in the end. NULL: `error` says why a
 * file can't be used; the settings are still the caller's. */
struct authenticator *authenticator_new(struct authenticator_settings *settings,
                                        void (*release)(struct authenticator_settings *settings),
                                        bool without_files, char error[AUTHENTICATOR_ERROR]);
struct authenticator *authenticator_reference(struct authenticator *authenticator);
void authenticator_release(struct authenticator **authenticatorp);
/* For methods: adds bytes to the digest, while `configure` runs. */
void authenticator_digest(struct authenticator *authenticator, struct slice bytes);

/* Are there credentials for this authenticator: the value of Authorization or Proxy-Authorization
 * (empty: none), or a certificate? */
bool authenticator_takes(const struct authenticator *authenticator, struct slice authorization,
                         const struct tls_facts *tls);
/* Starts the check, which is zeroed but for what its caller sets (credentials_check.h). */
void authenticator_check(struct authenticator *authenticator, struct credentials_check *check,
                         struct slice authorization, const struct address *client,
                         struct task *waker);

/* Writes the challenges of these authenticators, strongest first (RFC 9110 §11.6.1), each once, and
 * returns how many there are: none for certificates. realm: empty: that of the section. */
enum { AUTHENTICATOR_CHALLENGES = 8 };
size_t authenticators_challenge(struct authenticator *const *authenticators, size_t count,
                                struct slice realm, bool refused, struct arena *arena,
                                struct slice challenges[AUTHENTICATOR_CHALLENGES]);

#endif
