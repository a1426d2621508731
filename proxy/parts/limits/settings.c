/* Limits: limit sections, the section limits, and what one client may have of the connections. */
#include "limits/settings.h"

#include "base/assert.h"
#include "base/failure.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/options.h"
#include "settings/part_settings.h"

#include <stdlib.h>
#include <string.h>

bool limit_parse_rate(const char *text, unsigned *units, unsigned *seconds) {
    static const struct {
        const char *name;
        unsigned seconds;
    } times[] = {{"/s", 1}, {"/min", 60}, {"/h", 3600}};
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    if (number == 0 || number > 1000000)
        return false;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (strcmp(end, times[i].name) == 0) {
            *units = (unsigned)number;
            *seconds = times[i].seconds;
            return true;
        }
    return false;
}

static bool check_rate(const char *text, char *error, size_t error_size) {
    unsigned units, seconds;
    if (limit_parse_rate(text, &units, &seconds))
        return true;
    return failure(
        error, error_size,
        "is not a number of requests in a time: write \"10/s\", \"600/min\" or \"5000/h\", "
        "with a number from 1 to 1000000");
}

static const char *const limit_by_words[] = {"client", "user", "class", NULL};
static const char *const limit_answer_words[] = {"429", "503", "close", NULL};

#define LIMIT(member)  ONE("limit", struct limit_settings, member)
#define CLIENT(member) ONE("client", struct limits_settings, member)

static const struct option rows[] = {
    {CLIENT(max_connections_per_client), .name = "max_connections_per_client",
     .after = "max_connections", COUNT(0, 10e6), DEFAULT("0"),
     DOC "Limits the number of connections of one client at a time, for all workers together, so "
         "that no client can take all of max_connections. A connection above that is closed at "
         "once, and retort_client_share_rejected_total counts it. The value 0 means a quarter of "
         "max_connections.",
     .example = "200"},
    {CLIENT(max_half_open), .name = "max_half_open", .after = "max_connections_per_client",
     COUNT(0, 10e6), DEFAULT("0"),
     DOC "Limits the number of connections of one client on which it has not sent a byte yet, or "
         "whose TLS handshake is not complete. A connection above that is closed, and "
         "retort_client_half_open_rejected_total counts it. The value 0 means a quarter of "
         "max_connections_per_client.",
     .example = "20"},
    {CLIENT(ipv4_prefix), .name = "ipv4_prefix", .after = "max_half_open", COUNT(0, 32),
     DEFAULT("32"),
     DOC "Sets how many leading bits of an IPv4 address tell clients apart for "
         "max_connections_per_client and max_half_open.",
     .example = "24"},
    {CLIENT(ipv6_prefix), .name = "ipv6_prefix", .after = "ipv4_prefix", COUNT(0, 128),
     DEFAULT("64"),
     DOC "Sets how many leading bits of an IPv6 address tell clients apart for "
         "max_connections_per_client and max_half_open.",
     .example = "56"},
    {CLIENT(uncounted), .name = "uncounted", .after = "ipv6_prefix", ELEMENTS(option_networks),
     .count_at = offsetof(struct limits_settings, uncounted_count),
     .fallback_note = "this machine (127.0.0.0/8, ::1)",
     DOC "Lists the addresses and networks for which max_connections_per_client and max_half_open "
         "do not count: load balancers, and gateways behind which many clients share an address. "
         "The value all exempts everybody; name 0.0.0.0 alone to exempt nobody.",
     .example = "{ \"127.0.0.0/8\", \"::1\", \"10.0.0.5\" }"},

    {LIMIT(by), .name = "by", AT_RUN_TIME, WORD(limit_by_words), DEFAULT("client"),
     DOC "Sets who shares a limit. client: each address of a client, as ipv4_prefix and "
         "ipv6_prefix say, has the limit for itself. user: each user has it, on all addresses "
         "together; a request without a proven user counts for its client. class: all requests of "
         "the class share it.",
     .example = "user"},
    {LIMIT(ipv4_prefix), .name = "ipv4_prefix", COUNT(0, 32), DEFAULT("32"),
     DOC "Sets how many leading bits of an IPv4 address tell clients apart. With 24, all "
         "addresses that differ in their last number only are one client.",
     .example = "24"},
    {LIMIT(ipv6_prefix), .name = "ipv6_prefix", COUNT(0, 128), DEFAULT("64"),
     DOC "Sets how many leading bits of an IPv6 address tell clients apart. A single client "
         "usually has 2^64 addresses, so more bits than 64 rarely make sense.",
     .example = "56"},
    {LIMIT(requests), .name = "requests", STRING, .check = check_rate, AT_RUN_TIME,
     .fallback_note = "no limit",
     DOC "Limits how many requests may begin in a second (/s), minute (/min) or hour (/h). The "
         "answer to a request above that has a Retry-After field, which says in how many seconds "
         "the next one may begin. A request that is refused does not count.",
     .example = "\"10/s\""},
    {LIMIT(burst), .name = "burst", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Sets how many requests may begin at once after a pause. The value 0 means the number in "
         "requests.",
     .example = "50"},
    {LIMIT(concurrent), .name = "concurrent", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Limits how many requests may be under way at a time. A tunnel (CONNECT, WebSocket) is "
         "under way as long as it is open. The value 0 means no limit.",
     .example = "20"},
    {LIMIT(connections), .name = "connections", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Limits how many open client connections may have carried a request of the class. The "
         "request on one connection more is refused, and its connection is closed. A trusted proxy "
         "in front (listen.trusted_proxies) sends requests of many clients over one connection: "
         "with by = client or by = user, its connections are not counted. The value 0 means no "
         "limit.",
     .example = "50"},
    {LIMIT(bandwidth), .name = "bandwidth", SIZE_OF(0, 100 * GB), DEFAULT("0"),
     DOC "Limits the bytes a second that go to clients, with heads. Retort sends more slowly then; "
         "nothing is cut. Those who share the limit get equal parts. Tunnels count as well. The "
         "value 0 means no limit.",
     .example = "\"1MB\""},
    {LIMIT(upload_bandwidth), .name = "upload_bandwidth", SIZE_OF(0, 100 * GB), DEFAULT("0"),
     DOC "Limits the bytes a second of request bodies and of what tunnels carry from clients. "
         "Retort reads more slowly then. The value 0 means no limit.",
     .example = "\"500KB\""},
    {LIMIT(max_request), .name = "max_request", SIZE_OF(0, 1e15), DEFAULT("0"),
     DOC "Limits the size of a request's body. A larger one is answered with 413. The value 0 "
         "means no limit.",
     .example = "\"100MB\""},
    {LIMIT(max_response), .name = "max_response", SIZE_OF(0, 1e15), DEFAULT("0"),
     DOC "Limits the size of a response's body. If its length is known beforehand, a larger one is "
         "answered with 403. If not, Retort breaks the response off, so that the client can not "
         "take it for whole; the framing of HTTP/1.1 counts then. A client can still fetch a large "
         "file in ranges. The value 0 means no limit.",
     .example = "\"2GB\""},
    {LIMIT(status), .name = "status", AT_RUN_TIME, WORD(limit_answer_words), DEFAULT("429"),
     DOC
     "Sets the answer to a request above the limits of requests, concurrent and connections. "
     "429 and 503 are pages with a Retry-After field; close breaks the connection off without "
     "an answer, unless it is the connection of one of listen.trusted_proxies: requests of others "
     "come on it too, so the answer is 429.",
     .example = "503"},

    {ONE("limits", struct limits_settings, entries), .name = "entries", COUNT(1000, 100e6),
     DEFAULT("100000"),
     DOC "Limits how many clients, users and classes are counted at a time, for all sections and "
         "workers together. An entry takes about 200 bytes while it is in use. When the table is "
         "full, an entry that holds nothing back makes room; if there is none, requests of "
         "clients without an entry are answered with 503, which retort_limit_table_full_total "
         "counts. Room for client.max_connections comes on top.",
     .example = "1000000"},
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "limit",
        .after = "pac", /* and so behind the sections of users, where they are built */
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Limits what clients may use of the proxy for requests of a URL class. All sections "
            "that match a request apply; the section may occur several times. A request above a "
            "limit is answered as status says, and retort_limit_refused_total counts it for each "
            "section and reason. \"retortctl limits\" shows who has used how much. What has been "
            "used stays counted over a reload, as long as the section stays.",
        .example = "limit all { requests = \"20/s\"  burst = 100  concurrent = 50 }\n"
                   "limit downloads { by = user  bandwidth = \"2MB\" }\n"
                   "limit all { by = class  bandwidth = \"50MB\" }",
    },
    {
        .name = "limits",
        .after = "limit",
        .documentation = "Configures how limit sections count.",
        .example = "limits { entries = 1000000 }",
    },
    {.name = NULL},
};

/* The same section has the same name after a reload, and no other section has it. */
static char *limit_name(const struct limits_settings *mine, const struct limit_settings *limit) {
    static const char *const ways[] = {"by client", "by user", "by class"};
    char name[200];
    unsigned before = 0;
    for (const struct limit_settings *other = mine->list; other < limit; other++)
        before += other->url_class == limit->url_class && other->by == limit->by;
    int length =
        snprintf(name, sizeof name, "%s %s", url_class_name(limit->url_class), ways[limit->by]);
    if (before > 0)
        snprintf(name + length, sizeof name - (size_t)length, " (%u)", before + 1);
    return xstrdup(name);
}

static void limit_set_demand(struct limit_settings *limit) {
    unsigned units, seconds;
    limit->demand.most_active = limit->concurrent;
    if (limit->requests != NULL && limit_parse_rate(limit->requests, &units, &seconds)) {
        if (limit->burst == 0)
            limit->burst = units;
        limit->demand.rate = bucket_rate_of(units, seconds, limit->burst);
    }
    limit->counts = limit->requests != NULL || limit->concurrent > 0 || limit->connections > 0 ||
                    limit->bandwidth > 0 || limit->upload_bandwidth > 0;
}

static bool check_limit(struct load *load, const struct document_section *section,
                        const struct limit_settings *limit) {
    if ((url_class_asks(limit->url_class) & CLASS_ASKS_TYPE) != 0)
        return load_fail(load, section->line,
                         "limit: class \"%s\" has a content_type, but a request is counted before "
                         "there is a response: use a class without it",
                         section->title);
    if (!limit->counts && limit->max_request == 0 && limit->max_response == 0)
        return load_fail(load, section->line,
                         "limit \"%s\" limits nothing; write, for example: requests = \"10/s\"",
                         section->title);
    if (limit->burst > 0 && limit->requests == NULL)
        return load_fail(load, load_line_of(section, "burst"),
                         "burst: the section limits no rate of requests; add: requests = \"10/s\"");
    return true;
}

static bool any_trusted_proxy(const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].trusted_proxy_count > 0)
            return true;
    return false;
}

static void limit_tell(const struct load *load, const struct document_section *section,
                       const struct limit_settings *limit) {
    if (limit->connections > 0 && limit->by != LIMIT_BY_CLASS && any_trusted_proxy(load->settings))
        load_tell(load, load_line_of(section, "connections"),
                  "limit %s: connections of trusted proxies (listen.trusted_proxies) are not "
                  "counted for clients or users; concurrent counts their requests",
                  section->title);
}

static bool apply_limit(struct load *load, const struct document_section *section,
                        const struct limits_settings *mine, struct limit_settings *limit) {
    if (!load_section_class(load, section, &limit->url_class) ||
        !load_values(load, section, "limit", limit))
        return false;
    limit_set_demand(limit);
    limit->name = limit_name(mine, limit);
    limit_tell(load, section, limit);
    return check_limit(load, section, limit);
}

/* One client has a quarter of all connections, and a quarter of these may be half-open. */
static bool check_client_shares(struct load *load, const struct document_section *section,
                                struct limits_settings *mine) {
    unsigned all = load->settings->client.max_connections;
    unsigned *most = &mine->max_connections_per_client;
    unsigned *half_open = &mine->max_half_open;
    if (*most > all)
        return load_fail(load, load_line_of(section, "max_connections_per_client"),
                         "max_connections_per_client: %u is more than max_connections, which all "
                         "clients share: %u",
                         *most, all);
    if (*most == 0)
        *most = (all + 3) / 4;
    if (*half_open == 0)
        *half_open = (*most + 3) / 4;
    return true;
}

/* Connections of this machine are not bounded one by one, unless the file says otherwise. */
static void uncount_loopback(struct limits_settings *mine) {
    static const char *const loopback[] = {"127.0.0.0/8", "::1"};
    enum { COUNT = sizeof loopback / sizeof loopback[0] };
    mine->uncounted = xcalloc(COUNT, sizeof *mine->uncounted);
    mine->uncounted_count = COUNT;
    for (size_t i = 0; i < COUNT; i++)
        ASSERT(network_parse(&mine->uncounted[i], slice_from(loopback[i])));
}

static bool load_connections(struct load *load, struct limits_settings *mine) {
    const struct document_section *section = document_section(load->document, "client", NULL);
    if (!load_values(load, section, "client", mine) || !check_client_shares(load, section, mine))
        return false;
    if (section == NULL || document_value(section, "uncounted") == NULL)
        uncount_loopback(mine);
    return true;
}

static bool limits_load_rules(struct load *load, void *to) {
    struct limits_settings *mine = to;
    size_t i = 0;
    if (!load_connections(load, mine) ||
        !load_values(load, document_section(load->document, "limits", NULL), "limits", mine))
        return false;
    mine->count = document_section_count(load->document, "limit");
    mine->list = xcalloc(mine->count + 1, sizeof *mine->list);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "limit")
        if (!apply_limit(load, section, mine, &mine->list[i++]))
            return false;
    return true;
}

static void limits_release(void *from) {
    struct limits_settings *mine = from;
    for (size_t i = 0; i < mine->count; i++) {
        load_release_values("limit", &mine->list[i]);
        free(mine->list[i].name);
    }
    free(mine->list);
}

static const struct section_place places[] = {
    {
        .section = "limit",
        SECTION_LIST(struct limits_settings, list, count, struct limit_settings),
        SECTION_RULE(RULE_LIMIT, struct limit_settings),
    },
    {.section = NULL},
};

const struct part_settings limits_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct limits_settings),
    .load_rules = limits_load_rules,
    .release = limits_release,
};
