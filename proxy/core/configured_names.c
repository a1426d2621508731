#include "configured_names.h"

static void keep_maps(struct resolver *resolver, const struct settings *settings) {
    for (size_t i = 0; i < settings->map_count; i++)
        if (settings->maps[i].origins == NULL)
            resolver_keep(resolver, settings->maps[i].origin.host);
}

static void keep_groups(struct resolver *resolver, const struct settings *settings) {
    for (size_t i = 0; i < settings->origins_group_count; i++) {
        const struct origins_settings *group = &settings->origins_groups[i];
        for (size_t j = 0; j < group->server_count; j++)
            if (!group->servers[j].srv)
                resolver_keep(resolver, group->servers[j].url.host);
    }
}

static void keep_services(struct resolver *resolver, const struct settings *settings) {
    for (size_t i = 0; i < settings->service_count; i++) {
        const struct service_settings *service = &settings->services[i];
        for (unsigned j = 0; service->endpoints != NULL && j < service->endpoint_count; j++)
            resolver_keep(resolver, service->endpoints[j].host);
    }
}

void configured_names_keep(struct resolver *resolver, const struct settings *settings) {
    resolver_keep_none(resolver);
    keep_maps(resolver, settings);
    keep_groups(resolver, settings);
    keep_services(resolver, settings);
}
