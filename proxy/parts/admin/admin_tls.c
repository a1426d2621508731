#include "admin/admin_tls.h"

#include "base/assert.h"
#include "tls/certificate_text.h"

#include <stdatomic.h>

struct admin_tls *admin_tls_new(const struct tls_server_settings *settings) {
    static _Atomic uint64_t latest_number;
    struct admin_tls *tls;
    ALLOC_OBJ(tls, ADMIN_TLS_MAGIC);
    tls->references = 1;
    tls->number = atomic_fetch_add(&latest_number, 1);
    tls->server = (struct tls_server_settings){
        .policy = "admin",
        .min_version = settings->min_version,
        .client_certificate = settings->client_certificate,
    };
    if (settings->certificates != NULL)
        tls->server.certificates = certificate_set_reference(settings->certificates);
    if (settings->client_authority != NULL)
        tls->server.client_authority = client_authority_reference(settings->client_authority);
    return tls;
}

struct admin_tls *admin_tls_reference(struct admin_tls *tls) {
    CHECK_OBJ(tls, ADMIN_TLS_MAGIC);
    atomic_fetch_add_explicit(&tls->references, 1, memory_order_relaxed);
    return tls;
}

void admin_tls_release(struct admin_tls **tlsp) {
    struct admin_tls *tls = *tlsp;
    *tlsp = NULL;
    if (tls == NULL)
        return;
    CHECK_OBJ(tls, ADMIN_TLS_MAGIC);
    if (atomic_fetch_sub_explicit(&tls->references, 1, memory_order_acq_rel) != 1)
        return;
    certificate_set_release(&tls->server.certificates);
    client_authority_release(&tls->server.client_authority);
    FREE_OBJ(tls);
}

struct tls_server *admin_tls_server(const struct admin_tls *tls) {
    CHECK_OBJ(tls, ADMIN_TLS_MAGIC);
    return tls_server_new(&tls->server);
}

bool admin_tls_names(const struct admin_tls *tls, struct slice host) {
    CHECK_OBJ(tls, ADMIN_TLS_MAGIC);
    const struct certificate_set *set = tls->server.certificates;
    char *text = slice_dup(host);
    bool found = false;
    for (size_t i = 0; !found && i < certificate_set_count(set); i++)
        found = certificate_names_include(certificate_set_at(set, i)->leaf, text);
    free(text);
    return found;
}

static bool same_authority(const struct client_authority *a, const struct client_authority *b) {
    return a != NULL && b != NULL &&
           memcmp(client_authority_digest(a), client_authority_digest(b),
                  CLIENT_AUTHORITY_DIGEST) == 0;
}

bool admin_tls_admits(const struct admin_tls *now, const struct admin_tls *began,
                      const struct shown_certificate *shown) {
    CHECK_OBJ(now, ADMIN_TLS_MAGIC);
    CHECK_OBJ(began, ADMIN_TLS_MAGIC);
    if (shown == NULL)
        return now->server.client_certificate != CLIENT_CERTIFICATE_REQUIRED;
    return same_authority(began->server.client_authority, now->server.client_authority) &&
           client_authority_accepts(now->server.client_authority, shown);
}
