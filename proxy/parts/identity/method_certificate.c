/* Certificates of clients, which the listener has verified (tls/facts.h). */
#include "identity/identity_method.h"
#include "tls/facts.h"

static const char *certificate_name(const struct tls_facts *tls, enum certificate_user user) {
    switch (user) {
    case CERTIFICATE_USER_CN: return tls->common_name;
    case CERTIFICATE_USER_EMAIL: return tls->email;
    case CERTIFICATE_USER_SUBJECT: break;
    }
    return tls->subject;
}

static void certificate_start(struct credentials_check *check) {
    const struct tls_facts *tls = check->tls;
    if (tls == NULL || tls->subject[0] == '\0')
        credentials_check_refuse(check, "the client has shown no certificate");
    else if (strcmp(tls->verified, "ok") != 0)
        credentials_check_refuse(check, "the client's certificate is not trusted");
    else
        credentials_check_prove(
            check, slice_from(certificate_name(tls, check->authenticator->settings.user)), NULL, 0,
            tls->not_after);
}

const struct identity_method identity_certificate = {
    .name = "certificate",
    .order = 9,
    .start = certificate_start,
};
