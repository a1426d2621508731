/* In place of gss_acceptor.c where Retort is built without GSSAPI. */
#include "base/assert.h"
#include "identity/gss_acceptor.h"

#include <stdio.h>

bool gss_acceptor_is_built(void) {
    return false;
}

struct gss_acceptor *gss_acceptor_new(const char *keytab, const char *principal, char *error,
                                      size_t error_size) {
    snprintf(error, error_size,
             "this retort was built without GSSAPI; install libkrb5-dev, build it again without "
             "--without-gssapi, or remove the section");
    return NULL;
}

void gss_acceptor_free(struct gss_acceptor **acceptorp) {
    *acceptorp = NULL;
}

void gss_acceptor_take(struct gss_acceptor *acceptor, struct slice token,
                       struct gss_verdict *verdict) {
    *verdict = (struct gss_verdict){.kind = GSS_UNABLE, .reason = "there is no GSSAPI"};
}

void gss_verdict_release(struct gss_verdict *verdict) {
    verdict->answer = NULL;
}
