#include "settings/settings.h"

#include "base/assert.h"
#include "settings/document.h"
#include "settings/options.h"
#include "settings/value.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A snapshot in the making. */
struct load {
    struct settings *settings;
    const struct document *document;
    char *error;
};

static bool load_fail(struct load *load, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool load_fail(struct load *load, int line, const char *format, ...) {
    va_list arguments;
    size_t length = (size_t)snprintf(load->error, SETTINGS_ERROR,
                                     line > 0 ? "%s:%d: " : "%s: ", load->document->path, line);
    if (length < SETTINGS_ERROR) {
        va_start(arguments, format);
        vsnprintf(load->error + length, SETTINGS_ERROR - length, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* Where to point for a complaint about an option: at its value, else at its section. */
static int line_of(const struct document_section *section, const char *name) {
    const struct document_value *value = document_value(section, name);
    return value != NULL ? value->line : section != NULL ? section->line : 0;
}

/* Writes the options of one section, or their defaults, into the destination. */
static bool apply_values(struct load *load, const struct document_section *section,
                         const char *kind, void *destination) {
    char reason[400];
    OPTIONS_FOR_EACH(option, kind) {
        if (document_value(section, option->name) != NULL)
            continue;
        if (option->required)
            return load_fail(load, section->line, "%s \"%s\" has no %s; write: %s = %s", kind,
                             section->title, option->name, option->name, option->example);
        value_set_fallback(option, destination);
    }
    for (size_t i = 0; section != NULL && i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        if (!value_set(value->option, destination, value->text, reason, sizeof reason))
            return load_fail(load, value->line, "%s: \"%s\" %s", value->option->name, value->text,
                             reason);
    }
    return true;
}

static bool check_name(struct load *load, const struct document_section *section) {
    size_t length = strspn(section->title, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789._-");
    if (length > 0 && length <= 64 && section->title[length] == '\0')
        return true;
    return load_fail(load, section->line,
                     "%s: \"%s\" is not a name: use up to 64 letters, digits and . _ -",
                     section->kind->name, section->title);
}

/* Sections that stand once. */

static unsigned count_cores(void) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return 1;
    return (unsigned)CPU_COUNT(&cores);
}

static bool apply_top(struct load *load) {
    struct settings *settings = load->settings;
    if (!apply_values(load, document_section(load->document, "", NULL), "", settings))
        return false;
    if (settings->workers == 0)
        settings->workers = count_cores();
    return true;
}

static char *without_trailing_slashes(const char *path) {
    char *copy = xstrdup(path);
    for (size_t length = strlen(copy); length > 1 && copy[length - 1] == '/'; length--)
        copy[length - 1] = '\0';
    return copy;
}

static bool apply_disk(struct load *load, const struct document_section *section,
                       struct disk_settings *disk) {
    disk->path = without_trailing_slashes(section->title);
    if (disk->path[0] != '/')
        return load_fail(load, section->line,
                         "disk: \"%s\" is not an absolute path; write the path of a directory, a "
                         "file or a block device, such as \"/var/cache/retort\"",
                         section->title);
    for (struct disk_settings *other = load->settings->cache.disks; other < disk; other++)
        if (strcmp(other->path, disk->path) == 0)
            return load_fail(load, section->line, "disk: \"%s\" is taken by another disk",
                             section->title);
    return apply_values(load, section, "disk", disk);
}

static bool apply_disks(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->cache.disk_count = document_section_count(load->document, "disk");
    settings->cache.disks = xcalloc(settings->cache.disk_count + 1, sizeof *settings->cache.disks);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "disk")
    if (!apply_disk(load, section, &settings->cache.disks[i++]))
        return false;
    return true;
}

static bool apply_cache(struct load *load) {
    const struct document_section *section = document_section(load->document, "cache", NULL);
    if (!apply_values(load, section, "cache", load->settings) || !apply_disks(load))
        return false;
    if (load->settings->cache.max_object <= load->settings->cache.memory)
        return true;
    if (document_value(section, "max_object") == NULL) { /* a small cache needs no second setting */
        load->settings->cache.max_object = load->settings->cache.memory;
        return true;
    }
    return load_fail(load, line_of(section, "max_object"),
                     "max_object is larger than cache.memory");
}

static bool apply_admin(struct load *load) {
    const struct document_section *section = document_section(load->document, "admin", NULL);
    if (!apply_values(load, section, "admin", load->settings))
        return false;
    const char *listen = load->settings->admin.listen;
    struct address *address = &load->settings->admin.address;
    if (listen == NULL)
        return true;
    int line = line_of(section, "listen");
    if (listen[0] == '/' && strlen(listen) >= sizeof address->local.sun_path)
        return load_fail(load, line,
                         "listen: the path is too long for a Unix socket: %zu bytes, at most %zu",
                         strlen(listen), sizeof address->local.sun_path - 1);
    if (!address_parse(address, slice_from(listen), 0))
        return load_fail(load, line,
                         "listen: \"%s\" is neither an absolute path nor a loopback address with a "
                         "port, such as \"127.0.0.1:3129\"",
                         listen);
    if (address->any.sa_family != AF_UNIX && !address_is_loopback(address))
        return load_fail(load, line,
                         "listen: \"%s\" is not a loopback address; the admin plane has no "
                         "passwords, so use a path, 127.0.0.1 or [::1]",
                         listen);
    return true;
}

/* Listeners. */

static void allow_private_networks(struct listen_settings *listen) {
    static const char *const networks[] = {"127.0.0.0/8",    "10.0.0.0/8",     "172.16.0.0/12",
                                           "192.168.0.0/16", "169.254.0.0/16", "::1",
                                           "fc00::/7",       "fe80::/10"};
    size_t count = sizeof networks / sizeof *networks;
    listen->allow = xcalloc(count, sizeof *listen->allow);
    listen->allow_count = count;
    for (size_t i = 0; i < count; i++)
        ASSERT(network_parse(&listen->allow[i], slice_from(networks[i])));
}

static bool apply_listen(struct load *load, const struct document_section *section,
                         struct listen_settings *listen) {
    if (!apply_values(load, section, "listen", listen))
        return false;
    if (section->title[0] == '/' || !address_parse(&listen->address, slice_from(section->title), 0))
        return load_fail(load, section->line,
                         "listen: \"%s\" is not an address with a port; write \"127.0.0.1:3128\", "
                         "\"[::1]:3128\" or \":3128\"",
                         section->title);
    if (listen->mode == LISTEN_FORWARD && document_value(section, "allow") == NULL)
        allow_private_networks(listen);
    for (struct listen_settings *other = load->settings->listens; other < listen; other++)
        if (address_equal(&other->address, &listen->address))
            return load_fail(load, section->line, "listen: \"%s\" is taken by another listen",
                             section->title);
    return true;
}

static bool apply_listens(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->listen_count = document_section_count(load->document, "listen");
    if (settings->listen_count == 0)
        return load_fail(load, 0,
                         "there is no listen section, so nobody could connect; write: listen "
                         "\"127.0.0.1:3128\" { mode = forward }");
    settings->listens = xcalloc(settings->listen_count, sizeof *settings->listens);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "listen")
    if (!apply_listen(load, section, &settings->listens[i++]))
        return false;
    return true;
}

/* Groups of origins. */

static bool add_server(struct load *load, const struct document_value *value,
                       struct origins_settings *origins) {
    struct origin_server_settings *server = &origins->servers[origins->server_count++];
    char reason[200];
    bool good = origins_parse_server(server, value->text, reason, sizeof reason);
    ASSERT(good); /* the option's check has seen it */
    for (struct origin_server_settings *other = origins->servers; other < server; other++)
        if (slice_equal_nocase(other->url.host, server->url.host) &&
            other->url.port == server->url.port)
            return load_fail(load, value->line, "servers: \"%s\" stands twice; use weight=2",
                             server->text);
    return true;
}

static bool apply_servers(struct load *load, const struct document_section *section,
                          struct origins_settings *origins) {
    origins->servers = xcalloc(section->value_count, sizeof *origins->servers);
    for (size_t i = 0; i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, "servers") == 0 &&
            !add_server(load, &section->values[i], origins))
            return false;
    if (origins->server_count > ORIGINS_SERVERS_MAX)
        return load_fail(load, section->line, "origins: more than %u servers", ORIGINS_SERVERS_MAX);
    return true;
}

static void note_failure_status(struct origins_settings *origins) {
    uint64_t status;
    for (char **text = origins->failure_texts; *text != NULL; text++)
        if (slice_to_uint64(slice_from(*text), &status))
            origins->rules.failure_status[status - 500] = true;
}

static bool apply_origins_group(struct load *load, const struct document_section *section,
                                struct origins_settings *origins) {
    origins->name = xstrdup(section->title);
    if (!check_name(load, section) || !apply_values(load, section, "origins", origins) ||
        !apply_servers(load, section, origins))
        return false;
    note_failure_status(origins);
    if (origins->rules.down_min > origins->rules.down_max)
        return load_fail(load, line_of(section, "down_min"), "down_min is larger than down_max");
    return true;
}

static bool apply_origins_groups(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->origins_group_count = document_section_count(load->document, "origins");
    settings->origins_groups =
        xcalloc(settings->origins_group_count + 1, sizeof *settings->origins_groups);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "origins")
    if (!apply_origins_group(load, section, &settings->origins_groups[i++]))
        return false;
    return true;
}

static const struct origins_settings *find_origins(const struct settings *settings,
                                                   struct slice name) {
    for (size_t i = 0; i < settings->origins_group_count; i++)
        if (slice_equal(slice_from(settings->origins_groups[i].name), name))
            return &settings->origins_groups[i];
    return NULL;
}

/* Maps. */

static char *lower_copy(struct slice text) {
    char *copy = slice_dup(text);
    for (char *c = copy; *c != '\0'; c++)
        *c = (char)ascii_lower((unsigned char)*c);
    return copy;
}

/* The host as it stands in a Host field, with its port unless that is 80. */
static char *host_of(const struct url *url) {
    char text[300];
    snprintf(text, sizeof text, "%s%.*s%s", url->host_is_ipv6 ? "[" : "", SLICE_PRINT(url->host),
             url->host_is_ipv6 ? "]" : "");
    if (url->port != 80)
        snprintf(text + strlen(text), sizeof text - strlen(text), ":%u", url->port);
    return lower_copy(slice_from(text));
}

static bool is_http(const struct url *url) {
    return slice_equal_nocase(url->scheme, SLICE("http"));
}

static bool map_prefix(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    struct url url;
    const char *path = section->title;
    if (path[0] != '/') {
        if (!url_parse(&url, slice_from(section->title)) || !is_http(&url) || url.host.length > 255)
            return load_fail(load, section->line,
                             "map: \"%s\" is not a prefix; write \"http://HOST/PATH\" or \"/PATH\"",
                             section->title);
        map->host = host_of(&url);
        path = url.path_query.length == 0 ? "/" : url.path_query.base;
    }
    if (path[0] != '/' || strpbrk(path, "?#") != NULL)
        return load_fail(load, section->line, "map: \"%s\" has more than a path behind the host",
                         section->title);
    map->path = xstrdup(path);
    return true;
}

/* NAME or NAME/PATH. */
static bool map_to_group(struct load *load, const struct document_section *section,
                         struct map_settings *map) {
    int line = line_of(section, "origin");
    size_t length = strcspn(map->origin_text, "/");
    map->origins = find_origins(load->settings, slice_make(map->origin_text, length));
    if (map->origins == NULL)
        return load_fail(
            load, line,
            "origin: \"%s\" is neither a URL nor the name of an origins section; write "
            "\"http://HOST:PORT/PATH\", or add: origins %.*s { servers = ... }",
            map->origin_text, (int)length, map->origin_text);
    if (strpbrk(map->origin_text, "?#") != NULL)
        return load_fail(load, line,
                         "origin: \"%s\" has a query or fragment; only a path may follow",
                         map->origin_text);
    map->origin.path_query = slice_from(map->origin_text + length);
    return true;
}

static bool map_parent(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    int line = line_of(section, "parent");
    if (map->parent_text == NULL)
        return true;
    map->parents = find_origins(load->settings, slice_from(map->parent_text));
    if (map->parents == NULL)
        return load_fail(load, line, "parent: there is no origins section \"%s\"",
                         map->parent_text);
    if (map->origins != NULL)
        return load_fail(
            load, line,
            "parent: the origin is a group already; only a single URL can be asked for "
            "through a parent");
    return true;
}

static bool map_origin(struct load *load, const struct document_section *section,
                       struct map_settings *map) {
    int line = line_of(section, "origin");
    if (strchr(map->origin_text, ':') == NULL)
        return map_to_group(load, section, map);
    if (!url_parse(&map->origin, slice_from(map->origin_text)))
        return load_fail(load, line, "origin: \"%s\" is not a URL; write \"http://HOST:PORT/PATH\"",
                         map->origin_text);
    if (!is_http(&map->origin))
        return load_fail(load, line,
                         "origin: \"%s\" is not an http URL, and no other scheme is spoken to "
                         "origins yet",
                         map->origin_text);
    if (strpbrk(map->origin_text, "?#") != NULL)
        return load_fail(load, line,
                         "origin: \"%s\" has a query or fragment; only a path may follow",
                         map->origin_text);
    return true;
}

static bool apply_map(struct load *load, const struct document_section *section,
                      struct map_settings *map) {
    return apply_values(load, section, "map", map) && map_prefix(load, section, map) &&
           map_origin(load, section, map) && map_parent(load, section, map);
}

static bool host_has_port(const char *host) {
    const char *bracket = strrchr(host, ']');
    return strchr(bracket != NULL ? bracket : host, ':') != NULL;
}

static int rank_of(const struct map_settings *map) {
    return map->host == NULL ? 0 : host_has_port(map->host) ? 2 : 1;
}

/* Hosts first, then the longest path, then the more exact host. */
static int compare_maps(const void *a, const void *b) {
    const struct map_settings *x = a, *y = b;
    size_t x_length = strlen(x->path), y_length = strlen(y->path);
    if ((x->host == NULL) != (y->host == NULL))
        return x->host == NULL ? 1 : -1;
    if (x_length != y_length)
        return x_length > y_length ? -1 : 1;
    if (rank_of(x) != rank_of(y))
        return rank_of(y) - rank_of(x);
    int by_host = x->host == NULL ? 0 : strcmp(x->host, y->host);
    return by_host != 0 ? by_host : strcmp(x->path, y->path);
}

static bool apply_maps(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->map_count = document_section_count(load->document, "map");
    settings->maps = xcalloc(settings->map_count + 1, sizeof *settings->maps);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "map") {
        struct map_settings *map = &settings->maps[i++];
        if (!apply_map(load, section, map))
            return false;
        for (struct map_settings *other = settings->maps; other < map; other++)
            if (compare_maps(other, map) == 0)
                return load_fail(load, section->line,
                                 "map: \"%s\" means the same as the prefix of another map",
                                 section->title);
    }
    qsort(settings->maps, settings->map_count, sizeof *settings->maps, compare_maps);
    return true;
}

static void warn_about_maps(const struct load *load) {
    const struct settings *settings = load->settings;
    bool reverse = false;
    for (size_t i = 0; i < settings->listen_count; i++)
        reverse = reverse || settings->listens[i].mode == LISTEN_REVERSE;
    if (settings->map_count > 0 && !reverse)
        log_warn("%s:%d: map is used by reverse listeners only, and there is none; add: listen "
                 "\":8080\" { mode = reverse }",
                 settings->path, document_section(load->document, "map", NULL)->line);
    if (settings->map_count == 0 && reverse)
        log_warn("%s: there is a reverse listener but no map, so it answers everything with 404",
                 settings->path);
}

/* Access logs, services, classes, and what joins them. */

static bool apply_access_logs(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->access_log_count = document_section_count(load->document, "access_log");
    settings->access_logs = xcalloc(settings->access_log_count + 1, sizeof *settings->access_logs);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "access_log") {
        struct access_log_settings *log = &settings->access_logs[i++];
        log->path = xstrdup(section->title);
        if (log->path[0] == '\0')
            return load_fail(load, section->line, "access_log: the path is empty");
        if (!apply_values(load, section, "access_log", log))
            return false;
    }
    return true;
}

static bool parse_icap_uri(struct load *load, int line, const char *text, struct url *url) {
    bool parsed = url_parse(url, slice_from(text));
    if (parsed && slice_equal_nocase(url->scheme, SLICE("icaps")))
        return load_fail(load, line, "uri: \"%s\": icaps (TLS) is not spoken yet; write icap://",
                         text);
    if (!parsed || !slice_equal_nocase(url->scheme, SLICE("icap")) || url_path(url).length < 2)
        return load_fail(load, line,
                         "uri: \"%s\" is not the address of an ICAP service; write "
                         "\"icap://HOST:PORT/SERVICE\"",
                         text);
    return true;
}

static bool check_icap_uris(struct load *load, const struct document_section *section,
                            struct icap_service_settings *service) {
    int line = line_of(section, "uri");
    unsigned count = 0;
    while (service->uri_texts[count] != NULL)
        count++;
    if (count == 0 || count > ICAP_ENDPOINTS_MAX)
        return load_fail(load, line, "uri: name 1 to %d addresses", ICAP_ENDPOINTS_MAX);
    service->endpoints = xcalloc(count, sizeof *service->endpoints);
    for (; service->endpoint_count < count; service->endpoint_count++)
        if (!parse_icap_uri(load, line, service->uri_texts[service->endpoint_count],
                            &service->endpoints[service->endpoint_count]))
            return false;
    return true;
}

static bool check_icap_credentials(struct load *load, const struct document_section *section,
                                   const struct icap_service_settings *service) {
    if (service->credentials == NULL)
        return true;
    if (strchr(service->credentials, ':') == NULL)
        return load_fail(load, line_of(section, "credentials"),
                         "credentials: write \"USER:PASSWORD\"");
    if (strlen(service->credentials) > ICAP_CREDENTIALS_MAX)
        return load_fail(load, line_of(section, "credentials"),
                         "credentials: at most %d characters", ICAP_CREDENTIALS_MAX);
    if (service->proxy_credentials)
        return load_fail(load, line_of(section, "proxy_credentials"),
                         "proxy_credentials: the service gets either our credentials or those of "
                         "clients in Proxy-Authorization; leave one of the two out");
    return true;
}

static bool check_icap_include(struct load *load, const struct document_section *section,
                               const struct icap_service_settings *service) {
    static const char *const known[] = {"X-Client-IP", "X-Client-Port", "X-Server-IP"};
    for (char **name = service->include; name != NULL && *name != NULL; name++) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found = found || strcasecmp(*name, known[i]) == 0;
        if (!found)
            return load_fail(load, line_of(section, "include"),
                             "include: \"%s\" is not known; write X-Client-IP, X-Client-Port or "
                             "X-Server-IP",
                             *name);
    }
    return true;
}

static bool apply_icap_service(struct load *load, const struct document_section *section,
                               struct icap_service_settings *service) {
    service->name = xstrdup(section->title);
    service->temporary_directory = load->settings->temporary_directory;
    if (!check_name(load, section) || !apply_values(load, section, "icap_service", service) ||
        !check_icap_uris(load, section, service) ||
        !check_icap_credentials(load, section, service) ||
        !check_icap_include(load, section, service))
        return false;
    if (service->down_min > service->down_max)
        return load_fail(load, line_of(section, "down_min"), "down_min is larger than down_max");
    if (service->preview > service->keep)
        return load_fail(load, line_of(section, "keep"),
                         "keep is smaller than preview; a preview must be kept, or there would be "
                         "nothing to send after a 204");
    return true;
}

static bool apply_icap_services(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->icap_service_count = document_section_count(load->document, "icap_service");
    settings->icap_services =
        xcalloc(settings->icap_service_count + 1, sizeof *settings->icap_services);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "icap_service")
    if (!apply_icap_service(load, section, &settings->icap_services[i++]))
        return false;
    return true;
}

static void release_values(const char *kind, void *destination) {
    OPTIONS_FOR_EACH(option, kind)
    value_release(option, destination);
}

static bool apply_url_class(struct load *load, const struct document_section *section,
                            struct url_class **url_class) {
    struct url_class_conditions conditions = {0};
    char reason[600];
    if (!check_name(load, section))
        return false;
    if (strcmp(section->title, "all") == 0)
        return load_fail(load, section->line,
                         "url_class: \"all\" is built in; choose another name");
    if (section->value_count == 0)
        return load_fail(load, section->line,
                         "url_class \"%s\" has no condition; use the class \"all\", which is built "
                         "in, to match everything",
                         section->title);
    bool good = apply_values(load, section, "url_class", &conditions);
    if (good) {
        *url_class = url_class_new(section->title, &conditions, reason, sizeof reason);
        good = *url_class != NULL || load_fail(load, section->line, "%s", reason);
    }
    release_values("url_class", &conditions);
    return good;
}

static bool apply_url_classes(struct load *load) {
    const struct url_class_conditions none = {0};
    struct settings *settings = load->settings;
    char reason[200];
    size_t i = 0;
    settings->url_class_count = 1 + document_section_count(load->document, "url_class");
    settings->url_classes = xcalloc(settings->url_class_count, sizeof *settings->url_classes);
    settings->url_classes[i++] = url_class_new("all", &none, reason, sizeof reason);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "url_class")
    if (!apply_url_class(load, section, &settings->url_classes[i++]))
        return false;
    return true;
}

static const struct icap_service_settings *find_service(const struct settings *settings,
                                                        const char *name) {
    for (size_t i = 0; i < settings->icap_service_count; i++)
        if (strcmp(settings->icap_services[i].name, name) == 0)
            return &settings->icap_services[i];
    return NULL;
}

static const struct url_class *find_class(const struct settings *settings, const char *name) {
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (strcmp(url_class_name(settings->url_classes[i]), name) == 0)
            return settings->url_classes[i];
    return NULL;
}

static bool add_service(struct load *load, const struct document_value *value,
                        struct adapt_settings *adapt) {
    const struct icap_service_settings *service = find_service(load->settings, value->text);
    if (service == NULL)
        return load_fail(load, value->line,
                         "services: there is no icap_service \"%s\"; add one or correct the name",
                         value->text);
    for (size_t i = 0; i < adapt->service_count; i++)
        if (adapt->services[i] == service)
            return load_fail(load, value->line, "services: \"%s\" stands twice in the list",
                             value->text);
    adapt->services[adapt->service_count++] = service;
    if (service->point == ICAP_REQMOD_PRECACHE &&
        url_class_conditions(adapt->url_class)->content_types != NULL)
        log_warn(
            "%s:%d: service %s is asked about requests, but class %s has a content_type and so "
            "matches responses only: the service will never be asked",
            load->document->path, value->line, service->name, url_class_name(adapt->url_class));
    return true;
}

static bool apply_adapt(struct load *load, const struct document_section *section,
                        struct adapt_settings *adapt) {
    struct adapt_names names = {0};
    adapt->url_class = find_class(load->settings, section->title);
    if (adapt->url_class == NULL)
        return load_fail(load, section->line,
                         "adapt: there is no url_class \"%s\"; add one, correct the name, or use "
                         "the class \"all\"",
                         section->title);
    bool good = apply_values(load, section, "adapt", &names);
    release_values("adapt", &names);
    adapt->services = xcalloc(section->value_count + 1, sizeof *adapt->services);
    for (size_t i = 0; good && i < section->value_count; i++)
        good = add_service(load, &section->values[i], adapt);
    return good;
}

static bool apply_adapts(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->adapt_count = document_section_count(load->document, "adapt");
    settings->adapts = xcalloc(settings->adapt_count + 1, sizeof *settings->adapts);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "adapt")
    if (!apply_adapt(load, section, &settings->adapts[i++]))
        return false;
    return true;
}

/* Options that matter before there is a response. */
static bool is_about_requests(const struct option *option) {
    static const char *const names[] = {"ignore_client_no_cache",
                                        "strip_cookies",
                                        "query_drop",
                                        "query_keep",
                                        "query_sort",
                                        "query_ignore"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return false;
}

static bool check_policy(struct load *load, const struct document_section *section,
                         const struct policy_settings *policy) {
    bool by_type = url_class_conditions(policy->url_class)->content_types != NULL;
    for (size_t i = 0; by_type && i < section->value_count; i++)
        if (is_about_requests(section->values[i].option))
            return load_fail(load, section->values[i].line,
                             "%s can not be stated for class %s, whose content_type is not known "
                             "before there is a response",
                             section->values[i].option->name, section->title);
    if (document_value(section, "ttl_min") != NULL && document_value(section, "ttl_max") != NULL &&
        policy->values.ttl_min > policy->values.ttl_max)
        return load_fail(load, line_of(section, "ttl_min"), "ttl_min is larger than ttl_max");
    load->settings->policies_by_type = load->settings->policies_by_type || by_type;
    return true;
}

static bool apply_policy(struct load *load, const struct document_section *section,
                         struct policy_settings *policy) {
    policy->url_class = find_class(load->settings, section->title);
    if (policy->url_class == NULL)
        return load_fail(load, section->line,
                         "policy: there is no url_class \"%s\"; add one, correct the name, or use "
                         "the class \"all\"",
                         section->title);
    if (section->value_count == 0)
        return load_fail(load, section->line, "policy \"%s\" states nothing", section->title);
    if (!apply_values(load, section, "policy", &policy->values))
        return false;
    OPTIONS_FOR_EACH(option, "policy")
    if (document_value(section, option->name) != NULL)
        policy_state(policy, option->at, value_size(option));
    return check_policy(load, section, policy);
}

static bool apply_policies(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->policy_count = document_section_count(load->document, "policy");
    settings->policies = xcalloc(settings->policy_count + 1, sizeof *settings->policies);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "policy")
    if (!apply_policy(load, section, &settings->policies[i++]))
        return false;
    return true;
}

/* Parent proxies. */

static bool apply_parent(struct load *load, const struct document_section *section,
                         struct parent_settings *parent) {
    parent->url_class = find_class(load->settings, section->title);
    if (parent->url_class == NULL)
        return load_fail(load, section->line,
                         "parent: there is no url_class \"%s\"; add one, correct the name, or use "
                         "the class \"all\"",
                         section->title);
    if (!apply_values(load, section, "parent", parent))
        return false;
    if (parent->origins_name == NULL && parent->direct != PARENT_DIRECT_ALWAYS)
        return load_fail(load, section->line,
                         "parent \"%s\" has no origins; write: origins = NAME, or direct = always",
                         section->title);
    if (parent->origins_name == NULL)
        return true;
    parent->origins = find_origins(load->settings, slice_from(parent->origins_name));
    if (parent->origins == NULL)
        return load_fail(load, line_of(section, "origins"),
                         "origins: there is no origins section \"%s\"; add one or correct the name",
                         parent->origins_name);
    return true;
}

static bool apply_parents(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->parent_count = document_section_count(load->document, "parent");
    settings->parents = xcalloc(settings->parent_count + 1, sizeof *settings->parents);
    DOCUMENT_FOR_EACH_SECTION(section, load->document, "parent")
    if (!apply_parent(load, section, &settings->parents[i++]))
        return false;
    return true;
}

static bool apply_document(struct load *load) {
    return apply_top(load) && apply_listens(load) && apply_origins_groups(load) &&
           apply_maps(load) && apply_cache(load) &&
           apply_values(load, document_section(load->document, "client", NULL), "client",
                        load->settings) &&
           apply_values(load, document_section(load->document, "origin", NULL), "origin",
                        load->settings) &&
           apply_admin(load) && apply_access_logs(load) && apply_icap_services(load) &&
           apply_url_classes(load) && apply_adapts(load) && apply_policies(load) &&
           apply_parents(load);
}

struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]) {
    struct document *document = document_parse(path, error);
    if (document == NULL)
        return NULL;
    struct settings *settings;
    ALLOC_OBJ(settings, SETTINGS_MAGIC);
    settings->references = 1;
    settings->path = xstrdup(path);
    struct load load = {.settings = settings, .document = document, .error = error};
    if (apply_document(&load))
        warn_about_maps(&load);
    else
        settings_release(&settings);
    document_free(&document);
    return settings;
}

struct settings *settings_reference(struct settings *settings) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    atomic_fetch_add_explicit(&settings->references, 1, memory_order_relaxed);
    return settings;
}

static void release_origins_group(struct origins_settings *origins) {
    release_values("origins", origins);
    for (size_t i = 0; i < origins->server_count; i++)
        origins_release_server(&origins->servers[i]);
    free(origins->servers);
    free(origins->name);
}

static void release_elements(struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        release_values("listen", &settings->listens[i]);
    for (size_t i = 0; i < settings->map_count; i++) {
        release_values("map", &settings->maps[i]);
        free(settings->maps[i].host);
        free(settings->maps[i].path);
    }
    for (size_t i = 0; i < settings->cache.disk_count; i++)
        free(settings->cache.disks[i].path);
    for (size_t i = 0; i < settings->origins_group_count; i++)
        release_origins_group(&settings->origins_groups[i]);
    for (size_t i = 0; i < settings->parent_count; i++)
        release_values("parent", &settings->parents[i]);
    for (size_t i = 0; i < settings->access_log_count; i++)
        free(settings->access_logs[i].path);
    for (size_t i = 0; i < settings->icap_service_count; i++) {
        release_values("icap_service", &settings->icap_services[i]);
        free(settings->icap_services[i].name);
        free(settings->icap_services[i].endpoints);
    }
    for (size_t i = 0; i < settings->url_class_count; i++)
        url_class_free(&settings->url_classes[i]);
    for (size_t i = 0; i < settings->adapt_count; i++)
        free(settings->adapts[i].services);
    for (size_t i = 0; i < settings->policy_count; i++)
        release_values("policy", &settings->policies[i].values);
}

void settings_release(struct settings **settingsp) {
    struct settings *settings = *settingsp;
    *settingsp = NULL;
    if (settings == NULL)
        return;
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    if (atomic_fetch_sub_explicit(&settings->references, 1, memory_order_acq_rel) != 1)
        return;
    release_elements(settings);
    static const char *const sections[] = {"", "admin", "cache", "client", "origin"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        release_values(sections[i], settings);
    free(settings->listens);
    free(settings->maps);
    free(settings->cache.disks);
    free(settings->origins_groups);
    free(settings->parents);
    free(settings->access_logs);
    free(settings->icap_services);
    free(settings->url_classes);
    free(settings->adapts);
    free(settings->policies);
    free(settings->path);
    FREE_OBJ(settings);
}

/* A rule's host without a port stands for that host on any port. */
static bool host_matches(const char *rule, struct slice host) {
    size_t length = strlen(rule);
    if (host.length < length || memcmp(rule, host.base, length) != 0)
        return false;
    if (host.length == length)
        return true;
    return host.base[length] == ':' && !host_has_port(rule);
}

const struct map_settings *settings_find_map(const struct settings *settings, struct slice host,
                                             struct slice path) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    for (size_t i = 0; i < settings->map_count; i++) {
        const struct map_settings *map = &settings->maps[i];
        if ((map->host == NULL || host_matches(map->host, host)) &&
            slice_starts_with(path, slice_from(map->path)))
            return map;
    }
    return NULL;
}

bool settings_connect_port_allowed(const struct settings *settings, uint16_t port) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    for (size_t i = 0; i < settings->connect_port_count; i++)
        if (settings->connect_ports[i] == port)
            return true;
    return false;
}
