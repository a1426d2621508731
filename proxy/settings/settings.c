#include "settings/settings.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "match/map_table.h"
#include "settings/class_warnings.h"
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

/* One client has a quarter of all connections, and a quarter of these may be half-open. */
static bool check_client_shares(struct load *load, const struct document_section *section) {
    unsigned *most = &load->settings->client.max_connections_per_client;
    unsigned *half_open = &load->settings->client.max_half_open;
    if (*most > load->settings->client.max_connections)
        return load_fail(load, load_line_of(section, "max_connections_per_client"),
                         "max_connections_per_client: %u is more than max_connections, which all "
                         "clients share: %u",
                         *most, load->settings->client.max_connections);
    if (*most == 0)
        *most = (load->settings->client.max_connections + 3) / 4;
    if (*half_open == 0)
        *half_open = (*most + 3) / 4;
    return true;
}

/* Connections of this machine are not bounded one by one, unless the file says otherwise. */
static void uncount_loopback(struct settings *settings) {
    static const char *const loopback[] = {"127.0.0.0/8", "::1"};
    enum { COUNT = sizeof loopback / sizeof loopback[0] };
    settings->client.uncounted = xcalloc(COUNT, sizeof *settings->client.uncounted);
    settings->client.uncounted_count = COUNT;
    for (size_t i = 0; i < COUNT; i++)
        ASSERT(network_parse(&settings->client.uncounted[i], slice_from(loopback[i])));
}

/* What the listener leaves open. */
static void set_largest_head(struct listen_settings *listen, size_t max_head) {
    if (listen->max_head == 0)
        listen->max_head = max_head;
    if (listen->max_url == 0)
        listen->max_url = listen->max_head;
}

static bool load_client(struct load *load) {
    struct settings *settings = load->settings;
    size_t *memory = &settings->client.memory;
    const struct document_section *section = document_section(load->document, "client", NULL);
    if (!load_values(load, section, "client", settings) || !check_client_shares(load, section))
        return false;
    if (section == NULL || document_value(section, "uncounted") == NULL)
        uncount_loopback(settings);
    for (size_t i = 0; i < settings->listen_count; i++)
        set_largest_head(&settings->listens[i], settings->client.max_head);
    if (*memory == 0)
        *memory = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

/* In this order: each may use what those before it have loaded. */
/* clang-format off */
static bool (*const loaders[])(struct load *load) = {
    apply_top,
    load_listens,
    load_transparent,
    load_forwarding,
    load_origin,
    load_origins_groups,
    load_identity,
    load_maps,
    load_cache,
    load_client,
    load_admin,
    load_icap_services,
    load_url_classes,
    load_adapts,
    load_logs,
    load_accesses,
    load_policies,
    load_parents,
    load_limits,
    load_head_rules,
    load_interception,
    load_error_pages,
    load_pac,
    load_authority,
    check_listens,
};
/* clang-format on */

static bool apply_document(struct load *load) {
    bool good = true;
    for (size_t i = 0; good && i < sizeof loaders / sizeof loaders[0]; i++)
        good = loaders[i](load);
    return good;
}

static void note_files(struct settings *settings, const struct document *document) {
    settings->files = xcalloc(document->file_count + 1, sizeof *settings->files);
    for (size_t i = 0; i < document->file_count; i++)
        settings->files[i] = xstrdup(document->files[i]);
}

static struct settings *make_once(struct load *load) {
    struct settings *settings;
    ALLOC_OBJ(settings, SETTINGS_MAGIC);
    settings->references = 1;
    settings->path = xstrdup(load->document->path);
    note_files(settings, load->document);
    load->settings = settings;
    if (apply_document(load)) {
        rule_kinds_make_rules(settings);
        finish_accesses(load);
        warn_about_maps(load);
        class_warnings(load);
        class_warnings_shadowed(load, RULE_PARENT, NULL);
        warn_about_secrets(load);
    } else {
        settings_release(&settings);
    }
    load->quiet = true;
    return settings;
}

/* The configuration is loaded as often as faults are found, each time without what was at fault, so
 * that all are told at once and nothing is made from half of a section. Returns NULL when there
 * are any. */
static struct settings *make_without_faults(struct load *load) {
    enum { MOST_MILLISECONDS = 3000 };
    uint64_t end = clocks_milliseconds(CLOCK_MONOTONIC) + MOST_MILLISECONDS;
    struct settings *settings = NULL;
    bool again;
    document_drop_faulty(load->document);
    do {
        settings = make_once(load);
        again = settings == NULL && load->faults->more == 0 &&
                clocks_milliseconds(CLOCK_MONOTONIC) < end && document_drop_faulty(load->document);
    } while (again);
    if (settings == NULL && load->faults->count == 0)
        faults_add(load->faults, 0, load->document->path, 0, "the configuration can not be used");
    if (load->faults->count > 0)
        settings_release(&settings);
    return settings;
}

static struct settings *settings_make(const char *path, bool without_files,
                                      char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct document *document = document_parse(path, &faults);
    struct settings *settings = NULL;
    struct load load = {.document = document, .faults = &faults, .without_files = without_files};
    if (document != NULL)
        settings = make_without_faults(&load);
    if (settings == NULL)
        faults_join(&faults, error);
    faults_release(&faults);
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
    release_limits(settings);
    release_origins_groups(settings);
    release_logs(settings);
    release_admin(settings);
    release_adapts(settings);
    release_accesses(settings);
    release_icap_services(settings);
    release_policies(settings);
    release_interception(settings);
    release_error_pages(settings);
    release_pac(settings);
    release_authority(settings);
    release_identity(settings);
    release_head_rules(settings);
    release_url_classes(settings);
    tls_trust_unload(&settings->origin.trust);
    static const char *const sections[] = {
        "",           "admin",          "cache",       "client",
        "origin",     "interception",   "transparent", "authority",
        "forwarding", "authentication", "pac",         "limits"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        load_release_values(sections[i], settings);
    for (size_t i = 0; settings->files != NULL && settings->files[i] != NULL; i++)
        free(settings->files[i]);
    free(settings->files);
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
