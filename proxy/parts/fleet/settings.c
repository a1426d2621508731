/* Many nodes as one: the section fleet. */
#include "fleet/settings.h"

#include "base/assert.h"
#include "secrets/secret_file.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "tls/trust_files.h"

#include <openssl/crypto.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct option_section sections[] = {
    {
        .name = "fleet",
        .after = "admin",
        .title = "NAME",
        .documentation =
            "Makes this proxy a node of a fleet: several proxies that behave as one. What is "
            "purged "
            "at one node is purged at all, and the answer says on how many it is in force, and by "
            "when it surely is on all. The nodes share a stream of events on a Valkey or Redis "
            "server, version 7 or newer (the engine). NAME is that of the fleet: letters, digits, "
            "'.', '_' and '-'. docs/FLEET.md explains how to set one up. A reload changes nothing "
            "of this section.",
        .example = "fleet edge {\n"
                   "    node = \"n7\"\n"
                   "    servers = { \"10.0.0.1:6379\" }\n"
                   "    key_file = \"/etc/retort/fleet.key\"\n"
                   "}",
    },
    {.name = NULL},
};

static const char *const isolation_words[] = {"revalidate", "serve", "refuse", NULL};

static bool check_node(const char *text, char *error, size_t error_size) {
    if (fleet_name_is_good(slice_from(text)))
        return true;
    snprintf(error, error_size,
             "is no name of a node: write at most %d letters, digits and . _ - , such as n7",
             FLEET_NAME_MAX - 1);
    return false;
}

#define FLEET(member) ONE("fleet", struct fleet_settings, member), BY_FILE_AT_START

static const struct option rows[] = {
    {FLEET(node), .name = "node", STRING, .fallback_note = "the name of the machine",
     .check = check_node,
     DOC "Sets the name of this node. Each node needs another one, and a state directory of its "
         "own. It consists of letters, digits, '.', '_' and '-'.",
     .example = "\"n7\""},
    {FLEET(servers), .name = "servers", STRINGS, .required = true,
     DOC "Lists the servers of the engine, HOST:PORT each. The first one that takes changes is "
         "used. With sentinel they are the Sentinels, whose usual port is 26379.",
     .example = "{ \"10.0.0.1:6379\", \"10.0.0.2:6379\" }"},
    {FLEET(sentinel), .name = "sentinel", STRING, .fallback_note = "none",
     DOC
     "Sets the name by which Sentinels know the server: servers lists the Sentinels then, which "
     "are asked who serves.",
     .example = "\"mymaster\""},
    {FLEET(key_file), .name = "key_file", STRING, .required = true,
     DOC "Sets a file with the key of the fleet, at least 32 bytes, the same on all nodes. Each "
         "event is signed by it, so that an engine that somebody else controls can't make any. "
         "Make one with: openssl rand -hex 32. Only root and the user that runs retort may read "
         "the file.",
     .example = "\"/etc/retort/fleet.key\""},
    {FLEET(directory), .name = "state_directory", STRING, DEFAULT("/var/lib/retort/fleet"),
     DOC "Sets a directory in which the node keeps how far it has read, and what it has still to "
         "tell. Without it, what was answered as done could be lost. It must be on a local disk, "
         "and no other node may use it.",
     .example = "\"/srv/retort/fleet\""},
    {FLEET(user), .name = "user", STRING, .fallback_note = "none",
     DOC "Sets the user at the engine (ACL). It needs the commands AUTH, INFO, MULTI, EXEC, XADD, "
         "XRANGE, XREVRANGE, XREAD, HSET, HDEL, HGETALL and WAIT on the keys retort:*.",
     .example = "\"retort\""},
    {FLEET(password_file), .name = "password_file", STRING, .fallback_note = "none",
     DOC "Sets a file with the password at the engine.",
     .example = "\"/etc/retort/fleet.password\""},
    {FLEET(sentinel_password_file), .name = "sentinel_password_file", STRING,
     .fallback_note = "none", DOC "Sets a file with the password at the Sentinels.",
     .example = "\"/etc/retort/sentinel.password\""},
    {FLEET(tls), .name = "tls", BOOL, DEFAULT("false"),
     DOC "Sets whether TLS is spoken with the engine and the Sentinels.", .example = "true"},
    {FLEET(trust.ca_file), .name = "ca_file", STRING,
     .fallback_note = "the certificates that the system trusts",
     DOC "Sets a file of trusted certificates in PEM for the engine.",
     .example = "\"/etc/retort/engine-ca.pem\""},
    {FLEET(trust.certificate), .name = "certificate", STRING, .fallback_note = "none",
     DOC "Sets a file in PEM with the certificate that the node shows to the engine.",
     .example = "\"/etc/retort/node.pem\""},
    {FLEET(trust.certificate_key), .name = "certificate_key", STRING, .fallback_note = "none",
     .secret = OPTION_SHOWN, DOC "Sets the file of its private key.",
     .example = "\"/etc/retort/node.key\""},
    {FLEET(lease), .name = "lease", TIME_OF(1 * SECOND, 1 * HOUR), DEFAULT("10s"),
     DOC
     "Sets for how long a node vouches for what it has stored after it has proved that it knows "
     "all purges. It proves that every third of this time. So a purge is in force everywhere "
     "after this time, whatever is broken. All nodes need the same value.",
     .example = "\"5s\""},
    {FLEET(on_isolation), .name = "on_isolation", WORD(isolation_words), DEFAULT("revalidate"),
     DOC
     "Sets what happens to stored responses when the node can't prove that it knows all purges, "
     "because the engine or the network is away. revalidate: the origin is asked before each "
     "use. serve: they are used as usual, and may have been purged elsewhere. refuse: clients "
     "get an error page with status 503, at each start as well until the first proof.",
     .example = "serve"},
    {FLEET(copies), .name = "copies", COUNT(0, 100), DEFAULT("0"),
     DOC
     "Sets how many servers besides the first one must have an event before it counts (WAIT). "
     "Use 1 with a server and two copies of it, and Sentinel: then a server that is cut off from "
     "the others can prove nothing to anybody.",
     .example = "1"},
    {FLEET(keep), .name = "keep", COUNT(1000, 1e9), DEFAULT("200000"),
     DOC
     "Sets how many events the engine keeps at least. A node that was away for longer has to ask "
     "the origin for all that it has stored. An event takes some 300 bytes of memory there, and "
     "each node appends one in a third of the lease.",
     .example = "1000000"},
    {FLEET(timeout), .name = "timeout", TIMEOUT, DEFAULT("2s"),
     DOC
     "Limits how long the engine may take for an answer. After that it is asked again on another "
     "connection.",
     .example = "\"1s\""},
    {.name = NULL},
};

/* ---- files ------------------------------------------------------------------------------------- */

/* Without the line end behind it. */
static char *read_secret(const char *path, char error[FLEET_NAME_MAX * 8]) {
    struct secret_file file;
    if (!secret_file_read(&file, path, error, FLEET_NAME_MAX * 8))
        return NULL;
    char *text = NULL;
    if ((file.mode & (S_IRWXO | S_IWGRP)) != 0)
        snprintf(error, FLEET_NAME_MAX * 8,
                 "%.200s: other users of this machine can read or write it: change its group to "
                 "retort's, and run chmod 640",
                 path);
    else
        text = slice_dup(slice_trim(slice_make(file.text.base, strcspn(file.text.base, "\r\n"))));
    secret_file_release(&file);
    return text;
}

static void forget_secret(char **text) {
    if (*text != NULL)
        OPENSSL_cleanse(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static bool fleet_take_secret(struct load *load, const struct document_section *section,
                              const char *option, const char *path, char **text) {
    char error[FLEET_NAME_MAX * 8];
    if (path == NULL || load->without_files)
        return true;
    *text = read_secret(path, error);
    return *text != NULL || load_fail(load, load_line_of(section, option), "%s: %s", option, error);
}

static bool fleet_take_key(struct load *load, const struct document_section *section,
                           struct fleet_settings *fleet) {
    char *text = NULL;
    snprintf(fleet->key.fleet, sizeof fleet->key.fleet, "%s", fleet->name);
    if (!fleet_take_secret(load, section, "key_file", fleet->key_file, &text) || text == NULL)
        return load->without_files;
    size_t length = strlen(text);
    bool good = length >= FLEET_KEY_LEAST && length <= FLEET_KEY_MAX;
    if (good) {
        memcpy(fleet->key.bytes, text, length);
        fleet->key.length = length;
    }
    forget_secret(&text);
    return good ||
           load_fail(load, load_line_of(section, "key_file"),
                     "key_file: a key has %d to %d bytes: make one with: openssl rand -hex 32",
                     FLEET_KEY_LEAST, FLEET_KEY_MAX);
}

static bool take_node(struct load *load, const struct document_section *section,
                      struct fleet_settings *fleet) {
    char name[FLEET_NAME_MAX] = "";
    if (fleet->node != NULL)
        return true;
    if (gethostname(name, sizeof name - 1) != 0 || !fleet_name_is_good(slice_from(name)))
        return load_fail(load, section->line,
                         "fleet: the name of the machine can't be that of a node: set node");
    fleet->node = xstrdup(name);
    return true;
}

/* Always true. */
static bool warn_about(const struct load *load, const struct document_section *section,
                       const struct fleet_settings *fleet) {
    if (fleet->sentinel != NULL && fleet->copies == 0)
        load_warn(
            load, section->line,
            "fleet %s: with copies = 0, a server that is cut off from the others can prove to "
            "nodes that they know all purges; set copies to half of the copies, rounded up",
            fleet->name);
    return true;
}

static bool fleet_apply(struct load *load, const struct document_section *section,
                        struct fleet_settings *fleet) {
    fleet->trust.verify = true;
    fleet->name = xstrdup(section->title);
    if (!load_check_name(load, section) || !load_values(load, section, "fleet", fleet))
        return false;
    if (!fleet_name_is_good(slice_from(fleet->name)))
        return load_fail(load, section->line, "fleet: the name is longer than %d bytes",
                         FLEET_NAME_MAX - 1);
    return take_node(load, section, fleet) && fleet_take_key(load, section, fleet) &&
           fleet_take_secret(load, section, "password_file", fleet->password_file,
                             &fleet->password) &&
           fleet_take_secret(load, section, "sentinel_password_file", fleet->sentinel_password_file,
                             &fleet->sentinel_password) &&
           (!fleet->tls || load_trust(load, section, &fleet->trust)) &&
           warn_about(load, section, fleet);
}

static bool fleet_load(struct load *load, void *mine) {
    struct fleets_settings *fleets = mine;
    fleets->list = xcalloc(1, sizeof *fleets->list);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "fleet") {
        if (fleets->count == 1)
            return load_fail(load, section->line,
                             "a proxy is a node of one fleet: remove one of the fleet sections");
        fleets->count = 1;
        if (!fleet_apply(load, section, &fleets->list[0]))
            return false;
    }
    return true;
}

static void fleet_release(void *mine) {
    struct fleets_settings *fleets = mine;
    for (size_t i = 0; i < fleets->count; i++) {
        struct fleet_settings *fleet = &fleets->list[i];
        OPENSSL_cleanse(&fleet->key, sizeof fleet->key);
        forget_secret(&fleet->password);
        forget_secret(&fleet->sentinel_password);
        tls_trust_unload(&fleet->trust);
        load_release_values("fleet", fleet);
        free(fleet->name);
    }
    free(fleets->list);
}

static const char *fleet_title(const void *element) {
    const struct fleet_settings *fleet = element;
    return fleet->name;
}

static const struct section_place places[] = {
    {.section = "fleet",
     SECTION_LIST(struct fleets_settings, list, count, struct fleet_settings),
     .title = fleet_title,
     .at_start = true},
    {.section = NULL},
};

const struct part_settings fleet_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct fleets_settings),
    .load = fleet_load,
    .release = fleet_release,
};
