/* adapt sections, and what is kept for services. */
#include "adapt/settings.h"

#include "base/assert.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/options.h"

#include <string.h>

static const struct option_section sections[] = {
    {
        .name = "adapt",
        .after = "url_class",
        .title = "CLASS",
        .documentation =
            "Lists the services that requests of a URL class and their responses pass, in this "
            "order. When several classes match, their lists are joined in the order of the file. "
            "A service that occurs in more than one of them is asked once.",
        .example = "adapt images { services = { gray } }\n"
                   "adapt all { services = { adremover, gzip } }",
    },
    {.name = NULL},
};

static const struct option core_rows[] = {
    {ONE("", struct settings, verdict_space), .name = "verdict_space", .after = "drain_timeout",
     SIZE_OF(0, 64 * GB), DEFAULT("8MB"),
     DOC "Limits the memory for verdicts of services at reqmod_precache and reqmod_postcache. "
         "Retort remembers the verdict on a request without a body where the service permits it "
         "in the ICAP head of its answer (Cache-Control: max-age, or Expires), and uses it for "
         "equal requests. An entry takes little more than the head of the request. When the "
         "space is full, old verdicts are dropped, and retort_verdicts_evicted_total counts "
         "them. The value 0 means that services are asked about every request.",
     .example = "\"64MB\""},
    {.name = NULL},
};

#define ADAPT(member) ONE("adapt", struct adapt_names, member)

static const struct option rows[] = {
    {ADAPT(services), .name = "services", STRINGS, .required = true, AT_RUN_TIME,
     DOC
     "Lists the names of icap_service and service sections in the order in which they are asked.",
     .example = "{ adremover, gzip }"},
    {ADAPT(disabled), .name = "disabled", STRINGS, AT_RUN_TIME, .fallback_note = "none",
     DOC "Lists those of the services that are not asked for now. The section is as if it did not "
         "name them: \"retortctl set adapt.images.disabled=gray\" and \"retortctl unset "
         "adapt.images.disabled\" take a service out and back.",
     .example = "gray"},
    {.name = NULL},
};

static bool load_adapt_part(struct load *load, void *mine) {
    ((struct adapt_own *)mine)->of = load->settings;
    load->owner = PART_CORE; /* of the values of services */
    return services_settings_load(load);
}

static void adapt_settings_release(void *mine) {
    struct settings *settings = ((struct adapt_own *)mine)->of;
    if (settings == NULL) /* a part before this one has found a fault */
        return;
    for (size_t i = 0; i < settings->adapt_count; i++)
        free(settings->adapts[i].services);
    free(settings->adapts);
    services_settings_release(settings);
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
    load->settings->asks_at[service->point] = true;
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

static bool load_adapts(struct load *load, void *mine) {
    (void)mine;
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->adapt_count = document_section_count(load->document, "adapt");
    settings->adapts = xcalloc(settings->adapt_count + 1, sizeof *settings->adapts);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "adapt")
        if (!apply_adapt(load, section, &settings->adapts[i++]))
            return false;
    return true;
}

const struct part_settings adapt_part_settings = {
    .options = rows,
    .core_options = core_rows,
    .sections = sections,
    .size = sizeof(struct adapt_own),
    .load = load_adapt_part,
    .load_rules = load_adapts,
    .release = adapt_settings_release,
};
