#include "icap/client_fields.h"

#include "adapt/client_fields.h"
#include "icap/service.h"

#include <strings.h>

static bool is_included(const struct service_settings *settings, const char *name) {
    for (char **each = settings->include; each != NULL && *each != NULL; each++)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

unsigned icap_client_fields_configured(const struct service_settings *settings) {
    unsigned fields = settings->proxy_credentials ? CLIENT_FIELD_CREDENTIALS : 0;
    for (size_t i = 0; i < CLIENT_FIELD_NAMES; i++)
        if (is_included(settings, client_field_names[i].name.base))
            fields |= client_field_names[i].field;
    return fields;
}

unsigned icap_client_fields_at(const struct icap_endpoint *endpoint) {
    return endpoint->service->client_fields | endpoint->known.options.client_fields;
}

unsigned icap_client_fields_of(const struct icap_service *service) {
    unsigned fields = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        fields |= icap_client_fields_at(service->endpoints[i]);
    return fields;
}
