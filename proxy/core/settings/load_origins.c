/* Origins: the section origin, groups of origins, and the parents that are such. */
#include "settings/load.h"

#include "base/assert.h"
#include "tls/trust_files.h"

#include <stdlib.h>
#include <string.h>

static bool add_server(struct load *load, const struct document_value *value,
                       struct origins_settings *origins) {
    struct origin_server_settings *server = &origins->servers[origins->server_count++];
    char reason[200];
    bool good = origins_parse_server(server, value->text, reason, sizeof reason);
    ASSERT(good); /* the option's check has seen it */
    for (struct origin_server_settings *other = origins->servers; other < server; other++)
        if (slice_equal_nocase(other->url.host, server->url.host) &&
            other->url.port == server->url.port &&
            url_is_https(&other->url) == url_is_https(&server->url))
            return load_fail(load, value->line, "servers: \"%s\" is listed twice; use weight=2",
                             server->text);
    return true;
}

/* How many the section may come to have. */
static size_t most_servers(const struct origins_settings *origins) {
    size_t most = 0;
    for (size_t i = 0; i < origins->server_count; i++)
        most += origins->servers[i].srv ? origins->srv_servers : 1;
    return most;
}

static bool apply_servers(struct load *load, const struct document_section *section,
                          struct origins_settings *origins) {
    origins->servers = xcalloc(section->value_count, sizeof *origins->servers);
    for (size_t i = 0; i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, "servers") == 0 &&
            !add_server(load, &section->values[i], origins))
            return false;
    if (most_servers(origins) > ORIGINS_SERVERS_MAX && origins->server_count <= ORIGINS_SERVERS_MAX)
        return load_fail(load, section->line,
                         "origins: a section can have at most %u servers, and its SRV names could "
                         "bring more: lower srv_servers",
                         ORIGINS_SERVERS_MAX);
    if (origins->server_count > ORIGINS_SERVERS_MAX)
        return load_fail(load, section->line, "origins: a section can have at most %u servers",
                         ORIGINS_SERVERS_MAX);
    return true;
}

bool load_origin(struct load *load) {
    const struct document_section *section = document_section(load->document, "origin", NULL);
    struct tls_trust_settings *trust = &load->settings->origin.trust;
    load->settings->origin.http2 = ORIGINS_HTTP2_OFF; /* unless a part speaks it */
    if (!load_values(load, section, "origin", load->settings) || !load_trust(load, section, trust))
        return false;
    if (!trust->verify)
        load_warn(
            load, load_line_of(section, "verify"),
            "origin: verify is off, so anybody on the path to an https:// server can read and "
            "change what is sent, and the cache may store it; set ca_file instead");
    return true;
}

static bool origins_use_tls(const struct origins_settings *origins) {
    for (size_t i = 0; i < origins->server_count; i++)
        if (url_is_https(&origins->servers[i].url))
            return true;
    return false;
}

static bool apply_origins_trust(struct load *load, const struct document_section *section,
                                struct origins_settings *origins) {
    load_trust_inherit(section, &origins->trust, &load->settings->origin.trust);
    if (!load_trust(load, section, &origins->trust))
        return false;
    if (!origins->trust.verify && origins_use_tls(origins) &&
        document_value(section, "verify") != NULL)
        load_warn(load, load_line_of(section, "verify"),
                  "origins %s: verify is off, so anybody on the path to its https:// servers can "
                  "read and change what is sent, and the cache may store it; set ca_file instead",
                  origins->name);
    return true;
}

static void note_failure_status(struct origins_settings *origins) {
    uint64_t status;
    for (char **text = origins->failure_texts; *text != NULL; text++)
        if (slice_to_uint64(slice_from(*text), &status))
            origins->rules.failure_status[status - 500] = true;
}

/* Who forges an answer of a name server gets the credentials, unless a certificate stops it. */
static bool check_srv_credentials(struct load *load, const struct document_section *section,
                                  const struct origins_settings *origins) {
    for (size_t i = 0; origins->credentials != NULL && i < origins->server_count; i++) {
        const struct origin_server_settings *server = &origins->servers[i];
        if (server->srv && !(url_is_https(&server->url) && origins->trust.verify))
            return load_fail(load, load_line_of(section, "credentials"),
                             "origins %s: credentials would go to whichever server DNS names for "
                             "%s: begin its URL with https:// and leave verify on, or list the "
                             "servers themselves",
                             origins->name, server->text);
    }
    return true;
}

static bool apply_origins_group(struct load *load, const struct document_section *section,
                                struct origins_settings *origins) {
    origins->name = xstrdup(section->title);
    origins->http2 = ORIGINS_HTTP2_OFF;
    if (!load_check_name(load, section) || !load_values(load, section, "origins", origins) ||
        !apply_servers(load, section, origins) || !apply_origins_trust(load, section, origins))
        return false;
    note_failure_status(origins);
    if (origins->srv_ttl_min > origins->srv_ttl_max)
        return load_fail(load, load_line_of(section, "srv_ttl_min"),
                         "srv_ttl_min is larger than srv_ttl_max");
    if (!check_srv_credentials(load, section, origins))
        return false;
    if (origins->rules.down_min > origins->rules.down_max)
        return load_fail(load, load_line_of(section, "down_min"),
                         "down_min is larger than down_max");
    return true;
}

bool load_origins_groups(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->origins_group_count = document_section_count(load->document, "origins");
    settings->origins_groups =
        xcalloc(settings->origins_group_count + 1, sizeof *settings->origins_groups);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "origins")
        if (!apply_origins_group(load, section, &settings->origins_groups[i++]))
            return false;
    for (i = 0; i < settings->origins_group_count; i++)
        settings->sends_proxy_headers |=
            settings->origins_groups[i].proxy_protocol != PROXY_HEADER_OFF;
    return true;
}

const struct origins_settings *load_find_origins(const struct settings *settings,
                                                 struct slice name) {
    for (size_t i = 0; i < settings->origins_group_count; i++)
        if (slice_equal(slice_from(settings->origins_groups[i].name), name))
            return &settings->origins_groups[i];
    return NULL;
}

static bool apply_parent(struct load *load, const struct document_section *section,
                         struct parent_settings *parent) {
    if (!load_section_class(load, section, &parent->url_class))
        return false;
    if (!load_values(load, section, "parent", parent))
        return false;
    if (parent->origins_name == NULL && parent->direct != PARENT_DIRECT_ALWAYS)
        return load_fail(load, section->line,
                         "parent \"%s\" has no origins; write: origins = NAME, or direct = always",
                         section->title);
    if (parent->origins_name == NULL)
        return true;
    parent->origins = load_find_origins(load->settings, slice_from(parent->origins_name));
    if (parent->origins == NULL)
        return load_fail(load, load_line_of(section, "origins"),
                         "origins: there is no origins section \"%s\"; add one or correct the name",
                         parent->origins_name);
    return true;
}

bool load_parents(struct load *load) {
    struct settings *settings = load->settings;
    size_t i = 0;
    settings->parent_count = document_section_count(load->document, "parent");
    settings->parents = xcalloc(settings->parent_count + 1, sizeof *settings->parents);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "parent")
        if (!apply_parent(load, section, &settings->parents[i++]))
            return false;
    return true;
}

static void release_origins_group(struct origins_settings *origins) {
    tls_trust_unload(&origins->trust);
    load_release_values("origins", origins);
    for (size_t i = 0; i < origins->server_count; i++)
        origins_release_server(&origins->servers[i]);
    free(origins->servers);
    free(origins->name);
}

void release_origins_groups(struct settings *settings) {
    for (size_t i = 0; i < settings->origins_group_count; i++)
        release_origins_group(&settings->origins_groups[i]);
    free(settings->origins_groups);
}

void release_parents(struct settings *settings) {
    for (size_t i = 0; i < settings->parent_count; i++)
        load_release_values("parent", &settings->parents[i]);
    free(settings->parents);
}
