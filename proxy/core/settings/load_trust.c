/* Whom TLS connections to servers trust: options that several kinds of sections have. */
#include "settings/load.h"

#include "base/assert.h"
#include "tls/trust_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words that stand for no file of one's own. */
static const char *const no_file[] = {"system", "none"};

static void forget_word(char **path) {
    for (size_t i = 0; i < sizeof no_file / sizeof no_file[0]; i++) {
        if (*path != NULL && strcmp(*path, no_file[i]) == 0) {
            free(*path);
            *path = NULL;
        }
    }
}

bool load_trust(struct load *load, const struct document_section *section,
                struct tls_trust_settings *trust) {
    forget_word(&trust->ca_file);
    forget_word(&trust->crl_file);
    forget_word(&trust->certificate);
    if ((trust->certificate == NULL) != (trust->certificate_key == NULL))
        return load_fail(load, section->line,
                         "%s: certificate and certificate_key need each other; set both",
                         section->kind->name);
    char error[TLS_TRUST_ERROR];
    if (load->without_files || tls_trust_load(trust, error))
        return true;
    size_t option = strcspn(error, ":");
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)option, error);
    return load_fail(load, load_line_of(section, name), "%s", error);
}

static void inherit_file(const struct document_section *section, const char *option, char **path,
                         const char *from) {
    if (document_value(section, option) == NULL && from != NULL)
        *path = xstrdup(from);
}

void load_trust_inherit(const struct document_section *section, struct tls_trust_settings *trust,
                        const struct tls_trust_settings *from) {
    inherit_file(section, "ca_file", &trust->ca_file, from->ca_file);
    inherit_file(section, "crl_file", &trust->crl_file, from->crl_file);
    if (document_value(section, "certificate") == NULL &&
        document_value(section, "certificate_key") == NULL) {
        inherit_file(section, "certificate", &trust->certificate, from->certificate);
        inherit_file(section, "certificate_key", &trust->certificate_key, from->certificate_key);
    }
    if (document_value(section, "min_version") == NULL)
        trust->min_version = from->min_version;
    if (document_value(section, "verify") == NULL)
        trust->verify = from->verify;
    if (document_value(section, "fetch_intermediates") == NULL)
        trust->fetch_intermediates = from->fetch_intermediates;
    if (document_value(section, "check_staple") == NULL)
        trust->check_staple = from->check_staple;
}
