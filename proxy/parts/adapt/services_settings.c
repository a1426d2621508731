/* Services: what is the same for those of each kind. */
#include "adapt/settings.h"

#include "base/assert.h"
#include "part.h"
#include "settings/load.h"
#include "settings/options.h"

#include <stdlib.h>
#include <string.h>

/* Options that both kinds of services have. */
static bool check_service(struct load *load, const struct document_section *section,
                          const struct service_settings *service) {
    bool on_request = adapt_point_is_reqmod(service->point);
    if (service->remember && service->point != ADAPT_RESPMOD_POSTCACHE)
        return load_fail(load, load_line_of(section, "remember"),
                         "remember works only for services at respmod_postcache; set point = "
                         "respmod_postcache, or remove remember");
    if (strcmp(service->verdict_by[0], "*") != 0 && !on_request)
        return load_fail(load, load_line_of(section, "verdict_by"),
                         "verdict_by works only for services at reqmod_precache and "
                         "reqmod_postcache; remove it");
    if (service->decode && on_request)
        return load_fail(
            load, load_line_of(section, "decode"),
            "decode works only for responses, and this service is asked about requests; remove it");
    if (service->patience_after > 0 && service->point != ADAPT_RESPMOD_PRECACHE)
        return load_fail(load, load_line_of(section, "patience_after"),
                         "patience_after works only for services at respmod_precache; remove it");
    load->settings->any_patience |= service->patience_after > 0;
    load->settings->any_remembered |= service->remember;
    if (service->preview > service->keep)
        return load_fail(load, load_line_of(section, "keep"),
                         "keep is smaller than preview; raise keep, because the preview must be "
                         "kept until the verdict");
    return true;
}

/* Names are those of both kinds. */
static bool check_service_name(struct load *load, const struct document_section *section,
                               const struct service_settings *service) {
    const struct settings *settings = load->settings;
    for (const struct service_settings *other = settings->services; other != service; other++)
        if (strcmp(other->name, service->name) == 0)
            return load_fail(load, section->line,
                             "service \"%s\": an icap_service has this name already; rename one of "
                             "them",
                             service->name);
    return true;
}

static bool apply_service(struct load *load, const struct document_section *section,
                          const struct part *part, struct service_settings *service) {
    service->kind = part->services.kind;
    service->name = xstrdup(section->title);
    service->temporary_directory = load->settings->temporary_directory;
    return load_check_name(load, section) && check_service_name(load, section, service) &&
           part->settings->service.load(load, section, service) &&
           check_service(load, section, service);
}

bool services_settings_load(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    PARTS_FOR_EACH (part, services.class)
        settings->service_count += document_section_count(
            load->document, service_section_of(part_table[part]->services.kind));
    settings->services = xcalloc(settings->service_count + 1, sizeof *settings->services);
    PARTS_FOR_EACH (part, services.class)
        DOCUMENT_FOR_EACH_SECTION (section, load->document,
                                   service_section_of(part_table[part]->services.kind))
            if (!apply_service(load, section, part_table[part], &settings->services[i++]))
                return false;
    return true;
}

void services_settings_release(struct settings *settings) {
    for (size_t i = 0; i < settings->service_count; i++) {
        struct service_settings *service = &settings->services[i];
        PARTS_FOR_EACH (part, services.class)
            if (part_table[part]->services.kind == service->kind)
                part_table[part]->settings->service.release(service);
        document_release_values(settings_table(), service_section(service), PART_CORE, service);
        free(service->name);
    }
    free(settings->services);
}
