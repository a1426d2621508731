/* Listeners: listen sections. */
#include "settings/load.h"

#include "base/assert.h"

#include <stdlib.h>

static void allow_private_networks(struct listen_settings *listen) {
    static const char *const networks[] = {"127.0.0.0/8",    "10.0.0.0/8",     "172.16.0.0/12",
                                           "192.168.0.0/16", "169.254.0.0/16", "::1",
                                           "fc00::/7",       "fe80::/10"};
    size_t count = sizeof networks / sizeof *networks;
    listen->allow = xcalloc(count, sizeof *listen->allow);
    listen->allow_count = count;
    for (size_t i = 0; i < count; i++)
        ASSERT(network_parse(&listen->allow[i], slice_from(networks[i])));
}

static bool apply_listen(struct load *load, const struct document_section *section,
                         struct listen_settings *listen) {
    if (!load_values(load, section, "listen", listen))
        return false;
    if (section->title[0] == '/' || !address_parse(&listen->address, slice_from(section->title), 0))
        return load_fail(load, section->line,
                         "listen: \"%s\" is not an address with a port; write \"127.0.0.1:3128\", "
                         "\"[::1]:3128\" or \":3128\"",
                         section->title);
    if (listen->name == NULL)
        listen->name = xstrdup(section->title);
    if (listen->mode == LISTEN_FORWARD && document_value(section, "allow") == NULL)
        allow_private_networks(listen);
    for (struct listen_settings *other = load->settings->listens; other < listen; other++)
        if (address_equal(&other->address, &listen->address))
            return load_fail(load, section->line,
                             "listen: \"%s\" is already used by another listen section",
                             section->title);
    return load_listen_tls(load, section, listen);
}

bool load_listens(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->listen_count = document_section_count(load->document, "listen");
    settings->listens = xcalloc(settings->listen_count + 1, sizeof *settings->listens);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "listen")
        if (!apply_listen(load, section, &settings->listens[i++]))
            return false;
    return true;
}

bool check_listens(struct load *load) {
    return load->settings->listen_count > 0 ||
           load_fail(load, 0,
                     "there is no listen section, so nobody could connect; write: listen "
                     "\"127.0.0.1:3128\" { mode = forward }");
}

void release_listens(struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++) {
        release_listen_tls(&settings->listens[i]);
        free(settings->listens[i].proxy_networks);
        load_release_values("listen", &settings->listens[i]);
    }
    free(settings->listens);
}
