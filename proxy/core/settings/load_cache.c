/* The cache. */
#include "settings/load.h"

bool load_cache(struct load *load) {
    const struct document_section *section = document_section(load->document, "cache", NULL);
    if (!load_values(load, section, "cache", load->settings))
        return false;
    if (load->settings->cache.max_object <= load->settings->cache.memory)
        return true;
    if (document_value(section, "max_object") == NULL) { /* so that a small cache needs no second
                                                          * setting */
        load->settings->cache.max_object = load->settings->cache.memory;
        return true;
    }
    return load_fail(load, load_line_of(section, "max_object"),
                     "max_object is larger than cache.memory; lower it, or raise cache.memory");
}
