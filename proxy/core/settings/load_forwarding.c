/* What origins learn of clients, and the proxies in front: the forwarding section. */
#include "settings/load.h"

bool load_forwarding(struct load *load) {
    struct settings *settings = load->settings;
    if (!load_values(load, document_section(load->document, "forwarding", NULL), "forwarding",
                     settings))
        return false;
    for (size_t i = 0; i < settings->listen_count; i++)
        settings->listens[i].reads_forwarding = settings->listens[i].trusted_proxy_count > 0 ||
                                                settings->forwarding.untrusted == FORWARDING_DROP;
    return true;
}
