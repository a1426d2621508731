#include "icap/client_fields.h"

#include "adapt/client_fields.h"
#include "icap/service.h"

#include <strings.h>

static bool is_included(const struct icap_service_settings *settings, const char *name) {
    for (char **each = settings->include; each != NULL && *each != NULL; each++)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

unsigned icap_client_fields_at(const struct icap_endpoint *endpoint) {
    const struct icap_service_settings *settings = endpoint->service->base.settings;
    const struct icap_options *options = &endpoint->known.options;
    unsigned fields = settings->proxy_credentials ? CLIENT_FIELD_CREDENTIALS : 0;
    if (options->client_ip || is_included(settings, "X-Client-IP"))
        fields |= CLIENT_FIELD_IP;
    if (options->client_port || is_included(settings, "X-Client-Port"))
        fields |= CLIENT_FIELD_PORT;
    if (options->server_ip || is_included(settings, "X-Server-IP"))
        fields |= CLIENT_FIELD_SERVER_IP;
    return fields;
}

unsigned icap_client_fields_of(const struct icap_service *service) {
    unsigned fields = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        fields |= icap_client_fields_at(service->endpoints[i]);
    return fields;
}
