#include "settings/settings.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "config/config_file.h"
#include "config/value.h"
#include "match/map_table.h"
#include "part.h"
#include "settings/class_warnings.h"
#include "settings/load.h"
#include "settings/part_settings.h"
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
    settings->configured_workers = settings->workers;
    settings->watches_transactions = settings->log_level == LOG_LEVEL_DEBUG;
    return true;
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
    if (!load_values(load, section, "client", settings))
        return false;
    for (size_t i = 0; i < settings->listen_count; i++)
        set_largest_head(&settings->listens[i], settings->client.max_head);
    if (*memory == 0)
        *memory = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

/* `option` NULL: the section itself. */
static bool check_part(struct load *load, const char *section, const char *option, int line) {
    char reason[300];
    enum part_number part = part_of_option(section, option);
    if (part == PART_CORE || part_table[part] != NULL)
        return true;
    part_refuse(part, option != NULL ? option : section, reason, sizeof reason);
    return load_fail(load, line, "%s", reason);
}

/* A part may also own a word that an option of the core can have: listen.mode=transparent. */
static bool check_part_value(struct load *load, const struct document_section *section,
                             const struct document_value *value) {
    enum { WORD_ROOM = 128 };
    char word[WORD_ROOM];
    snprintf(word, sizeof word, "%s=%s", value->option->name, value->text);
    return check_part(load, section->kind->name, value->option->name, value->line) &&
           check_part(load, section->kind->name, word, value->line);
}

/* What only a part that this retort does not have would understand. */
static bool check_parts(struct load *load) {
    const struct document *document = load->document;
    bool good = true;
    for (size_t i = 0; good && i < document->section_count; i++) {
        const struct document_section *section = &document->sections[i];
        if (section->dropped)
            continue;
        good = check_part(load, section->kind->name, NULL, section->line);
        for (size_t j = 0; good && j < section->value_count; j++)
            good = check_part_value(load, section, &section->values[j]);
    }
    return good;
}

static bool load_parts(struct load *load) {
    bool good = true;
    PARTS_FOR_EACH (part, settings) {
        const struct part_settings *of = part_table[part]->settings;
        load->settings->parts[part] = xcalloc(1, of->size);
        load->owner = part;
        good = good && (of->load == NULL || of->load(load, load->settings->parts[part]));
    }
    load->owner = PART_CORE;
    return good;
}

static bool load_rules_of_parts(struct load *load) {
    bool good = true;
    PARTS_FOR_EACH (part, settings) {
        const struct part_settings *of = part_table[part]->settings;
        load->owner = part;
        good =
            good && (of->load_rules == NULL || of->load_rules(load, load->settings->parts[part]));
    }
    load->owner = PART_CORE;
    return good;
}

static void finish_parts(const struct load *load) {
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->finish != NULL)
            part_table[part]->settings->finish(load, load->settings->parts[part]);
}

/* In this order: each may use what those before it have loaded. */
/* clang-format off */
static bool (*const loaders[])(struct load *load) = {
    check_parts,
    apply_top,
    load_listens,
    load_forwarding,
    load_origin,
    load_origins_groups,
    load_parts,
    load_maps,
    load_cache,
    load_client,
    load_url_classes,
    load_logs,
    load_policies,
    load_parents,
    load_rules_of_parts,
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
    settings->references = settings->users = 1;
    settings->path = xstrdup(load->document->path);
    load->settings = settings;
    if (apply_document(load)) {
        rule_kinds_make_rules(settings);
        finish_parts(load);
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

struct settings *settings_make(struct document *document, const struct settings_how *how,
                               struct faults *faults) {
    struct load load = {.document = document,
                        .faults = faults,
                        .without_files = how->purpose == SETTINGS_FOR_ELSEWHERE,
                        .quiet = how->quiet};
    struct settings *settings = make_without_faults(&load);
    if (settings != NULL)
        note_files(settings, how->files);
    return settings;
}

static struct settings *load_with(enum settings_purpose purpose, const char *path,
                                  const struct settings *before, char error[SETTINGS_ERROR]) {
    PARTS_FOR_EACH (part, load_settings)
        return part_table[part]->load_settings((int)purpose, path, before, error);
    struct faults faults = {0};
    struct document *document = document_parse(path, settings_table(), &faults);
    const struct settings_how how = {.purpose = purpose, .files = document};
    struct settings *settings = document == NULL ? NULL : settings_make(document, &how, &faults);
    if (settings == NULL)
        faults_join(&faults, error, SETTINGS_ERROR);
    faults_release(&faults);
    document_free(&document);
    return settings;
}

struct settings *settings_load_for(enum settings_purpose purpose, const char *path,
                                   char error[SETTINGS_ERROR]) {
    return load_with(purpose, path, NULL, error);
}

struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]) {
    return load_with(SETTINGS_TO_USE, path, NULL, error);
}

struct settings *settings_load_again(const struct settings *before, char error[SETTINGS_ERROR]) {
    return load_with(SETTINGS_TO_USE, before->path, before, error);
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

static void release_parts(struct settings *settings) {
    PARTS_FOR_EACH (part, settings)
        if (settings->parts[part] != NULL && part_table[part]->settings->release != NULL)
            part_table[part]->settings->release(settings->parts[part]);
}

/* The values of sections that occur once. */
static void release_single(struct settings *settings) {
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        void *home = option->owner == PART_CORE ? settings : settings->parts[option->owner];
        if (home != NULL && options_find_section(settings_table(), option->section)->title == NULL)
            value_release(option, home);
    }
    for (size_t i = 0; i < PART_COUNT; i++)
        free(settings->parts[i]);
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
    release_parents(settings);
    release_origins_groups(settings);
    release_logs(settings);
    release_policies(settings);
    release_url_classes(settings);
    tls_trust_unload(&settings->origin.trust);
    release_parts(settings);
    release_single(settings);
    settings_release(&settings->start);
    free(settings->steps);
    for (size_t i = 0; settings->files != NULL && settings->files[i] != NULL; i++)
        free(settings->files[i]);
    free(settings->files);
    free(settings->path);
    FREE_OBJ(settings);
}

struct settings *settings_use(struct settings *settings) {
    atomic_fetch_add_explicit(&settings->users, 1, memory_order_relaxed);
    return settings_reference(settings);
}

void settings_end_use(struct settings **settingsp) {
    struct settings *settings = *settingsp;
    if (settings != NULL &&
        atomic_fetch_sub_explicit(&settings->users, 1, memory_order_acq_rel) == 1)
        PARTS_FOR_EACH (number, process.unprepare)
            part_table[number]->process.unprepare(settings);
    settings_release(settingsp);
}

const struct map_settings *settings_find_map(const struct settings *settings, struct slice host,
                                             struct slice path) {
    CHECK_OBJ(settings, SETTINGS_MAGIC);
    size_t map = map_table_find(settings->map_table, host, path);
    return map == MAP_TABLE_NONE ? NULL : &settings->maps[map];
}

bool settings_take_foreign(const struct settings *settings, size_t listen) {
    return settings->sockets.foreign && settings->listens[listen].mode == LISTEN_TRANSPARENT;
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
