/* Transparent mode: the transparent section. */
#include "settings/load.h"

bool load_transparent(struct load *load) {
    const struct settings *settings = load->settings;
    const struct document_section *section = document_section(load->document, "transparent", NULL);
    if (!load_values(load, section, "transparent", load->settings))
        return false;
    if (settings->transparent.spoof_client && !settings->transparent.tproxy)
        return load_fail(load, load_line_of(section, "spoof_client"),
                         "transparent: spoof_client needs tproxy = true: the firewall must hand "
                         "the answers of servers to Retort by the same rules");
    return true;
}
