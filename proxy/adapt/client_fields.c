#include "adapt/client_fields.h"

struct field {
    enum client_field field;
    struct slice name, value;
};

size_t client_fields_write(unsigned fields, const struct adapt_client *client, char *out,
                           size_t capacity) {
    char port[SLICE_DIGITS];
    const struct field all[] = {
        {CLIENT_FIELD_IP, SLICE("X-Client-IP: "), client->ip},
        {CLIENT_FIELD_PORT, SLICE("X-Client-Port: "),
         client->port > 0 ? slice_of_number(port, client->port) : SLICE("")},
        {CLIENT_FIELD_SERVER_IP, SLICE("X-Server-IP: "), client->server_ip},
        {CLIENT_FIELD_CREDENTIALS, SLICE("Proxy-Authorization: "), client->proxy_authorization},
        {CLIENT_FIELD_CREDENTIALS, SLICE("Proxy-Authenticate: "), client->proxy_authenticate},
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct field *field = &all[i];
        if (!(fields & field->field) || field->value.length == 0)
            continue;
        size_t line = field->name.length + field->value.length + 2;
        if (length + line <= capacity)
            slice_put(slice_put(slice_put(out + length, field->name), field->value), SLICE("\r\n"));
        length += line;
    }
    return length;
}
