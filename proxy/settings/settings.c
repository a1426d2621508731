#include "settings/settings.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "match/map_table.h"
#include "settings/class_warnings.h"
#include "settings/config_file.h"
#include "settings/load.h"
#include "settings/overrides.h"
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
    settings->watches_transactions = settings->log_level == LOG_LEVEL_DEBUG;
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
    load_tracing,
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

/* What a snapshot is made from. */
struct settings_plan {
    bool without_files;
    struct document *document;
    struct overrides *saved, *changes; /* NULL: those of the file, and none */
};

static struct settings *make_once(struct load *load) {
    struct settings *settings;
    ALLOC_OBJ(settings, SETTINGS_MAGIC);
    settings->references = 1;
    settings->path = xstrdup(load->document->path);
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

/* Overrides. */

static const struct document_value *saved_settings_value(const struct document *document) {
    return document_value(document_section(document, "", NULL), "saved_settings");
}

/* The caller frees it; NULL: there is none. */
static char *saved_settings_path(const struct document *document) {
    const struct document_value *value = saved_settings_value(document);
    if (value == NULL || value->text[0] == '\0')
        return NULL;
    return config_file_beside(document_file(document, value->line), value->text);
}

/* False: after a fault. */
static bool read_saved(struct settings_plan *plan, struct faults *faults) {
    char *path = plan->saved == NULL ? saved_settings_path(plan->document) : NULL;
    if (path != NULL)
        plan->saved = overrides_read(path, faults);
    else if (plan->saved == NULL)
        plan->saved = overrides_new();
    free(path);
    if (plan->changes == NULL)
        plan->changes = overrides_new();
    return plan->saved != NULL;
}

/* What is changed now takes the place of what is saved. */
static void cover_saved(struct overrides *saved, const struct overrides *changes) {
    for (size_t i = 0; i < changes->count; i++)
        overrides_remove(saved, changes->list[i].name);
}

static void tell_of_dropped(const struct findings *dropped, const struct settings *settings) {
    for (unsigned i = 0; settings != NULL && i < dropped->count; i++)
        log_warn("%s", dropped->text[i]);
}

/* The document as the overrides make it. Changes that have no effect are dropped. */
static struct document *overridden(struct settings_plan *plan, struct findings *dropped) {
    struct document *document = document_copy(plan->document);
    struct overrides *saved = overrides_copy(plan->saved), *left = overrides_new();
    char *path = saved_settings_path(plan->document);
    cover_saved(saved, plan->changes);
    if (saved->count > 0)
        overrides_apply(saved, document, path != NULL ? path : "saved_settings", NULL, dropped);
    if (plan->changes->count > 0) {
        overrides_apply(plan->changes, document, SETTINGS_CHANGED, left, dropped);
        overrides_free(&plan->changes);
        plan->changes = left;
        left = NULL;
    }
    overrides_free(&left);
    overrides_free(&saved);
    free(path);
    return document;
}

/* The snapshot takes over what it was made from. */
static void keep_plan(struct settings *settings, struct settings_plan *plan) {
    note_files(settings, plan->document);
    settings->saved_settings_path = saved_settings_path(plan->document);
    settings->document = plan->document;
    settings->saved = plan->saved;
    settings->changes = plan->changes;
    *plan = (struct settings_plan){.document = NULL};
}

struct document *settings_document(const struct settings *settings) {
    struct findings dropped = {0};
    struct settings_plan plan = {.document = settings->document, .saved = settings->saved};
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    plan.changes = overrides_copy(settings->changes);
    struct document *document = overridden(&plan, &dropped);
    overrides_free(&plan.changes);
    return document;
}

static struct settings *make_by_plan(struct settings_plan *plan, struct faults *faults) {
    struct findings dropped = {0};
    struct load load = {.faults = faults, .without_files = plan->without_files};
    if (!read_saved(plan, faults))
        return NULL;
    load.document = overridden(plan, &dropped);
    struct settings *settings = make_without_faults(&load);
    document_free(&load.document);
    tell_of_dropped(&dropped, settings);
    if (settings != NULL)
        keep_plan(settings, plan);
    return settings;
}

/* Takes what the plan has. `faults`: those of the document. */
static struct settings *settings_make(struct settings_plan *plan, struct faults *faults,
                                      char error[SETTINGS_ERROR]) {
    struct settings *settings = plan->document == NULL ? NULL : make_by_plan(plan, faults);
    if (settings == NULL)
        faults_join(faults, error);
    faults_release(faults);
    document_free(&plan->document);
    overrides_free(&plan->saved);
    overrides_free(&plan->changes);
    return settings;
}

struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct settings_plan plan = {.document = document_parse(path, &faults)};
    return settings_make(&plan, &faults, error);
}

struct settings *settings_load_alone(const char *path, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct settings_plan plan = {.document = document_parse(path, &faults), .without_files = true};
    return settings_make(&plan, &faults, error);
}

struct settings *settings_load_again(const struct settings *before, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct settings_plan plan = {
        .document = document_parse(before->path, &faults),
        .changes = overrides_copy(before->changes),
    };
    return settings_make(&plan, &faults, error);
}

/* "As the files say" says nothing where nothing is saved. */
static void forget_undone(struct overrides *overrides, const struct overrides *saved) {
    for (size_t i = overrides->count; i-- > 0;)
        if (overrides->list[i].values == NULL &&
            (saved == NULL || overrides_find(saved, overrides->list[i].name) == NULL))
            overrides_remove(overrides, overrides->list[i].name);
}

struct settings *settings_change(const struct settings *before, const struct overrides *changes,
                                 bool keep, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct document *document = settings_document(before);
    bool fit = overrides_fit(changes, document, error, SETTINGS_ERROR);
    document_free(&document);
    if (!fit)
        return NULL;
    struct settings_plan plan = {
        .document = document_copy(before->document),
        .saved = overrides_copy(before->saved),
        .changes = overrides_copy(before->changes),
    };
    overrides_join(keep ? plan.saved : plan.changes, changes);
    if (keep)
        cover_saved(plan.changes, changes);
    forget_undone(plan.saved, NULL);
    forget_undone(plan.changes, plan.saved);
    return settings_make(&plan, &faults, error);
}

bool settings_listens_at(const struct settings *settings, const struct address *address) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, address))
            return true;
    return false;
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
        "forwarding", "authentication", "pac",         "limits",
        "tracing"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        load_release_values(sections[i], settings);
    document_free(&settings->document);
    overrides_free(&settings->saved);
    overrides_free(&settings->changes);
    free(settings->saved_settings_path);
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
