#include "base/assert.h"
#include "settings/admin_tls.h"
#include "settings/load.h"
#include "settings/operator_subjects.h"
#include "settings/settings.h"

#include <string.h>

/* Reads the tokens now, so that a reload takes all of them or is refused. */
static bool load_tokens(struct load *load, const struct document_section *section) {
    char error[600];
    struct settings *settings = load->settings;
    if (settings->admin.token_file == NULL || load->without_files)
        return true;
    settings->admin.tokens = operator_tokens_read(settings->admin.token_file, error, sizeof error);
    if (settings->admin.tokens != NULL)
        return true;
    return load_fail(load, load_line_of(section, "token_file"), "token_file: %s", error);
}

static bool load_subjects(struct load *load, const struct document_section *section) {
    char error[600];
    struct settings *settings = load->settings;
    if (settings->admin.certificate_roles == NULL || load->without_files)
        return true;
    settings->admin.subjects =
        operator_subjects_read(settings->admin.certificate_roles, error, sizeof error);
    if (settings->admin.subjects != NULL)
        return true;
    return load_fail(load, load_line_of(section, "certificate_roles"), "certificate_roles: %s",
                     error);
}

/* The first option that means nothing without TLS; NULL: there is none. */
static const char *useless_without_tls(const struct settings *settings) {
    return settings->admin.client_certificate != CLIENT_CERTIFICATE_OFF ? "client_certificate"
           : settings->admin.client_ca != NULL                          ? "client_ca"
           : settings->admin.client_crl != NULL                         ? "client_crl"
           : settings->admin.certificate_roles != NULL                  ? "certificate_roles"
           : settings->admin.min_version != TLS_VERSION_1_2             ? "min_version"
                                                                        : NULL;
}

/* The first option that means nothing when clients are not asked for certificates; likewise. */
static const char *useless_without_question(const struct settings *settings) {
    return settings->admin.client_ca != NULL           ? "client_ca"
           : settings->admin.client_crl != NULL        ? "client_crl"
           : settings->admin.certificate_roles != NULL ? "certificate_roles"
                                                       : NULL;
}

static bool check_tls_options(struct load *load, const struct document_section *section) {
    const struct settings *settings = load->settings;
    const bool asked = settings->admin.client_certificate != CLIENT_CERTIFICATE_OFF;
    const char *useless = NULL;
    if (settings->admin.certificates == NULL)
        useless = useless_without_tls(settings);
    if (useless != NULL)
        return load_fail(load, load_line_of(section, useless),
                         "%s: the admin plane has no certificates, so it does not speak TLS; "
                         "write: certificates = { \"/etc/retort/admin.pem\" }",
                         useless);
    if (!asked)
        useless = useless_without_question(settings);
    if (useless != NULL)
        return load_fail(load, load_line_of(section, useless),
                         "%s: clients are not asked for certificates; write: client_certificate = "
                         "required, or optional",
                         useless);
    return !asked || settings->admin.client_ca != NULL ||
           load_fail(load, load_line_of(section, "client_certificate"),
                     "client_certificate: set client_ca to the file of the authorities whose "
                     "certificates clients may show");
}

static bool check_admin_server(struct load *load, const struct document_section *section) {
    struct tls_server *server = admin_tls_server(load->settings->admin.tls);
    const char *error = tls_server_error(server);
    bool good =
        error[0] == '\0' || load_fail(load, load_line_of(section, "certificates"), "%s", error);
    tls_server_release(&server);
    return good;
}

/* Reads the files, so that "retort -t" and a reload find what is wrong with them. */
static bool load_admin_tls(struct load *load, const struct document_section *section) {
    struct settings *settings = load->settings;
    char error[PEM_FILE_ERROR];
    struct tls_server_settings tls = {
        .min_version = settings->admin.min_version,
        .client_certificate = settings->admin.client_certificate,
    };
    if (settings->admin.certificates == NULL || load->without_files)
        return true;
    tls.certificates = certificate_set_load(settings->admin.certificates, error);
    if (tls.certificates == NULL)
        return load_fail(load, load_line_of(section, "certificates"), "certificates: %s", error);
    if (tls.client_certificate != CLIENT_CERTIFICATE_OFF) {
        tls.client_authority =
            client_authority_load(settings->admin.client_ca, settings->admin.client_crl, error);
        if (tls.client_authority == NULL) {
            certificate_set_release(&tls.certificates);
            return load_fail(load, load_line_of(section, "client_ca"), "client_ca: %s", error);
        }
    }
    certificate_set_warn(tls.certificates);
    settings->admin.tls = admin_tls_new(&tls);
    certificate_set_release(&tls.certificates);
    client_authority_release(&tls.client_authority);
    return check_admin_server(load, section);
}

/* Somebody must be able to call. */
static bool check_callers(struct load *load, const struct document_section *section) {
    const struct settings *settings = load->settings;
    if (settings->admin.token_file != NULL || settings->admin.certificate_roles != NULL)
        return true;
    if (settings->admin.client_certificate != CLIENT_CERTIFICATE_OFF)
        return load_fail(load, load_line_of(section, "client_certificate"),
                         "client_certificate: no certificate has a role: set certificate_roles to "
                         "a file with lines NAME ROLE SUBJECT, or set token_file");
    return load_fail(load, load_line_of(section, "listen"),
                     "listen: every user of this machine can connect to \"%s\": set token_file, "
                     "or use a path for a Unix socket",
                     settings->admin.listen);
}

/* Everybody who reaches an address can connect to it. */
static bool check_admin_address(struct load *load, const struct document_section *section) {
    const struct settings *settings = load->settings;
    const bool local = settings->admin.address.any.sa_family == AF_UNIX;
    if (local && settings->admin.certificates != NULL)
        return load_fail(load, load_line_of(section, "certificates"),
                         "certificates: a Unix socket carries no TLS, because nothing leaves the "
                         "machine: remove the option, or set listen to an address with a port");
    if (local)
        return true;
    if (!address_is_loopback(&settings->admin.address) && settings->admin.certificates == NULL)
        return load_fail(load, load_line_of(section, "listen"),
                         "listen: \"%s\" is not a loopback address; nothing on the way would be "
                         "encrypted, so set certificates, or use a path, 127.0.0.1 or [::1], and "
                         "reach it from other machines through ssh -L",
                         settings->admin.listen);
    return check_callers(load, section);
}

static bool load_admin_address(struct load *load, const struct document_section *section) {
    const char *listen = load->settings->admin.listen;
    struct address *address = &load->settings->admin.address;
    if (listen == NULL)
        return true;
    int line = load_line_of(section, "listen");
    if (listen[0] == '/' && strlen(listen) >= sizeof address->local.sun_path)
        return load_fail(load, line,
                         "listen: the path is too long for a Unix socket: %zu bytes, at most %zu",
                         strlen(listen), sizeof address->local.sun_path - 1);
    if (!address_parse(address, slice_from(listen), 0))
        return load_fail(load, line,
                         "listen: \"%s\" is neither an absolute path nor an address with a port, "
                         "such as \"127.0.0.1:3129\"",
                         listen);
    return check_admin_address(load, section);
}

bool load_admin(struct load *load) {
    const struct document_section *section = document_section(load->document, "admin", NULL);
    return load_values(load, section, "admin", load->settings) && load_tokens(load, section) &&
           check_tls_options(load, section) && load_admin_address(load, section) &&
           load_subjects(load, section) && load_admin_tls(load, section);
}

void release_admin(struct settings *settings) {
    operator_tokens_free(&settings->admin.tokens);
    operator_subjects_free(&settings->admin.subjects);
    admin_tls_release(&settings->admin.tls);
}
