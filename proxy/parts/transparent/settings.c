/* The section transparent. */
#include "transparent/settings.h"

#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

static const char *const silent_words[] = {"close", "tunnel", NULL};
static const char *const other_words[] = {"refuse", "tunnel", NULL};
static const char *const mismatch_words[] = {"pass", "refuse", NULL};

static const struct option rows[] = {
    {ONE("transparent", struct transparent_settings, tproxy), .name = "tproxy", BOOL,
     DEFAULT("false"),
     DOC "Lets transparent listeners take connections by the TPROXY target of the firewall, which "
         "leaves the packets as they are. Connections by REDIRECT are taken in either case. "
         "Retort then needs CAP_NET_ADMIN; a start without it is refused.",
     .example = "true"},
    {ONE("transparent", struct transparent_settings, spoof_client), .name = "spoof_client", BOOL,
     DEFAULT("false"),
     DOC "Makes connections to servers come from the client's address, where the client's "
         "connection came to a transparent listener by TPROXY. For connections that came by "
         "REDIRECT it has no effect. The answers of servers must pass this machine, and the "
         "firewall must hand them to Retort, as it must with tproxy, which this option requires. "
         "Idle connections to servers are then used again only for the same client.",
     .example = "true"},
    {ONE("transparent", struct transparent_settings, mark), .name = "mark", BY_FILE,
     COUNT(0, 4294967295.0), DEFAULT("0"),
     DOC "Sets the mark of all connections that Retort opens (SO_MARK), so that rules of the "
         "firewall can leave them alone. This is needed where the rules also redirect "
         "connections of the machine itself, since Retort's own connections would come back to "
         "it. Retort then needs CAP_NET_ADMIN. The value 0 sets no mark.",
     .example = "3130"},
    {ONE("transparent", struct transparent_settings, silent_after), .name = "silent_after", TIMEOUT,
     DEFAULT("10s"),
     DOC "Sets how long the client of a redirected connection may send nothing. Then the option "
         "silent decides.",
     .example = "\"3s\""},
    {ONE("transparent", struct transparent_settings, silent), .name = "silent", WORD(silent_words),
     DEFAULT("close"),
     DOC "Sets what happens when a client has sent nothing for silent_after. close: the "
         "connection is closed; browsers open some connections that they never use. tunnel: "
         "Retort connects to the server and passes on the bytes of both sides unseen, for "
         "protocols in which the server speaks first. A client can then avoid every check of "
         "requests by waiting.",
     .example = "tunnel"},
    {ONE("transparent", struct transparent_settings, other), .name = "other", WORD(other_words),
     DEFAULT("refuse"),
     DOC "Sets what happens when the first bytes of a client are neither a request of HTTP nor a "
         "TLS handshake. refuse: the client gets an error of HTTP. tunnel: Retort connects to the "
         "server and passes on the bytes of both sides unseen.",
     .example = "tunnel"},
    {ONE("transparent", struct transparent_settings, mismatch), .name = "mismatch",
     WORD(mismatch_words), DEFAULT("pass"),
     DOC "Sets what happens to a request of clear-text HTTP whose host, by DNS, does not have the "
         "address that the client has connected to. pass: the request goes to that address, and "
         "its response is neither stored nor taken from the cache, so that a client can not put "
         "a page of its own under the name of another server. Rules for the host still match by "
         "the name in the request. refuse: the client gets status 421. In both cases "
         "retort_transparent_mismatches_total counts it. Let Retort and the clients ask the same "
         "DNS server, since large sites give each asker another address.",
     .example = "refuse"},
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "transparent",
        .after = "listen",
        .documentation =
            "Sets how listeners with mode = transparent work. The kernel sends them connections "
            "that clients have opened to servers on the Internet. docs/TRANSPARENT.md and "
            "examples/transparent/ show the rules of the firewall that are needed.",
        .example = "listen \":3130\" { mode = transparent }\n"
                   "transparent { tproxy = true  spoof_client = true }",
    },
    {.name = NULL},
};

static bool transparent_load(struct load *load, void *to) {
    struct transparent_settings *mine = to;
    const struct document_section *section = document_section(load->document, "transparent", NULL);
    if (!load_values(load, section, "transparent", mine))
        return false;
    if (mine->spoof_client && !mine->tproxy)
        return load_fail(load, load_line_of(section, "spoof_client"),
                         "transparent: spoof_client needs tproxy = true: the firewall must hand "
                         "the answers of servers to Retort by the same rules");
    load->settings->sockets.foreign = mine->tproxy;
    load->settings->sockets.spoof_client = mine->spoof_client;
    load->settings->sockets.mark = mine->mark;
    return true;
}

const struct part_settings transparent_part_settings = {
    .options = rows,
    .sections = sections,
    .size = sizeof(struct transparent_settings),
    .load = transparent_load,
};
