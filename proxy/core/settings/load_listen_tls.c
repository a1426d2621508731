/* Listeners: what listen sections say about TLS. */
#include "settings/load.h"

#include "base/assert.h"
#include "config/value.h"

#include <stdio.h>
#include <string.h>

/* The first option that means nothing without certificates; NULL: there is none. Defaults do no
 * harm: "retortctl settings" writes them too. */
static const char *useless_option(const struct listen_tls_settings *tls) {
    return tls->client_certificate != CLIENT_CERTIFICATE_OFF ? "client_certificate"
           : tls->client_ca != NULL                          ? "client_ca"
           : tls->client_crl != NULL                         ? "client_crl"
           : tls->client_certificate_fields                  ? "client_certificate_fields"
           : tls->hsts != NULL                               ? "hsts"
           : tls->ciphers != NULL                            ? "ciphers"
           : tls->ciphersuites != NULL                       ? "ciphersuites"
           : tls->groups != NULL                             ? "groups"
           : tls->min_version != TLS_VERSION_1_2             ? "min_version"
           : tls->unknown_name != UNKNOWN_NAME_DEFAULT       ? "unknown_name"
                                                             : NULL;
}

static bool check_clear_text(struct load *load, const struct document_section *section,
                             const struct listen_settings *listen) {
    const char *useless = useless_option(&listen->tls);
    if (useless != NULL)
        return load_fail(load, load_line_of(section, useless),
                         "%s: the listener has no certificates, so it does not speak TLS; "
                         "write: certificates = { \"/etc/retort/www.pem\" }",
                         useless);
    if (listen->redirect_to_https != 0 && listen->mode != LISTEN_REVERSE)
        return load_fail(load, load_line_of(section, "redirect_to_https"),
                         "redirect_to_https: only reverse listeners redirect");
    return true;
}

static bool check_reverse_only(struct load *load, const struct document_section *section,
                               const struct listen_settings *listen) {
    const struct listen_tls_settings *tls = &listen->tls;
    if (listen->mode == LISTEN_REVERSE)
        return true;
    if (tls->hsts != NULL)
        return load_fail(load, load_line_of(section, "hsts"),
                         "hsts: only reverse listeners set Strict-Transport-Security");
    if (tls->client_certificate_fields)
        return load_fail(load, load_line_of(section, "client_certificate_fields"),
                         "client_certificate_fields: only reverse listeners tell origins about "
                         "the client's certificate");
    return true;
}

static bool check_hsts(struct load *load, const struct document_section *section,
                       const char *hsts) {
    if (hsts == NULL)
        return true;
    for (const char *at = hsts; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            return load_fail(load, load_line_of(section, "hsts"),
                             "hsts: the text must be printable ASCII");
    return strcasestr(hsts, "max-age=") != NULL ||
           load_fail(load, load_line_of(section, "hsts"),
                     "hsts: \"%s\" has no max-age; write: hsts = \"max-age=31536000\"", hsts);
}

static bool load_client_authority(struct load *load, const struct document_section *section,
                                  struct listen_tls_settings *tls) {
    char error[PEM_FILE_ERROR];
    if (tls->client_certificate == CLIENT_CERTIFICATE_OFF) {
        const char *name = tls->client_ca != NULL ? "client_ca" : "client_crl";
        return (tls->client_ca == NULL && tls->client_crl == NULL) ||
               load_fail(load, load_line_of(section, name),
                         "%s: clients are not asked for certificates; write: client_certificate = "
                         "required, or optional",
                         name);
    }
    if (tls->client_ca == NULL)
        return load_fail(load, load_line_of(section, "client_certificate"),
                         "client_certificate: set client_ca to the file of the authorities whose "
                         "certificates clients may show");
    if (load->without_files)
        return true;
    tls->authority = client_authority_load(tls->client_ca, tls->client_crl, error);
    return tls->authority != NULL ||
           load_fail(load, load_line_of(section, "client_ca"), "client_ca: %s", error);
}

static bool check_server(struct load *load, const struct document_section *section,
                         const struct listen_settings *listen) {
    struct tls_server *server = listen_tls_server(listen, NULL);
    const char *error = tls_server_error(server);
    bool good = error[0] == '\0' || load_fail(load, section->line, "%s", error);
    tls_server_release(&server);
    return good;
}

bool load_listen_tls(struct load *load, const struct document_section *section,
                     struct listen_settings *listen) {
    struct listen_tls_settings *tls = &listen->tls;
    char error[PEM_FILE_ERROR];
    if (tls->certificates != NULL && strcmp(tls->certificates[0], "none") == 0)
        value_release(options_find(settings_table(), "listen", "certificates"), listen);
    if (tls->certificates == NULL)
        return check_clear_text(load, section, listen);
    if (listen->mode == LISTEN_TRANSPARENT)
        return load_fail(load, load_line_of(section, "certificates"),
                         "certificates: a transparent listener shows no certificates of its own; "
                         "see the sections authority and intercept");
    if (listen->redirect_to_https != 0)
        return load_fail(load, load_line_of(section, "redirect_to_https"),
                         "redirect_to_https: the listener speaks TLS itself; write the option into "
                         "the section of the listener for http");
    if (!check_reverse_only(load, section, listen) || !check_hsts(load, section, tls->hsts) ||
        !load_client_authority(load, section, tls))
        return false;
    if (load->without_files)
        return true;
    tls->set = certificate_set_load(tls->certificates, error);
    if (tls->set == NULL)
        return load_fail(load, load_line_of(section, "certificates"), "certificates: %s", error);
    if (!check_server(load, section, listen))
        return false;
    certificate_set_warn(tls->set);
    return true;
}

void release_listen_tls(struct listen_settings *listen) {
    certificate_set_release(&listen->tls.set);
    client_authority_release(&listen->tls.authority);
}

struct tls_server *listen_tls_server(const struct listen_settings *listen,
                                     struct ticket_keys *tickets) {
    const struct listen_tls_settings *tls = &listen->tls;
    char policy[ADDRESS_TEXT];
    address_format(&listen->address, policy);
    return tls_server_new(&(struct tls_server_settings){
        .policy = policy,
        .certificates = tls->set,
        .tickets = tls->session_tickets ? tickets : NULL,
        .staples = tls->ocsp != LISTEN_OCSP_OFF,
        .ktls = tls->ktls,
        .http2 = listen_offers_http2(listen),
        .min_version = tls->min_version,
        .ciphers = tls->ciphers,
        .ciphersuites = tls->ciphersuites,
        .groups = tls->groups,
        .client_certificate = tls->client_certificate,
        .client_authority = tls->authority,
        .refuse_unknown_names = tls->unknown_name == UNKNOWN_NAME_REFUSE,
    });
}
