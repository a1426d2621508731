/* The sections intercept, interception and authority. */
#include "intercept/settings.h"

#include "base/assert.h"
#include "http/url.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "tls/authority.h"

static const char *const intercept_action_words[] = {"splice", "bump", "block", NULL};
static const char *const not_tls_words[] = {"tunnel", "refuse", NULL};

static const struct option rows[] = {
    {.section = "intercept",
     .at = offsetof(struct intercept_settings, action),
     .name = "action",
     WORD(intercept_action_words),
     .required = true,
     DOC "Sets what happens to the connection. splice: Retort relays the bytes as they are and "
         "sees only the name and the address of the server. bump: Retort opens the connection "
         "with a certificate that the authority section signs, so that the cache and the services "
         "see the requests inside. block: Retort opens the connection only to show a page that "
         "says why; the server is not contacted.",
     .example = "bump"},

    {ONE("interception", struct interception_settings, not_tls), .name = "not_tls",
     WORD(not_tls_words), DEFAULT("tunnel"),
     DOC "Sets what happens to a connection that is to be bumped but can not be: it does not begin "
         "with a TLS ClientHello, sends nothing for hello_timeout, offers other protocols than "
         "HTTP in its ClientHello (ALPN), or comes by way of a listener with certificates (an "
         "HTTPS proxy). tunnel: Retort relays its bytes. refuse: Retort closes it. "
         "retort_intercept_not_tls_total counts these connections. A client that waits before it "
         "begins with TLS is not inspected with tunnel; choose refuse if clients must not escape "
         "from interception on purpose.",
     .example = "refuse"},
    {ONE("interception", struct interception_settings, hello_timeout), .name = "hello_timeout",
     TIMEOUT, DEFAULT("5s"),
     DOC "Sets how long the ClientHello of a connection may take to arrive. After this time a "
         "connection that has begun with TLS is refused, unless its rule says splice, and another "
         "one counts as one without TLS (see not_tls). "
         "retort_intercept_unfinished_total counts those that are refused.",
     .example = "\"2s\""},
    {ONE("interception", struct interception_settings, hello_size), .name = "hello_size",
     SIZE_OF(1 * KB, 64 * KB), DEFAULT("32KB"),
     DOC "Limits the size of a ClientHello. A connection with a larger one is refused, unless its "
         "rule says splice.",
     .example = "\"16KB\""},
    {ONE("interception", struct interception_settings, mirror_errors), .name = "mirror_errors",
     AT_RUN_TIME, BOOL, DEFAULT("false"),
     DOC "Shows clients that the server's certificate could not be verified. Without this option, "
         "the client gets a page with the reason under a certificate that it trusts. With this "
         "option, the certificate is one that browsers refuse too, so that the user sees the "
         "browser's own warning before the page.",
     .example = "true"},
    {ONE("interception", struct interception_settings, show_denied), .name = "show_denied",
     AT_RUN_TIME, BOOL, DEFAULT("true"),
     DOC
     "Shows the page of an access section that denies or redirects a CONNECT inside of the TLS "
     "connection, so that browsers display it. Retort then tells the client that the connection "
     "is there, and opens it with a certificate as for block; the server is not contacted. This "
     "is only done where an intercept section says bump or block; elsewhere, and with false, "
     "the answer is the page in clear text, in place of which browsers show an error of their "
     "own. Requests for credentials and refusals by listen.allow, connect_ports and limit "
     "sections are always in clear text. retort_intercept_blocked_total counts the "
     "connections.",
     .example = "false"},
    {ONE("interception", struct interception_settings, refusals), .name = "refusals", BY_FILE,
     COUNT(0, 1000), DEFAULT("3"),
     DOC "Sets how often a client may refuse the certificate for a server before Retort splices "
         "the connections of this client to this server. Apps with pinned certificates do that. "
         "A connection that the client opens under the certificate "
         "ends the count. The state holds for refusal_time. \"retortctl intercept\" lists and "
         "clears it. The value "
         "0 means that refusals change nothing; choose it if clients must not escape from "
         "interception by refusing certificates on purpose. "
         "retort_intercept_refusals_total counts refusals.",
     .example = "0"},
    {ONE("interception", struct interception_settings, refusal_time), .name = "refusal_time",
     BY_FILE, TIME_OF(SECOND, 30 * DAY), DEFAULT("1d"),
     DOC "Sets how long Retort splices the connections of a client to a server whose certificate "
         "the client has refused, and the connections to a server that asks for client "
         "certificates. It is also the time within which refusals add up.",
     .example = "\"1h\""},
    {ONE("interception", struct interception_settings, refusal_entries), .name = "refusal_entries",
     COUNT(1, 1e6), DEFAULT("10000"),
     DOC
     "Limits the number of pairs of a client and a server whose refusals are remembered, and, "
     "apart from that, the number of servers that ask for client certificates. One client "
     "(one IPv4 address, or one IPv6 network of 64 bits) gets at most one sixteenth. The oldest "
     "entries make room for new ones; retort_intercept_refusals_evicted_total counts these.",
     .example = "1000"},
    {ONE("interception", struct interception_settings, client_certificates),
     .name = "splice_client_certificates", BOOL, DEFAULT("true"),
     DOC "Splices connections to servers that ask for a client certificate, because only the "
         "client has its key. Retort remembers such a server for refusal_time.",
     .example = "false"},
    {ONE("interception", struct interception_settings, remove_alt_svc), .name = "remove_alt_svc",
     BOOL, DEFAULT("true"),
     DOC "Removes the field Alt-Svc from the responses to clients of forward and transparent "
         "listeners, as long as there are intercept sections. The field tells browsers to use "
         "HTTP/3, which passes the proxy by.",
     .example = "false"},
    {ONE("interception", struct interception_settings, ca_page), .name = "ca_page", AT_RUN_TIME,
     BOOL, DEFAULT("false"),
     DOC
     "Offers the certificate of the authority section to clients, with the steps to install it, "
     "at http://retort.internal/ca. The proxy answers this host itself, for everybody who may "
     "use it. Clients of a transparent listener need a name server that resolves "
     "retort.internal to some address behind the proxy.",
     .example = "true"},
    {ONE("interception", struct interception_settings, leaf_cache), .name = "leaf_cache",
     COUNT(1, 1e6), DEFAULT("4096"),
     DOC "Limits the number of certificates for intercepted connections that are kept in memory, "
         "about 3 KB each. A certificate that is not there is made anew. "
         "retort_intercept_leaves_evicted_total counts those that made room for others.",
     .example = "20000"},
    {ONE("interception", struct interception_settings, identity_time), .name = "identity_time",
     TIME_OF(0, HOUR), DEFAULT("1h"),
     DOC "Sets how long Retort remembers that a server's certificate was verified. During this "
         "time the connection of a client is opened without contacting the server first, so that "
         "answers from the cache need no connection to the server at all. Each connection that "
         "Retort makes to the server verifies the certificate again.",
     .example = "\"10m\""},
    {ONE("interception", struct interception_settings, failure_time), .name = "failure_time",
     TIME_OF(0, HOUR), DEFAULT("10s"),
     DOC "Sets how long Retort remembers that a server's certificate could not be verified. During "
         "this time clients get the error page without a new attempt.",
     .example = "\"0s\""},
    {ONE("interception", struct interception_settings, identity_entries),
     .name = "identity_entries", COUNT(1, 10e6), DEFAULT("10000"),
     DOC "Limits the number of servers whose verification is remembered. "
         "retort_intercept_identities_evicted_total counts those that made room for others.",
     .example = "1000"},

    {ONE("authority", struct interception_settings, authority_certificate), .name = "certificate",
     STRING, .fallback_note = "none",
     DOC "Sets the file in PEM with the CA's certificate. It may be an intermediate CA; then the "
         "certificates of its issuers follow in the same file.",
     .example = "\"/etc/retort/ca.pem\""},
    {ONE("authority", struct interception_settings, authority_key), .name = "key", STRING,
     .fallback_note = "none",
     DOC "Sets the file in PEM with the CA's private key. Retort refuses a file that every user of "
         "the machine can open. The key must not have a password. A key on the curve P-256 is "
         "best: Retort makes a certificate with it in about 65 microseconds, and with an RSA key "
         "of 2048 bits in about 420.",
     .example = "\"/etc/retort/ca.key\""},
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "intercept",
        .after = "rewrite",
        .title = "CLASS",
        .documentation =
            "Sets what happens to the TLS connections of a URL class that clients open with "
            "CONNECT "
            "on forward listeners, or at transparent listeners. When several sections match, the "
            "first one in the file applies. A connection that none matches is spliced, and so is "
            "one "
            "that a parent section sends to another proxy. A class is "
            "compared with the URL https://NAME/, where NAME is what the client asks for in its "
            "ClientHello (SNI), or else the host that it connects to. When both are names and "
            "differ, the more restrictive action of the two applies: block, then bump, then "
            "splice. Without intercept sections, CONNECT opens tunnels and nothing is looked "
            "at.",
        .example = "url_class banks { domain = { \"bank.example\", \"health.example\" } }\n"
                   "intercept banks { action = splice }\n"
                   "intercept all { action = bump }",
    },
    {
        .name = "authority",
        .after = "pac",
        .documentation =
            "Names the certificate authority (CA) that signs the certificates which clients of "
            "intercepted connections get. \"retortctl ca create\" makes it, and \"retortctl ca "
            "export\" says how clients install it. Whoever has its key can impersonate every "
            "server to these clients. A reload applies a change.",
        .example = "authority {\n"
                   "    certificate = \"/etc/retort/ca.pem\"\n"
                   "    key = \"/etc/retort/ca.key\"\n"
                   "}",
    },
    {
        .name = "interception",
        .after = "authentication",
        .documentation = "Configures how TLS connections are intercepted (see intercept).",
        .example = "interception { not_tls = refuse  refusals = 0 }",
    },
    {.name = NULL},
};

/* An action that shows the client a certificate of ours needs somebody to sign it. */
static bool check_need_of_authority(struct load *load, const struct interception_settings *mine) {
    size_t i = 0;
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "intercept")
        if (mine->list[i++].action != INTERCEPT_SPLICE)
            return load_fail(load, load_line_of(section, "action"),
                             "intercept: to bump or to block needs a certificate authority; run "
                             "\"retortctl ca create\" and write the authority section that it "
                             "prints");
    return true;
}

static bool load_authority(struct load *load, struct interception_settings *mine) {
    const struct document_section *section = document_section(load->document, "authority", NULL);
    char error[PEM_FILE_ERROR];
    if (!load_values(load, section, "authority", mine))
        return false;
    if (mine->authority_certificate == NULL && mine->authority_key == NULL)
        return check_need_of_authority(load, mine);
    if (mine->authority_certificate == NULL || mine->authority_key == NULL)
        return load_fail(load, section->line,
                         "authority: certificate and key belong together; write both paths");
    if (load->without_files)
        return true;
    mine->authority = authority_load(mine->authority_certificate, mine->authority_key, error);
    return mine->authority != NULL || load_fail(load, section->line, "authority: %s", error);
}

static bool load_intercept(struct load *load, const struct document_section *section,
                           struct intercept_settings *intercept) {
    if (!load_section_class(load, section, &intercept->url_class))
        return false;
    const char *unknown = url_class_unknown_of_connection(intercept->url_class);
    if (unknown != NULL)
        return load_fail(
            load, section->line,
            "intercept: class %s has a %s, which is not known of a connection; use "
            "host, domain, sni, port, url_regex, client, user, group, listener, certificate or "
            "time",
            section->title, unknown);
    return load_values(load, section, "intercept", intercept);
}

static bool intercept_load_rules(struct load *load, void *to) {
    struct interception_settings *mine = to;
    size_t count = document_section_count(load->document, "intercept");
    if (!load_values(load, document_section(load->document, "interception", NULL), "interception",
                     mine))
        return false;
    mine->list = xcalloc(count + 1, sizeof *mine->list);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "intercept")
        if (!load_intercept(load, section, &mine->list[mine->count++]))
            return false;
    mine->rules = rules_new();
    for (size_t i = 0; i < count; i++)
        rules_add(mine->rules, mine->list[i].url_class);
    rules_seal(mine->rules);
    load->settings->asks_of_parts |= rules_ask(mine->rules);
    load->settings->removes_alt_svc = count > 0 && mine->remove_alt_svc;
    return load_authority(load, mine);
}

static void intercept_release(void *from) {
    struct interception_settings *mine = from;
    rules_free(&mine->rules);
    free(mine->list);
    authority_release(&mine->authority);
}

static const struct section_place places[] = {
    {
        .section = "intercept",
        SECTION_LIST(struct interception_settings, list, count, struct intercept_settings),
        SECTION_RULE(RULE_KINDS, struct intercept_settings),
    },
    {.section = NULL},
};

const struct part_settings intercept_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct interception_settings),
    .load_rules = intercept_load_rules,
    .release = intercept_release,
};

static struct slice url_of_host(const struct intercept_subject *subject, struct slice host,
                                struct arena *arena) {
    bool v6 = memchr(host.base, ':', host.length) != NULL;
    return subject->port == url_schemes[URL_HTTPS].port
               ? arena_printf(arena, "https://%s%.*s%s/", v6 ? "[" : "", SLICE_PRINT(host),
                              v6 ? "]" : "")
               : arena_printf(arena, "https://%s%.*s%s:%u/", v6 ? "[" : "", SLICE_PRINT(host),
                              v6 ? "]" : "", subject->port);
}

static enum intercept_action action_for(const struct interception_settings *settings,
                                        const struct intercept_subject *subject, struct slice host,
                                        struct arena *arena) {
    struct class_subject class_subject = *subject->connection;
    class_subject.method = SLICE("CONNECT");
    class_subject.host = host;
    class_subject.url = url_of_host(subject, host, arena);
    class_subject.path = SLICE("/");
    class_subject.port = subject->port;
    class_subject.sni = subject->name;
    const uint64_t *bits = rules_find(settings->rules, &class_subject, arena);
    size_t rule = rules_next(bits, 0, settings->count);
    return rule < settings->count ? settings->list[rule].action : INTERCEPT_SPLICE;
}

enum intercept_action intercept_rules_decide(const struct interception_settings *settings,
                                             const struct intercept_subject *subject,
                                             struct arena *arena) {
    if (subject->name.length == 0)
        return action_for(settings, subject, subject->host, arena);
    enum intercept_action action = action_for(settings, subject, subject->name, arena);
    if (subject->host_is_address || slice_equal(subject->name, subject->host))
        return action;
    enum intercept_action other = action_for(settings, subject, subject->host, arena);
    return other > action ? other : action;
}
