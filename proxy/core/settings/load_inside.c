/* Services inside the proxy: service sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "config/config_file.h"
#include "settings/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

bool option_check_module_setting(const char *text, char *error, size_t error_size) {
    const char *sign = strchr(text, '=');
    if (sign != NULL && sign != text)
        return true;
    snprintf(error, error_size, "is no NAME = VALUE: write settings = { Quality = 80 }");
    return false;
}

static char *where_stands(const struct load *load, int place) {
    char *text = NULL;
    if (asprintf(&text, "%s:%d", document_file(load->document, place), document_line(place)) < 0)
        return NULL;
    return text;
}

/* The values of `settings`, with their lines. */
static void take_settings(struct load *load, const struct document_section *section,
                          struct service_settings *service) {
    service->settings = xcalloc(section->value_count + 1, sizeof *service->settings);
    for (size_t i = 0; i < section->value_count; i++) {
        if (strcmp(section->values[i].option->name, "settings") != 0)
            continue;
        const char *text = service->setting_texts[service->setting_count];
        size_t name = strcspn(text, "=");
        service->settings[service->setting_count++] = (struct module_setting){
            .name = slice_make(text, name),
            .value = slice_from(text + name + 1),
            .where = where_stands(load, section->values[i].line),
        };
    }
}

/* The path of the module, and as the one endpoint of the service. */
static bool take_module(struct load *load, const struct document_section *section,
                        struct service_settings *service) {
    const struct document_value *value = document_value(section, "module");
    char *path = NULL, *uri = NULL;
    if (value->text[0] == '\0')
        return load_fail(load, value->line, "module is empty; write module = \"gray.so\"");
    if (strchr(value->text, '/') == NULL) {
        if (asprintf(&path, "%s/%s", SERVICES_DIRECTORY, value->text) < 0)
            return false;
    } else {
        path = config_file_beside(document_file(load->document, value->line), value->text);
    }
    free(service->module);
    service->module = path;
    if (asprintf(&uri, "module:%s", path) < 0)
        return false;
    service->uri_texts = xcalloc(2, sizeof *service->uri_texts);
    service->uri_texts[0] = uri;
    service->endpoint_count = 1;
    return true;
}

static bool check_helpers(struct load *load, const struct document_section *section,
                          const struct service_settings *service) {
    const size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    if (service->helpers == NULL || strlen(service->helpers) <= most)
        return true;
    return load_fail(load, load_line_of(section, "helpers"),
                     "helpers wants a path of at most %zu bytes", most);
}

static bool check_include(struct load *load, const struct document_section *section,
                          const struct service_settings *service) {
    for (char **name = service->include; name != NULL && *name != NULL; name++)
        if (strcasecmp(*name, "X-Client-IP") != 0 && strcasecmp(*name, "X-Client-Username") != 0 &&
            strcasecmp(*name, "none") != 0)
            return load_fail(
                load, load_line_of(section, "include"),
                "include: \"%s\" is not known; write X-Client-IP, X-Client-Username or "
                "none",
                *name);
    return true;
}

/* Requests of the service are for that listener. */
static bool check_fetch_via(struct load *load, const struct document_section *section,
                            const struct service_settings *service) {
    const struct settings *settings = load->settings;
    struct address address;
    if (service->fetch_via == NULL)
        return true;
    bool good = address_parse(&address, slice_from(service->fetch_via), 0);
    for (size_t i = 0; good && i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, &address) &&
            settings->listens[i].mode != LISTEN_TRANSPARENT)
            return true;
    return load_fail(
        load, load_line_of(section, "fetch_via"),
        "fetch_via: there is no listen section \"%s\", or it is transparent; write the "
        "address of another one as it stands there",
        service->fetch_via);
}

bool load_inside_service(struct load *load, const struct document_section *section,
                         struct service_settings *service) {
    service->where = where_stands(load, section->line);
    if (!load_values(load, section, "service", service))
        return false;
    take_settings(load, section, service);
    return take_module(load, section, service) && check_helpers(load, section, service) &&
           check_include(load, section, service) && check_fetch_via(load, section, service);
}

void release_inside_service(struct service_settings *service) {
    for (size_t i = 0; i < service->setting_count; i++)
        free(service->settings[i].where);
    free(service->settings);
    if (service->uri_texts != NULL)
        free(service->uri_texts[0]);
    free(service->uri_texts);
    free(service->where);
}
