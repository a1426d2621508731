#include "settings/settings.h"

#include "base/assert.h"
#include "match/map_table.h"
#include "settings/load.h"
#include "tls/trust_files.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned count_cores(void) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return 1;
    return (unsigned)CPU_COUNT(&cores);
}

static bool apply_top(struct load *load) {
    struct settings *settings = load->settings;
    if (!load_values(load, document_section(load->document, "", NULL), "", settings))
        return false;
    if (settings->workers == 0)
        settings->workers = count_cores();
    return true;
}

static bool load_client(struct load *load) {
    size_t *memory = &load->settings->client.memory;
    if (!load_values(load, document_section(load->document, "client", NULL), "client",
                     load->settings))
        return false;
    if (*memory == 0)
        *memory = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

static bool load_admin(struct load *load) {
    const struct document_section *section = document_section(load->document, "admin", NULL);
    if (!load_values(load, section, "admin", load->settings))
        return false;
    const char *listen = load->settings->admin.listen;
    struct address *address = &load->settings->admin.address;
    if (listen == NULL)
        return true;
    int line = load_line_of(section, "listen");
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

static bool load_access_logs(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->access_log_count = document_section_count(load->document, "access_log");
    settings->access_logs = xcalloc(settings->access_log_count + 1, sizeof *settings->access_logs);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "access_log") {
        struct access_log_settings *log = &settings->access_logs[i++];
        log->path = xstrdup(section->title);
        if (log->path[0] == '\0')
            return load_fail(load, section->line, "access_log: the path is empty");
        if (!load_values(load, section, "access_log", log))
            return false;
    }
    return true;
}

static void release_access_logs(struct settings *settings) {
    for (size_t i = 0; i < settings->access_log_count; i++)
        free(settings->access_logs[i].path);
    free(settings->access_logs);
}

/* Builds the rules: the classes that requests must be compared with. */
static void make_rules(struct settings *settings) {
    settings->rules = rules_new();
    for (size_t i = 0; i < settings->policy_count; i++)
        rules_add(settings->rules, settings->policies[i].url_class);
    settings->adapt_rules = settings->policy_count;
    for (size_t i = 0; i < settings->adapt_count; i++)
        rules_add(settings->rules, settings->adapts[i].url_class);
    settings->parent_rules = settings->adapt_rules + settings->adapt_count;
    for (size_t i = 0; i < settings->parent_count; i++)
        rules_add(settings->rules, settings->parents[i].url_class);
    rules_seal(settings->rules);
}

static bool apply_document(struct load *load) {
    return apply_top(load) && load_listens(load) && load_transparent(load) && load_origin(load) &&
           load_origins_groups(load) && load_maps(load) && load_cache(load) && load_client(load) &&
           load_admin(load) && load_access_logs(load) && load_icap_services(load) &&
           load_url_classes(load) && load_adapts(load) && load_policies(load) &&
           load_parents(load) && load_interception(load) && load_authority(load);
}

static struct settings *settings_make(const char *path, bool without_files,
                                      char error[SETTINGS_ERROR]) {
    struct document *document = document_parse(path, error);
    if (document == NULL)
        return NULL;
    struct settings *settings;
    ALLOC_OBJ(settings, SETTINGS_MAGIC);
    settings->references = 1;
    settings->path = xstrdup(path);
    struct load load = {
        .settings = settings,
        .document = document,
        .error = error,
        .without_files = without_files,
    };
    if (apply_document(&load)) {
        make_rules(settings);
        warn_about_maps(&load);
        warn_about_secrets(&load);
    } else {
        settings_release(&settings);
    }
    document_free(&document);
    return settings;
}

struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]) {
    return settings_make(path, false, error);
}

struct settings *settings_load_alone(const char *path, char error[SETTINGS_ERROR]) {
    return settings_make(path, true, error);
}

struct settings *settings_reference(struct settings *settings) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    atomic_fetch_add_explicit(&settings->references, 1, memory_order_relaxed);
    return settings;
}

void settings_release(struct settings **settingsp) {
    struct settings *settings = *settingsp;
    *settingsp = NULL;
    if (settings == NULL)
        return;
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    if (atomic_fetch_sub_explicit(&settings->references, 1, memory_order_acq_rel) != 1)
        return;
    rules_free(&settings->rules);
    release_listens(settings);
    release_maps(settings);
    release_disks(settings);
    release_parents(settings);
    release_origins_groups(settings);
    release_access_logs(settings);
    release_adapts(settings);
    release_icap_services(settings);
    release_policies(settings);
    release_interception(settings);
    release_authority(settings);
    release_url_classes(settings);
    tls_trust_unload(&settings->origin.trust);
    static const char *const sections[] = {"",       "admin",        "cache",       "client",
                                           "origin", "interception", "transparent", "authority"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        load_release_values(sections[i], settings);
    free(settings->path);
    FREE_OBJ(settings);
}

const struct map_settings *settings_find_map(const struct settings *settings, struct slice host,
                                             struct slice path) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    size_t map = map_table_find(settings->map_table, host, path);
    return map == MAP_TABLE_NONE ? NULL : &settings->maps[map];
}

bool settings_take_foreign(const struct settings *settings, size_t listen) {
    return settings->transparent.tproxy && settings->listens[listen].mode == LISTEN_TRANSPARENT;
}

bool settings_are_transparent(const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].mode == LISTEN_TRANSPARENT)
            return true;
    return false;
}

bool settings_connect_port_allowed(const struct settings *settings, uint16_t port) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    for (size_t i = 0; i < settings->connect_port_count; i++)
        if (settings->connect_ports[i] == port)
            return true;
    return false;
}
