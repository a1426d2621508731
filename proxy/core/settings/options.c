#include "settings/options.h"

#include "base/assert.h"
#include "http/credentials.h"
#include "match/class_conditions.h"
#include "match/regex.h"
#include "net/dns_message.h"
#include "part.h"
#include "settings/negative.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "settings/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Words of enums, in the order of the enums' members. */
static const char *const listen_mode_words[] = {"forward", "reverse", "transparent", NULL};
static const char *const forwarding_words[] = {"append", "off", "replace", "delete", NULL};
static const char *const untrusted_words[] = {"keep", "drop", NULL};
/* enum forwarded_field. */
static const char *const client_from_words[] = {"x_forwarded_for", "forwarded", NULL};
static const char *const local_destination_words[] = {"deny", "allow", NULL};
/* RFC 5424 §6.2.1: the numbers are the places. */
static const char *const syslog_facility_words[] = {
    "kern",   "user",     "mail",   "daemon", "auth",   "syslog", "lpr",   "news",   "uucp",
    "cron",   "authpriv", "ftp",    "ntp",    "audit",  "alert",  "clock", "local0", "local1",
    "local2", "local3",   "local4", "local5", "local6", "local7", NULL};
static const char *const syslog_severity_words[] = {"emerg",  "alert", "crit",  "err", "warning",
                                                    "notice", "info",  "debug", NULL};
/* enum log_escape. */
static const char *const log_escape_words[] = {"plain", "quoted", "json", NULL};
const char *const option_adapt_points[] = {"reqmod_precache", "reqmod_postcache",
                                           "respmod_precache", "respmod_postcache", NULL};

const char *adapt_point_name(enum adapt_point point) {
    return option_adapt_points[point];
}
static const char *const policy_cache_words[] = {"normal", "never", "always", NULL};
static const char *const set_cookie_words[] = {"explicit", "store", "pass", "strip", NULL};
static const char *const query_sent_words[] = {"stored", "whole", NULL};
static const char *const balance_words[] = {"round_robin", "least_connections", "consistent_hash",
                                            NULL};
static const char *const hash_words[] = {"url", "host", "client", NULL};
static const char *const direct_words[] = {"never", "fallback", "always", NULL};
const char *const option_tls_versions[] = {"tls1.2", "tls1.3", NULL};
const char *const option_client_certificates[] = {"off", "optional", "required", NULL};
static const char *const unknown_name_words[] = {"default", "refuse", NULL};
static const char *const log_level_words[] = {"error", "warn", "info", "debug", NULL};

/* The destination of a value. */
#define TOP(member)        ONE("", struct settings, member)
#define ONCE(name, member) ONE(name, struct settings, member)
#define LISTEN(member)     .section = "listen", .at = offsetof(struct listen_settings, member)
#define FORWARDING(member) ONCE("forwarding", forwarding.member)
#define MAP(member)        .section = "map", .at = offsetof(struct map_settings, member)
#define ORIGINS(member)    .section = "origins", .at = offsetof(struct origins_settings, member)
#define PARENT(member)     .section = "parent", .at = offsetof(struct parent_settings, member)
#define ACCESS_LOG(member) .section = "access_log", .at = offsetof(struct log_settings, member)
#define ICAP_LOG(member)   .section = "icap_log", .at = offsetof(struct log_settings, member)
#define URL_CLASS(member)                                                                          \
    .section = "url_class", .at = offsetof(struct url_class_conditions, member)
#define POLICY(member) .section = "policy", .at = offsetof(struct cache_policy, member)

static const struct option options[] = {
    /* The top level. */
    {TOP(include), .name = "include", STRINGS, .fallback_note = "none",
     DOC "Reads other files in place of this line, as if their lines stood here. Each value is the "
         "path of a file, or a pattern with * ? and [ ] that stands for all files it matches, in "
         "the order of their names. A path that does not begin with / is relative to the directory "
         "of the file that names it. A file that is not there is an error; a pattern that matches "
         "nothing is none. Included files may include others, 8 deep. The option may occur any "
         "number of times, outside all sections.",
     .example = "\"conf.d/*.conf\""},
    {TOP(workers), .name = "workers", COUNT(0, 1024), DEFAULT("0"), AT_START,
     DOC "Sets the number of threads that serve clients. Each thread has an event loop of its "
         "own. The value 0 starts one thread for each CPU core. A reload does not change this "
         "setting.",
     .example = "4"},
    {TOP(share_listeners), .name = "share_listeners", BOOL, DEFAULT("false"),
     DOC "Lets a second retort of the same user listen at the same addresses at the same time, "
         "so that a new process can start before the old one stops. The kernel divides new "
         "connections between both. Without this option, a start is refused when another process "
         "listens at an address, and so is a reload that adds such an address.",
     .example = "true"},
    {TOP(name), .name = "name", STRING, DEFAULT("retort"), .check = option_check_pseudonym,
     DOC "Sets the name of the proxy in Via fields and on error pages. Give each proxy of a "
         "chain a different name: a request that arrives with this name in Via has gone round in "
         "a loop and is answered with 508.",
     .example = "\"cache1.example.com\""},
    {TOP(error_log), .name = "error_log", STRING, .fallback_note = "standard error",
     DOC "Sets the file for the proxy's own messages. A reload opens the file again.",
     .example = "\"/var/log/retort/error.log\""},
    {TOP(log_level), .name = "log_level", AT_RUN_TIME, WORD(log_level_words), DEFAULT("info"),
     DOC "Sets the least important level of message that is written. Each level includes those "
         "before it in the list.",
     .example = "warn"},
    {TOP(temporary_directory), .name = "temporary_directory", STRING, DEFAULT("/var/tmp"),
     DOC "Sets the directory for temporary files. Bodies that are too large for memory wait "
         "there for the verdict of an ICAP service (icap_service.keep_on_disk limits the size of "
         "each), and so do results for a waiting page (patience_space limits their sum). The "
         "files have no names and disappear with their request. Choose a directory on a disk, "
         "not in memory.",
     .example = "\"/var/cache/retort/tmp\""},
    {TOP(drain_timeout), .name = "drain_timeout", TIME_OF(0, DAY), DEFAULT("30s"),
     DOC "Sets how long transactions may go on after SIGTERM or \"retortctl drain\". Those that "
         "are still running after this time are cut off. A worker that is in a function of a "
         "module then, and does not come back, is left behind a second later.",
     .example = "\"10s\""},
    {TOP(connect_ports), .name = "connect_ports", ELEMENTS(option_ports),
     .count_at = offsetof(struct settings, connect_port_count), DEFAULT("443"),
     DOC "Lists the ports that clients may reach with CONNECT. A proxy that opens tunnels to any "
         "port is a way around firewalls and into mail servers, so list only the ports that are "
         "needed. CONNECT to another port is answered with 403 and counted in "
         "retort_client_denied_total. The value none forbids CONNECT.",
     .example = "{ 443, 8443 }"},

    {LISTEN(mode), .name = "mode", WORD(listen_mode_words), .required = true,
     DOC
     "Sets how clients use the listener. forward: clients know that they talk to a proxy, "
     "and they send whole URLs and CONNECT. reverse: clients take the proxy for the server, "
     "and map sections say where requests go. transparent: clients know of no proxy; the kernel "
     "redirects their connections to the listener (see the section transparent).",
     .example = "forward"},
    {LISTEN(name), .name = "name", STRING, .fallback_note = "the address as written",
     DOC "Names the listener for the condition listener of url_class. Several listeners may have "
         "the same name.",
     .example = "guests"},
    {LISTEN(allow), .name = "allow", ELEMENTS(option_networks),
     .count_at = offsetof(struct listen_settings, allow_count),
     .fallback_note = "forward mode: this machine and private networks (127.0.0.0/8, 10.0.0.0/8, "
                      "172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16, ::1, fc00::/7, fe80::/10); "
                      "reverse mode: all",
     DOC "Lists the addresses and networks of clients that may use the listener. Other clients "
         "get 403, and retort_client_denied_total counts their requests. The value all admits "
         "everybody. An open forward proxy on the Internet is found and misused within hours.",
     .example = "{ \"10.1.0.0/16\", \"::1\" }"},

    {LISTEN(max_head), .name = "max_head", SIZE_OF(0, 1 * MB), DEFAULT("0"),
     DOC "Limits the size of a request's head at this listener. A larger one is answered with 431 "
         "and counted in retort_client_bad_requests_total. The value 0 means client.max_head.",
     .example = "\"16KB\""},
    {LISTEN(max_url), .name = "max_url", SIZE_OF(0, 1 * MB), DEFAULT("0"),
     DOC "Limits the size of the URL in a request at this listener, as the client sends it. A "
         "longer one is answered with 414 and counted in retort_client_bad_requests_total. The "
         "value 0 means that only max_head limits it.",
     .example = "\"8KB\""},
    {LISTEN(local_destinations), .name = "local_destinations", WORD(local_destination_words),
     DEFAULT("deny"),
     DOC "Sets whether clients of a forward or transparent listener may reach services on the "
         "proxy's own "
         "machine and on its links. deny: Retort answers with 403 when the destination is a "
         "loopback address (127.0.0.0/8, ::1), a link-local address (169.254.0.0/16, where "
         "clouds give a machine its secrets, and fe80::/10), another address where clouds do that "
         "(fd00:ec2::254, fd20:ce::254, 168.63.129.16, 100.100.100.200, 192.0.0.192), an "
         "unspecified, multicast or "
         "broadcast address, or any address of the machine itself. Retort checks the address "
         "that a name resolves to, also after a service has changed the request; "
         "retort_destinations_denied_total counts refusals. When a request goes to a parent "
         "proxy, Retort checks only addresses and localhost; the parent resolves names and has "
         "to refuse them. In both modes clients never reach the proxy's own listeners and its "
         "admin plane through the proxy. The option does not affect reverse listeners: these "
         "reach what map sections name.",
     .example = "allow"},

#include "settings/options_cache.def"
#include "settings/options_listen_proxies.def"
#include "settings/options_listen_tls.def"
#include "settings/options_origins.def"

    {ONCE("client", client.header_timeout), .name = "header_timeout", TIMEOUT, DEFAULT("30s"),
     DOC "Sets how long the head of a request may take, from its first byte to its last. The "
         "whole head has one deadline, so that a client can not hold a connection by sending a "
         "byte now and then. After this time the connection is closed, and "
         "retort_client_timeouts_total counts it.",
     .example = "\"10s\""},
    {ONCE("client", client.handshake_timeout), .name = "handshake_timeout", TIMEOUT, DEFAULT("10s"),
     DOC "Sets how long a client of a listener with certificates may take for the TLS handshake, "
         "from the moment when it connects. After this time the connection is closed, and "
         "retort_tls_handshake_timeouts_total counts it.",
     .example = "\"5s\""},
    {ONCE("client", client.max_handshakes), .name = "max_handshakes", COUNT(1, 10e6),
     DEFAULT("1000"),
     DOC "Limits the number of TLS handshakes with clients at a time, for all workers together. "
         "When there are more, the client that has kept its worker waiting longest, and for a "
         "second at least, is cut off; if there is none, the new connection is closed. "
         "retort_tls_handshakes_refused_total counts both.",
     .example = "200"},
    {ONCE("client", client.idle_timeout), .name = "idle_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "Sets how long a connection may stay open while no request is under way on it.",
     .example = "\"15s\""},
    {ONCE("client", client.body_timeout), .name = "body_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "Sets how long the body of a request may pause. After this time the client gets 408, "
         "and retort_client_timeouts_total counts it.",
     .example = "\"30s\""},
    {ONCE("client", client.send_timeout), .name = "send_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "Sets how long a client may take no byte of its response. After this time the "
         "response is broken off, in HTTP/1.1 by closing the connection, and "
         "retort_client_timeouts_total counts it.",
     .example = "\"30s\""},
    {ONCE("client", client.max_head), .name = "max_head", SIZE_OF(1 * KB, 1 * MB), DEFAULT("64KB"),
     DOC "Limits the size of a request's head. A larger one is answered with 431 and counted in "
         "retort_client_bad_requests_total.",
     .example = "\"16KB\""},
    {ONCE("client", client.max_connections), .name = "max_connections", COUNT(1, 10e6),
     DEFAULT("10000"),
     DOC "Limits the number of client connections at a time, for all workers together. Further "
         "connections are closed at once and counted in "
         "retort_client_connections_rejected_total. Each connection needs a file descriptor: see "
         "LimitNOFILE or ulimit -n.",
     .example = "2000"},
    {ONCE("client", client.min_rate), .name = "min_rate", SIZE_OF(0, 1 * MB), DEFAULT("10"),
     DOC "Sets how many bytes a second the head and the body of a request must have on average, "
         "from min_rate_after on. Only the time counts in which Retort waits for the client. A "
         "slower head is answered by closing the connection, a slower body with 408, and "
         "retort_client_too_slow_total counts both. The value 0 means no limit.",
     .example = "\"1KB\""},
    {ONCE("client", client.min_rate_after), .name = "min_rate_after", TIMEOUT, DEFAULT("60s"),
     DOC "Sets how long a head or a body may be slower than min_rate.", .example = "\"10s\""},
    {ONCE("client", client.memory), .name = "memory", SIZE_OF(0, 4096 * GB), DEFAULT("0"),
     DOC "Limits the memory that connections hold: read buffers, bodies on their way to slow "
         "readers, and bodies that are kept for services. From three quarters of the limit, "
         "bodies are fetched in small pieces only. At the limit, new connections are closed and "
         "new requests are answered with 503 (retort_client_memory_refused_total), and the "
         "responses to the slowest readers are broken off (retort_client_memory_shed_total). The "
         "cache has a limit of its own, cache.memory. The value 0 means a quarter of the machine's "
         "memory.",
     .example = "\"2GB\""},
    {ONCE("client", client.max_requests), .name = "max_requests", COUNT(0, 1e9), DEFAULT("0"),
     DOC "Sets the number of requests after which a connection is closed, so that clients spread "
         "over several proxies again. The value 0 means no limit.",
     .example = "1000"},

#include "settings/options_classes.def"
#include "settings/options_forwarding.def"
#include "settings/options_logs.def"

    {.name = NULL},
};

/* The table: the core's rows, and those of the parts that are built. */

static bool explain_missing(const char *section, const char *name, char *reason, size_t size) {
    enum part_number part = part_of_option(section, name);
    bool whole = part == PART_CORE;
    if (whole)
        part = part_of_option(name, NULL);
    return part != PART_CORE && part_table[part] == NULL && part_refuse(part, name, reason, size);
}

static struct option_table whole_table = {.manual = "retort.conf(5)", .explain = explain_missing};

static size_t rows_of(const struct option *rows) {
    size_t count = 0;
    while (rows != NULL && rows[count].name != NULL)
        count++;
    return count;
}

static size_t sections_of(const struct option_section *sections) {
    size_t count = 0;
    while (sections != NULL && sections[count].name != NULL)
        count++;
    return count;
}

/* The place behind the last of `count` rows that is of the section, and has the name, unless that is NULL; 0: none is. */
static size_t place_behind(const struct option *rows, size_t count, const char *section,
                           const char *name) {
    while (count > 0 && (strcmp(rows[count - 1].section, section) != 0 ||
                         (name != NULL && strcmp(rows[count - 1].name, name) != 0)))
        count--;
    return count;
}

/* Rows of one section stand together. */
static void add_rows(struct option *to, const struct option *rows, unsigned owner) {
    for (size_t i = 0, count = rows_of(to); i < rows_of(rows); i++, count++) {
        size_t at = place_behind(to, count, rows[i].section, rows[i].after);
        if (at == 0) /* the option is of a part that is not built */
            at = place_behind(to, count, rows[i].section, NULL);
        at = at == 0 ? count : at;
        memmove(&to[at + 1], &to[at], (count - at) * sizeof *to);
        to[at] = rows[i];
        to[at].owner = owner;
    }
}

/* Each stands behind the section that it names. */
static void add_sections(struct option_section *to, const struct option_section *sections,
                         unsigned owner) {
    for (size_t i = 0, count = sections_of(to); i < sections_of(sections); i++, count++) {
        size_t at = 0;
        while (at < count &&
               (sections[i].after == NULL || strcmp(to[at].name, sections[i].after) != 0))
            at++;
        at += at < count;
        memmove(&to[at + 1], &to[at], (count - at) * sizeof *to);
        to[at] = sections[i];
        to[at].owner = owner;
    }
}

static void settings_make_table(void) {
    size_t rows = rows_of(options), sections = sections_of(option_sections);
    PARTS_FOR_EACH (part, settings) {
        rows += rows_of(part_table[part]->settings->options) +
                rows_of(part_table[part]->settings->core_options);
        sections += sections_of(part_table[part]->settings->sections);
    }
    struct option *all = xcalloc(rows + 1, sizeof *all);
    struct option_section *kinds = xcalloc(sections + 1, sizeof *kinds);
    add_rows(all, options, PART_CORE);
    add_sections(kinds, option_sections, PART_CORE);
    PARTS_FOR_EACH (part, settings) {
        add_rows(all, part_table[part]->settings->core_options, PART_CORE);
        add_rows(all, part_table[part]->settings->options, part);
        add_sections(kinds, part_table[part]->settings->sections, part);
    }
    whole_table.options = all;
    whole_table.sections = kinds;
}

const struct option_table *settings_table(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, settings_make_table);
    return &whole_table;
}

const void *settings_home(const struct settings *settings, const struct option *option) {
    return option->owner == PART_CORE ? settings : settings->parts[option->owner];
}

enum option_change option_change_of(const struct option *option) {
    bool number = option->type == OPTION_COUNT || option->type == OPTION_SIZE ||
                  option->type == OPTION_TIME || option->type == OPTION_FLOAT;
    if (option->change == OPTION_BY_FILE_AT_START)
        return OPTION_BY_FILE;
    if (option->change != OPTION_BY_TYPE)
        return option->change;
    return number ? OPTION_AT_RUN_TIME : OPTION_BY_FILE;
}

bool option_waits_for_start(const struct option *option) {
    return option->change == OPTION_AT_START || option->change == OPTION_BY_FILE_AT_START;
}

const char *option_change_name(const struct option *option) {
    switch (option_change_of(option)) {
    case OPTION_AT_RUN_TIME: return "now";
    case OPTION_AT_START: return "restart";
    default: return "file";
    }
}

static bool read_network(void *element, const char *text, char *error, size_t error_size) {
    char reason[NETWORK_REASON];
    if (network_read(element, slice_from(text), reason))
        return true;
    snprintf(error, error_size, "%s", reason);
    return false;
}

static bool read_port(void *element, const char *text, char *error, size_t error_size) {
    uint64_t port;
    if (slice_to_uint64(slice_from(text), &port) && port > 0 && port <= 65535) {
        *(uint16_t *)element = (uint16_t)port;
        return true;
    }
    snprintf(error, error_size, "is not a port: a number from 1 to 65535, or none");
    return false;
}

const struct option_elements option_networks = {"network", "all", sizeof(struct network),
                                                read_network};
const struct option_elements option_networks_or_nobody = {"network", "none", sizeof(struct network),
                                                          read_network};
const struct option_elements option_ports = {"port", "none", sizeof(uint16_t), read_port};

bool option_check_name_server(const char *text, char *error, size_t error_size) {
    struct address address;
    if (strcmp(text, "system") == 0 || address_parse_ip(&address, slice_from(text), 53) ||
        ((text[0] == '[' || (text[0] >= '0' && text[0] <= '9')) &&
         address_parse(&address, slice_from(text), 53)))
        return true;
    snprintf(error, error_size,
             "is not an IP address: write \"192.0.2.53\", \"2001:db8::53\" or \"[::1]:5353\"");
    return false;
}

bool option_check_domain(const char *text, char *error, size_t error_size) {
    enum { LONGEST = 200 };
    const char *bad = text + strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
    if (text[0] != '\0' && text[0] != '.' && *bad == '\0' && strlen(text) <= LONGEST)
        return true;
    snprintf(error, error_size,
             "is not a domain: write it in small letters, as in \"internal.example\"");
    return false;
}

bool option_check_network(const char *text, char *error, size_t error_size) {
    struct network network;
    char reason[NETWORK_REASON];
    if (strcmp(text, "none") == 0 || network_read(&network, slice_from(text), reason))
        return true;
    snprintf(error, error_size, "%s, or none", reason);
    return false;
}

bool option_check_coding(const char *text, char *error, size_t error_size) {
    enum { LONGEST = 32 };
    const char *bad = text + strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
    if (text[0] != '\0' && *bad == '\0' && strlen(text) <= LONGEST && strcmp(text, "identity") != 0)
        return true;
    snprintf(error, error_size,
             "is not a content coding: write it in small letters, as in \"gzip\"; identity is "
             "always allowed and can not be listed");
    return false;
}

bool option_check_pseudonym(const char *text, char *error, size_t error_size) {
    const char *bad = text + strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-._:");
    if (text[0] != '\0' && *bad == '\0' && strlen(text) <= 255)
        return true;
    snprintf(error, error_size, "is not a name: use letters, digits and - . _");
    return false;
}
