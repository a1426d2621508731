/* The section admin. */
#include "admin/settings.h"

#include "admin/operators.h"
#include "admin/settings_plan.h"
#include "base/assert.h"
#include "base/findings.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <string.h>

static const struct option_section sections[] = {
    {
        .name = "admin",
        .documentation =
            "Configures the admin plane: status, metrics, reload and drain, over HTTP and JSON. "
            "retortctl(1) uses it.",
        .example = "admin { listen = \"/run/retort/retort.sock\" }",
    },
    {.name = NULL},
};

#define ADMIN(member) ONE("admin", struct admin_settings, member)

/* None is changed at run time: who changes them could lock others out. */
static const struct option rows[] = {
    {ADMIN(listen), .name = "listen", BY_FILE_AT_START, STRING, .fallback_note = "no admin plane",
     DOC "Sets where the admin plane listens: a path for a Unix socket, which only the proxy's "
         "user and root can open, or an address with a port. Everybody who can reach an address "
         "can connect to it, so token_file or client_certificate is needed there. An address "
         "that is not a loopback address also needs certificates, because nothing would be "
         "encrypted. A reload does not change this setting.",
     .example = "\"/run/retort/retort.sock\""},
    {ADMIN(token_file), .name = "token_file", STRING, .fallback_note = "no tokens",
     DOC "Sets the file with the tokens of those who may call the admin plane. Each line is NAME "
         "ROLE TOKEN. The role is read (look at everything except stored bodies), operate (also "
         "purge, bump, clear, record, reload, read live events) or admin (everything). The name "
         "stands in the audit "
         "log. A token has at least 32 characters; openssl rand -hex 32 makes one. Programs send "
         "it as Authorization: Bearer TOKEN. The file must not be readable by all users. On a Unix "
         "socket root and the proxy's user are admins without a token; other users need one, where "
         "the socket lets them connect. A reload reads the file again.",
     .example = "\"/etc/retort/tokens\""},
    {ADMIN(certificates), .name = "certificates", STRINGS,
     .fallback_note = "the admin plane speaks clear text",
     DOC "Makes the admin plane speak TLS on its address, with these certificates in PEM: files "
         "and folders as in listen.certificates, with the same places for the keys. The first "
         "one is for clients that ask for no name, or for an unknown one. Requests must name a "
         "host that one of the certificates is for, or a loopback address. A reload reads the "
         "files again, for connections that come after it. Whether the admin plane speaks TLS "
         "does not change by a reload.",
     .example = "\"/etc/retort/admin.pem\""},
    {ADMIN(min_version), .name = "min_version", WORD(option_tls_versions), DEFAULT("tls1.2"),
     DOC "Sets the oldest version of TLS that clients of the admin plane may use.",
     .example = "tls1.3"},
    {ADMIN(client_certificate), .name = "client_certificate", WORD(option_client_certificates),
     DEFAULT("off"),
     DOC "Sets whether clients of the admin plane show a certificate. off: they are not asked. "
         "optional: they are asked, and a certificate that is shown must be good. required: a "
         "client without a good certificate is refused in the handshake, whatever token it has. "
         "Needs client_ca. What a certificate allows stands in certificate_roles.",
     .example = "required"},
    {ADMIN(client_ca), .name = "client_ca", STRING, .fallback_note = "none",
     DOC "Sets the file in PEM with the authorities whose certificates clients of the admin plane "
         "may show. A reload reads the file again. When it has changed, open connections must "
         "begin anew.",
     .example = "\"/etc/retort/admin-ca.pem\""},
    {ADMIN(client_crl), .name = "client_crl", STRING, .fallback_note = "none",
     DOC "Sets the file in PEM with the revocation lists of the authorities in client_ca, one for "
         "each authority. A client whose certificate is revoked, or whose authority has no list "
         "or one that is out of date, is refused. A reload reads the file again, and a revoked "
         "certificate no longer counts on open connections.",
     .example = "\"/etc/retort/admin-crl.pem\""},
    {ADMIN(certificate_roles), .name = "certificate_roles", STRING,
     .fallback_note = "a certificate gives no role",
     DOC "Sets the file that says what the owners of client certificates may do. Each line is "
         "NAME ROLE SUBJECT. The roles are those of token_file, and the name stands in the audit "
         "log together with the subject. The subject is written as openssl x509 -noout -subject "
         "-nameopt RFC2253 -in FILE prints it, and must be equal. A request that sends a token "
         "has the role of its token. The file must not be writable by other users. A reload "
         "reads it again; who is no longer in it is nobody from then on.",
     .example = "\"/etc/retort/operators\""},
    {ADMIN(audit_log), .name = "audit_log", STRING, .fallback_note = "the log of errors",
     DOC "Sets the file for the audit log: a line of JSON for each change that was asked of the "
         "admin plane and each opening of the event stream, with who asked, what, and how it "
         "ended. When the file can not be opened, "
         "changes are refused. The file is opened for each line, so it can be renamed at any time.",
     .example = "\"/var/log/retort/audit.log\""},
    {ADMIN(helpers), .name = "helpers", STRING, DEFAULT("/run/retort/helperd.sock"),
     DOC "Sets the socket of retort-helperd, whose pools /v1/helpers, /metrics and the web page "
         "show. To change their priority, the proxy must run as the same user.",
     .example = "\"/run/retort/helperd.sock\""},
    {ADMIN(history_step), .name = "history_step", BY_FILE_AT_START, TIME_OF(SECOND, MINUTE),
     DEFAULT("10s"),
     DOC "Sets how often the admin plane takes a sample for /v1/history, which the web page shows "
         "as curves. 2160 samples are kept, and 1440 of six times that length: with 10s these are "
         "6 hours and a day. They take half a megabyte, and end with the process. A reload does "
         "not change this setting.",
     .example = "\"30s\""},
    {ONE("", struct admin_settings, saved_settings), .name = "saved_settings", .after = "workers",
     STRING, .fallback_note = "none",
     DOC
     "Sets the file that keeps what \"retortctl set --save\" has changed. It is read behind the "
     "configuration, and its values take precedence. retort writes it as a whole, with mode "
     "0600; it must be able to make files in its directory. A file that is not there is good. "
     "Without this option nothing can be saved. A path that does not begin with / is relative "
     "to the directory of the configuration.",
     .example = "\"/var/lib/retort/saved.conf\""},
    {.name = NULL},
};

/* Reads the tokens now, so that a reload takes all of them or is refused. */
static bool load_tokens(struct load *load, const struct document_section *section,
                        struct admin_settings *mine) {
    char error[600];
    if (mine->token_file == NULL || load->without_files)
        return true;
    mine->tokens = operator_tokens_read(mine->token_file, error, sizeof error);
    if (mine->tokens != NULL)
        return true;
    return load_fail(load, load_line_of(section, "token_file"), "token_file: %s", error);
}

static bool load_subjects(struct load *load, const struct document_section *section,
                          struct admin_settings *mine) {
    char error[600];
    if (mine->certificate_roles == NULL || load->without_files)
        return true;
    mine->subjects = operator_subjects_read(mine->certificate_roles, error, sizeof error);
    if (mine->subjects != NULL)
        return true;
    return load_fail(load, load_line_of(section, "certificate_roles"), "certificate_roles: %s",
                     error);
}

/* The first option that means nothing without TLS; NULL: there is none. */
static const char *useless_without_tls(const struct admin_settings *mine) {
    return mine->client_certificate != CLIENT_CERTIFICATE_OFF ? "client_certificate"
           : mine->client_ca != NULL                          ? "client_ca"
           : mine->client_crl != NULL                         ? "client_crl"
           : mine->certificate_roles != NULL                  ? "certificate_roles"
           : mine->min_version != TLS_VERSION_1_2             ? "min_version"
                                                              : NULL;
}

/* The first option that means nothing when clients are not asked for certificates; likewise. */
static const char *useless_without_question(const struct admin_settings *mine) {
    return mine->client_ca != NULL           ? "client_ca"
           : mine->client_crl != NULL        ? "client_crl"
           : mine->certificate_roles != NULL ? "certificate_roles"
                                             : NULL;
}

static bool check_tls_options(struct load *load, const struct document_section *section,
                              const struct admin_settings *mine) {
    const bool asked = mine->client_certificate != CLIENT_CERTIFICATE_OFF;
    const char *useless = NULL;
    if (mine->certificates == NULL)
        useless = useless_without_tls(mine);
    if (useless != NULL)
        return load_fail(load, load_line_of(section, useless),
                         "%s: the admin plane has no certificates, so it does not speak TLS; "
                         "write: certificates = { \"/etc/retort/admin.pem\" }",
                         useless);
    if (!asked)
        useless = useless_without_question(mine);
    if (useless != NULL)
        return load_fail(load, load_line_of(section, useless),
                         "%s: clients are not asked for certificates; write: client_certificate = "
                         "required, or optional",
                         useless);
    return !asked || mine->client_ca != NULL ||
           load_fail(load, load_line_of(section, "client_certificate"),
                     "client_certificate: set client_ca to the file of the authorities whose "
                     "certificates clients may show");
}

static bool check_admin_server(struct load *load, const struct document_section *section,
                               const struct admin_settings *mine) {
    struct tls_server *server = admin_tls_server(mine->tls);
    const char *error = tls_server_error(server);
    bool good =
        error[0] == '\0' || load_fail(load, load_line_of(section, "certificates"), "%s", error);
    tls_server_release(&server);
    return good;
}

/* Reads the files, so that "retort -t" and a reload find what is wrong with them. */
static bool load_admin_tls(struct load *load, const struct document_section *section,
                           struct admin_settings *mine) {
    char error[PEM_FILE_ERROR];
    struct tls_server_settings tls = {
        .min_version = mine->min_version,
        .client_certificate = mine->client_certificate,
    };
    if (mine->certificates == NULL || load->without_files)
        return true;
    tls.certificates = certificate_set_load(mine->certificates, error);
    if (tls.certificates == NULL)
        return load_fail(load, load_line_of(section, "certificates"), "certificates: %s", error);
    if (tls.client_certificate != CLIENT_CERTIFICATE_OFF) {
        tls.client_authority = client_authority_load(mine->client_ca, mine->client_crl, error);
        if (tls.client_authority == NULL) {
            certificate_set_release(&tls.certificates);
            return load_fail(load, load_line_of(section, "client_ca"), "client_ca: %s", error);
        }
    }
    certificate_set_warn(tls.certificates);
    mine->tls = admin_tls_new(&tls);
    certificate_set_release(&tls.certificates);
    client_authority_release(&tls.client_authority);
    return check_admin_server(load, section, mine);
}

/* Somebody must be able to call. */
static bool check_callers(struct load *load, const struct document_section *section,
                          const struct admin_settings *mine) {
    if (mine->token_file != NULL || mine->certificate_roles != NULL)
        return true;
    if (mine->client_certificate != CLIENT_CERTIFICATE_OFF)
        return load_fail(load, load_line_of(section, "client_certificate"),
                         "client_certificate: no certificate has a role: set certificate_roles to "
                         "a file with lines NAME ROLE SUBJECT, or set token_file");
    return load_fail(load, load_line_of(section, "listen"),
                     "listen: every user of this machine can connect to \"%s\": set token_file, "
                     "or use a path for a Unix socket",
                     mine->listen);
}

/* Everybody who reaches an address can connect to it. */
static bool check_admin_address(struct load *load, const struct document_section *section,
                                const struct admin_settings *mine) {
    const bool local = mine->address.any.sa_family == AF_UNIX;
    if (local && mine->certificates != NULL)
        return load_fail(load, load_line_of(section, "certificates"),
                         "certificates: a Unix socket carries no TLS, because nothing leaves the "
                         "machine: remove the option, or set listen to an address with a port");
    if (local)
        return true;
    if (!address_is_loopback(&mine->address) && mine->certificates == NULL)
        return load_fail(load, load_line_of(section, "listen"),
                         "listen: \"%s\" is not a loopback address; nothing on the way would be "
                         "encrypted, so set certificates, or use a path, 127.0.0.1 or [::1], and "
                         "reach it from other machines through ssh -L",
                         mine->listen);
    return check_callers(load, section, mine);
}

static bool load_admin_address(struct load *load, const struct document_section *section,
                               struct admin_settings *mine) {
    const char *listen = mine->listen;
    struct address *address = &mine->address;
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
    return check_admin_address(load, section, mine);
}

static bool plane_load(struct load *load, void *to) {
    struct admin_settings *mine = to;
    const struct document_section *section = document_section(load->document, "admin", NULL);
    return load_values(load, document_section(load->document, "", NULL), "", mine) &&
           load_values(load, section, "admin", mine) && load_tokens(load, section, mine) &&
           check_tls_options(load, section, mine) && load_admin_address(load, section, mine) &&
           load_subjects(load, section, mine) && load_admin_tls(load, section, mine);
}

static void plane_release(void *from) {
    struct admin_settings *mine = from;
    operator_tokens_free(&mine->tokens);
    operator_subjects_free(&mine->subjects);
    admin_tls_release(&mine->tls);
    if (mine->plan != NULL)
        settings_plan_release(mine->plan);
    free(mine->plan);
}

static void plane_compare(const void *from, const void *to, struct findings *left) {
    const struct admin_settings *first = from, *new = to;
    const char *before = first->listen == NULL ? "off" : first->listen;
    const char *after = new->listen == NULL ? "off" : new->listen;
    if (strcmp(before, after) != 0)
        findings_add(left, "admin.listen is still %s, not %s: restart retort to apply the change",
                     before, after);
    if ((first->certificates == NULL) != (new->certificates == NULL))
        findings_add(left,
                     "admin.certificates: the admin plane still speaks %s: restart retort "
                     "to apply the change",
                     first->certificates == NULL ? "clear text" : "TLS");
    if (first->history_step != new->history_step)
        findings_add(left,
                     "admin.history_step is still %llu ms: restart retort to apply the change",
                     (unsigned long long)first->history_step);
}

const struct part_settings admin_part_settings = {
    .options = rows,
    .sections = sections,
    .size = sizeof(struct admin_settings),
    .load_rules = plane_load, /* behind the core, so that no file is read where that has a fault */
    .release = plane_release,
    .compare = plane_compare,
};
