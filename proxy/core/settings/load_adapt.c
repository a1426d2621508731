/* Services and what they are asked about: what is the same for services of each kind, and adapt sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "part.h"
#include "settings/options.h"
#include "settings/part_settings.h"

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

/* The names of the sections, by kind. */
static const char *const service_sections[] = {"icap_service", "service"};

bool load_services(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    PARTS_FOR_EACH (part, services.class)
        settings->service_count += document_section_count(
            load->document, service_sections[part_table[part]->services.kind]);
    settings->services = xcalloc(settings->service_count + 1, sizeof *settings->services);
    PARTS_FOR_EACH (part, services.class)
        DOCUMENT_FOR_EACH_SECTION (section, load->document,
                                   service_sections[part_table[part]->services.kind])
            if (!apply_service(load, section, part_table[part], &settings->services[i++]))
                return false;
    return true;
}

const char *service_section(const struct service_settings *settings) {
    return service_sections[settings->kind];
}

static const struct service_settings *find_service(const struct settings *settings,
                                                   const char *name) {
    for (size_t i = 0; i < settings->service_count; i++)
        if (strcmp(settings->services[i].name, name) == 0)
            return &settings->services[i];
    return NULL;
}

static bool load_adapt_add_service(struct load *load, const struct document_value *value,
                                   struct adapt_settings *adapt) {
    const struct service_settings *service = find_service(load->settings, value->text);
    if (service == NULL)
        return load_fail(
            load, value->line,
            "services: there is no icap_service \"%s\", and no service of this name; add one "
            "or correct the name",
            value->text);
    for (size_t i = 0; i < adapt->service_count; i++)
        if (adapt->services[i] == service)
            return load_fail(load, value->line,
                             "services: \"%s\" is listed twice; remove one of them", value->text);
    adapt->services[adapt->service_count++] = service;
    load->settings->any_told_class |= adapt->by_who && service->point != ADAPT_RESPMOD_POSTCACHE;
    if (adapt_point_is_reqmod(service->point) &&
        url_class_conditions(adapt->url_class)->content_types != NULL)
        load_warn(load, value->line,
                  "service %s is asked about requests, but class %s has a content_type and matches "
                  "only responses: the service will never be asked",
                  service->name, url_class_name(adapt->url_class));
    if (service->point == ADAPT_RESPMOD_PRECACHE && adapt->by_who)
        load_warn(load, value->line,
                  "class %s depends on who asks, so what service %s makes at respmod_precache is "
                  "not stored, and its clients get nothing that is stored for others; use point = "
                  "respmod_postcache",
                  url_class_name(adapt->url_class), service->name);
    return true;
}

/* The services behind those that are asked are disabled. */
static bool disable_service(struct load *load, const struct document_value *value,
                            struct adapt_settings *adapt) {
    for (size_t i = 0; i < adapt->service_count; i++) {
        const struct service_settings *service = adapt->services[i];
        if (strcmp(service->name, value->text) != 0)
            continue;
        size_t behind = --adapt->service_count - i;
        memmove(&adapt->services[i], &adapt->services[i + 1], behind * sizeof service);
        adapt->services[adapt->service_count] = service;
        adapt->disabled_count++;
        return true;
    }
    return load_fail(
        load, value->line,
        "disabled: \"%s\" is not one of the services of this section; correct the name",
        value->text);
}

/* Behind all others. */
static void leave_out_unloaded(struct adapt_settings *adapt) {
    size_t all = adapt->service_count + adapt->disabled_count;
    for (size_t i = adapt->service_count; i-- > 0;) {
        const struct service_settings *service = adapt->services[i];
        if (!service->disabled)
            continue;
        memmove(&adapt->services[i], &adapt->services[i + 1], (--all - i) * sizeof service);
        adapt->services[all] = service;
        adapt->service_count--;
        adapt->unloaded_count++;
    }
}

static bool add_adapt_services(struct load *load, const struct document_section *section,
                               struct adapt_settings *adapt) {
    bool good = true;
    adapt->services = xcalloc(section->value_count + 1, sizeof *adapt->services);
    for (size_t i = 0; good && i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, "services") == 0)
            good = load_adapt_add_service(load, &section->values[i], adapt);
    for (size_t i = 0; good && i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, "disabled") == 0)
            good = disable_service(load, &section->values[i], adapt);
    leave_out_unloaded(adapt);
    return good;
}

static bool apply_adapt(struct load *load, const struct document_section *section,
                        struct adapt_settings *adapt) {
    struct adapt_names names = {0};
    if (!load_section_class(load, section, &adapt->url_class))
        return false;
    adapt->by_who = (url_class_asks(adapt->url_class) & CLASS_ASKS_WHO) != 0;
    bool good = load_values(load, section, "adapt", &names);
    load_release_values("adapt", &names);
    return good && add_adapt_services(load, section, adapt);
}

bool load_adapts(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->adapt_count = document_section_count(load->document, "adapt");
    settings->adapts = xcalloc(settings->adapt_count + 1, sizeof *settings->adapts);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "adapt")
        if (!apply_adapt(load, section, &settings->adapts[i++]))
            return false;
    return true;
}

void release_services(struct settings *settings) {
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

void release_adapts(struct settings *settings) {
    for (size_t i = 0; i < settings->adapt_count; i++)
        free(settings->adapts[i].services);
    free(settings->adapts);
}
