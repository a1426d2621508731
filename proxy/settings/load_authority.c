/* The certificate authority for intercepted connections: the authority section. */
#include "settings/load.h"

#include "tls/authority.h"

/* An action that shows the client a certificate of ours needs somebody to sign it. */
static bool check_need_of_authority(struct load *load) {
    const struct settings *settings = load->settings;
    size_t i = 0;
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "intercept") {
        if (settings->intercepts[i++].action != INTERCEPT_SPLICE)
            return load_fail(load, load_line_of(section, "action"),
                             "intercept: to bump or to block needs a certificate authority; run "
                             "\"retortctl ca create\" and write the authority section that it "
                             "prints");
    }
    return true;
}

bool load_authority(struct load *load) {
    const struct document_section *section = document_section(load->document, "authority", NULL);
    struct settings *settings = load->settings;
    char error[PEM_FILE_ERROR];
    if (!load_values(load, section, "authority", settings))
        return false;
    if (settings->authority_certificate == NULL && settings->authority_key == NULL)
        return check_need_of_authority(load);
    if (settings->authority_certificate == NULL || settings->authority_key == NULL)
        return load_fail(load, section->line,
                         "authority: certificate and key belong together; write both paths");
    if (load->without_files)
        return true;
    settings->authority =
        authority_load(settings->authority_certificate, settings->authority_key, error);
    if (settings->authority == NULL)
        return load_fail(load, section->line, "authority: %s", error);
    return true;
}

void release_authority(struct settings *settings) {
    authority_release(&settings->authority);
}
