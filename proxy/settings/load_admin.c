#include "base/assert.h"
#include "settings/load.h"
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

/* Every user of the machine can connect to an address. */
static bool check_admin_address(struct load *load, const struct document_section *section) {
    int line = load_line_of(section, "listen");
    const char *listen = load->settings->admin.listen;
    if (load->settings->admin.address.any.sa_family == AF_UNIX)
        return true;
    if (!address_is_loopback(&load->settings->admin.address))
        return load_fail(load, line,
                         "listen: \"%s\" is not a loopback address; nothing on the way would be "
                         "encrypted, so use a path, 127.0.0.1 or [::1], and reach it from other "
                         "machines through ssh -L",
                         listen);
    if (load->settings->admin.token_file == NULL)
        return load_fail(load, line,
                         "listen: every user of this machine can connect to \"%s\": set "
                         "token_file, or use a path for a Unix socket",
                         listen);
    return true;
}

bool load_admin(struct load *load) {
    const struct document_section *section = document_section(load->document, "admin", NULL);
    if (!load_values(load, section, "admin", load->settings) || !load_tokens(load, section))
        return false;
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
                         "listen: \"%s\" is neither an absolute path nor a loopback address with a "
                         "port, such as \"127.0.0.1:3129\"",
                         listen);
    return check_admin_address(load, section);
}

void release_admin(struct settings *settings) {
    operator_tokens_free(&settings->admin.tokens);
}
