#include "icap/told.h"

#include "icap/call.h"

#include <strings.h>

static bool includes(const struct icap_service_settings *settings, const char *name) {
    for (char **each = settings->include; each != NULL && *each != NULL; each++)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

unsigned icap_told_at(const struct icap_endpoint *endpoint) {
    const struct icap_service_settings *settings = endpoint->service->settings;
    const struct icap_options *options = &endpoint->known.options;
    unsigned told = settings->proxy_credentials ? ICAP_TOLD_CREDENTIALS : 0;
    if (options->client_ip || includes(settings, "X-Client-IP"))
        told |= ICAP_TOLD_CLIENT_IP;
    if (options->client_port || includes(settings, "X-Client-Port"))
        told |= ICAP_TOLD_CLIENT_PORT;
    if (options->server_ip || includes(settings, "X-Server-IP"))
        told |= ICAP_TOLD_SERVER_IP;
    return told;
}

unsigned icap_told_by(const struct icap_service *service) {
    unsigned told = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        told |= icap_told_at(service->endpoints[i]);
    return told;
}

struct field {
    enum icap_told what;
    struct slice name, value;
};

size_t icap_told_write(unsigned told, const struct icap_request *request, char *out,
                       size_t capacity) {
    char port[SLICE_DIGITS];
    const struct field fields[] = {
        {ICAP_TOLD_CLIENT_IP, SLICE("X-Client-IP: "), request->client_ip},
        {ICAP_TOLD_CLIENT_PORT, SLICE("X-Client-Port: "),
         request->client_port > 0 ? slice_of_number(port, request->client_port) : SLICE("")},
        {ICAP_TOLD_SERVER_IP, SLICE("X-Server-IP: "), request->server_ip},
        {ICAP_TOLD_CREDENTIALS, SLICE("Proxy-Authorization: "), request->proxy_authorization},
        {ICAP_TOLD_CREDENTIALS, SLICE("Proxy-Authenticate: "), request->proxy_authenticate},
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct field *field = &fields[i];
        if (!(told & field->what) || field->value.length == 0)
            continue;
        size_t line = field->name.length + field->value.length + 2;
        if (length + line <= capacity)
            slice_put(slice_put(slice_put(out + length, field->name), field->value), SLICE("\r\n"));
        length += line;
    }
    return length;
}
