/* Services at ICAP servers: icap_service sections. */
#include "icap/settings.h"

#include "base/assert.h"
#include "http/credentials.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "tls/trust_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct option_section sections[] = {
    {
        .name = "icap_service",
        .after = "icap_log",
        .title = "NAME",
        .documentation =
            "Defines a service of an ICAP server (RFC 3507). NAME identifies it in adapt "
            "sections, log lines and metrics. It consists of letters, digits, '.', '_' and '-'.",
        .example = "icap_service gray {\n"
                   "    uri = \"icap://127.0.0.1:1344/gray\"\n"
                   "    point = respmod_precache\n"
                   "    bypass = true\n"
                   "    timeout = \"5s\"\n"
                   "}",
    },
    {.name = NULL},
};

static bool icap_check_info(const char *text, char *error, size_t error_size) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (text[0] != '\0' && strlen(text) <= 64 && text[strspn(text, allowed)] == '\0')
        return true;
    snprintf(error, error_size,
             "is no name of an info service: write letters, digits and . _ - , such as info");
    return false;
}

#define SERVICE(member) ONE("icap_service", struct service_settings, member)

static const struct option rows[] = {
    {SERVICE(uri_texts), .name = "uri", STRINGS, .required = true,
     DOC "Sets the address of the service: icap://HOST[:PORT]/SERVICE, or icaps:// for TLS. The "
         "port of icap is 1344 when none is given. Several addresses are endpoints of one "
         "service: each transaction goes to the endpoint with the fewest transactions in "
         "progress, and once more to another one if the first fails before its verdict.",
     .example = "{ \"icap://10.0.0.1/gray\", \"icap://10.0.0.2/gray\" }"},
    {SERVICE(point), .name = "point", AT_RUN_TIME, WORD(option_adapt_points), .required = true,
     DOC "Sets when the service is asked (RFC 3507, 6.1). reqmod_precache: about each request, "
         "before the cache is searched. reqmod_postcache: about a request that goes to the "
         "origin, after the cache had no answer; the response is still stored under the request "
         "of the client. respmod_precache: about the origin's response before it is stored, so "
         "that one adaptation serves all later hits. respmod_postcache: about each response to a "
         "client, stored or not; the stored response does not change, and every client gets an "
         "adaptation of its own.",
     .example = "respmod_precache"},
#include "adapt/options_services_both.def"

    {SERVICE(ignore_istag), .name = "ignore_istag", AT_RUN_TIME, BOOL, DEFAULT("false"),
     DOC "Ignores the ISTags of the service. Its results then stay valid until \"retortctl "
         "services bump\", or until the response is removed. Use it for servers that send no "
         "ISTag, and for servers that send a new one with each answer, as pyicap does: otherwise "
         "each answer would make all earlier results outdated, and a response stored by "
         "respmod_precache would never be used.",
     .example = "true"},
    {SERVICE(connect_timeout), .name = "connect_timeout", TIMEOUT, DEFAULT("3s"),
     DOC "Sets how long a connection to the ICAP server may take. It also sets how long the "
         "server's host may leave sent packets unacknowledged: after this time the host counts "
         "as lost, and so do all services on it (retort_icap_service_error_lost_total). A "
         "service that thinks for longer is not affected, because its host still acknowledges. "
         "With 500ms or less, a cut link costs no client more than a second: a host that is "
         "silent while messages wait is asked for a sign of life about once a second "
         "(retort_icap_host_checks_total).",
     .example = "\"500ms\""},
    {SERVICE(idle_timeout), .name = "idle_timeout", TIME_OF(0, TIMEOUT_MAX), DEFAULT("60s"),
     DOC "Sets how long an unused connection to the ICAP server is kept.", .example = "\"20s\""},
    {SERVICE(max_connections), .name = "max_connections", COUNT(1, 1e6), DEFAULT("64"),
     DOC "Limits the number of connections to the service, for all its endpoints and all workers "
         "together, idle connections included. The Max-Connections that an endpoint states is "
         "observed as well, for all workers together. Transactions wait when all connections are "
         "busy. When the server states no limit and this option is not set, the log warns about "
         "it, because connections for which the server has no thread only wait there.",
     .example = "16"},
    {SERVICE(queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "Limits the number of transactions of one worker that wait for a connection to the "
         "service. For further transactions the service counts as failed at once "
         "(retort_icap_service_error_queue_total).",
     .example = "100"},
    {SERVICE(queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("10s"),
     DOC "Sets how long a transaction may wait for a connection to the service. After this time "
         "the service counts as failed for it (retort_icap_service_error_queue_total).",
     .example = "\"1s\""},
    {SERVICE(failures_down), .name = "failures_down", COUNT(1, 1e6), DEFAULT("10"),
     DOC "Sets how many transactions in a row, of all workers, must fail before an endpoint of "
         "the service counts as down. An endpoint that refuses connections, or whose host stays "
         "silent for connect_timeout, is down at once.",
     .example = "3"},
    {SERVICE(down_min), .name = "down_min", TIMEOUT, DEFAULT("1s"),
     DOC "Sets how long Retort waits before it asks a failed service for its OPTIONS again. Each "
         "further failure doubles the time, up to down_max. An endpoint that can not be reached "
         "is also tried twice a second, which costs a packet or two, so that its return is "
         "noticed soon.",
     .example = "\"2s\""},
    {SERVICE(down_max), .name = "down_max", TIMEOUT, DEFAULT("30s"),
     DOC "Limits the time between two OPTIONS requests to a service that is down.",
     .example = "\"5m\""},
    {SERVICE(routing), .name = "routing", BOOL, DEFAULT("false"),
     DOC "Lets the service choose the services after it. It names icap_service sections of the "
         "same point in the X-Next-Services field of its answer; they replace the rest of the "
         "chain from the adapt sections. An empty list ends the chain.",
     .example = "true"},
    {SERVICE(credentials), .name = "credentials", STRING, .secret = OPTION_SECRET,
     .check = http_credentials_check, .fallback_note = "none",
     DOC "Sets \"USER:PASSWORD\" for an ICAP server that demands authentication. Retort sends it "
         "as Proxy-Authorization, scheme Basic (RFC 3507, 7.1). The connection is encrypted only "
         "with icaps://. The admin plane does not show the value.",
     .example = "\"proxy:secret\""},
    {SERVICE(trust.verify), .name = "verify", BOOL, DEFAULT("true"),
     DOC "Verifies the certificate of a server whose uri begins with icaps://: it must be "
         "trusted, valid now, and issued for the host in the uri. With false, anybody on the "
         "path can read and change all that is sent.",
     .example = "false"},
    {SERVICE(trust.ca_file), .name = "ca_file", STRING,
     .fallback_note = "the certificates that the system trusts",
     DOC "Sets a file of trusted certificates in PEM for icaps:// servers: the authorities that "
         "issue their certificates, or a server's own self-signed certificate. The file is read "
         "at the start and at each reload.",
     .example = "\"/etc/retort/icap-ca.pem\""},
    {SERVICE(trust.crl_file), .name = "crl_file", STRING, .fallback_note = "none",
     DOC "Sets a file of certificate revocation lists in PEM for icaps:// servers. It must contain "
         "the list of the authority that issued the server's certificate; a certificate on it is "
         "refused. The file is read at the start and at each reload.",
     .example = "\"/etc/retort/icap.crl\""},
    {SERVICE(trust.certificate), .name = "certificate", STRING, .fallback_note = "none",
     DOC "Sets a file in PEM with the certificate that the proxy shows to an icaps:// server "
         "that demands one. The certificates of its issuers follow in the same file. "
         "certificate_key must be set as well.",
     .example = "\"/etc/retort/proxy.pem\""},
    {SERVICE(trust.certificate_key), .name = "certificate_key", STRING, .fallback_note = "none",
     DOC "Sets a file in PEM with the key of certificate. The key must not have a password.",
     .example = "\"/etc/retort/proxy.key\""},
    {SERVICE(proxy_credentials), .name = "proxy_credentials", BOOL, DEFAULT("false"),
     DOC "Shows the service the Proxy-Authorization of requests and the Proxy-Authenticate of "
         "responses, as fields of the ICAP request (RFC 3507, 4.4.2). They contain the passwords "
         "of clients, so use it only for a service that checks them. It can not be combined with "
         "credentials.",
     .example = "true"},
    {SERVICE(info), .name = "info", STRING, .check = icap_check_info, .fallback_note = "not asked",
     DOC
     "Sets the name of c-icap's info service, which every c-icap has under the name info. Then "
     "/metrics shows what the server of each endpoint counts itself: requests, failures, bytes, "
     "processes, free and used threads. Each server is asked once in three seconds, however "
     "many services have it, over a connection that is closed again. Leave it out for servers "
     "that are not c-icap, and where its access rules keep this proxy from the info service: "
     "retort_icap_server_failures_total counts what is no answer.",
     .example = "info"},
    {SERVICE(include), .name = "include", STRINGS, DEFAULT("X-Client-IP"),
     DOC "Lists fields about the client and the server that the service gets even if the "
         "X-Include of its OPTIONS does not ask for them: X-Client-IP, X-Client-Port, "
         "X-Server-IP, X-Client-Username (the name of the user; where there is no authenticator "
         "section, the name in the Proxy-Authorization, which nobody has verified), "
         "X-Authenticated-User and X-Authenticated-Groups (base64 of Local://NAME, only of users "
         "who have proved who they are), X-Access-Rule (the class of the access section that "
         "let the request through), and about TLS: X-TLS-SNI, X-TLS-Version, "
         "X-TLS-Cipher, X-TLS-Issuer, X-TLS-Verification, and X-TLS-Client-Subject, "
         "X-TLS-Client-Issuer and X-TLS-Client-Serial of the certificate that the client "
         "showed. A field is left out where its value is "
         "not known. The value none sends only the fields that the service asks for. A "
         "remembered verdict (verdict_space) is used only for clients for which these fields are "
         "the same.",
     .example = "{ X-Client-IP, X-Client-Port }"},
    {.name = NULL},
};

static bool parse_icap_uri(struct load *load, int line, const char *text, struct url *url) {
    bool parsed = url_parse(url, slice_from(text));
    bool icap = parsed && (slice_equal_nocase(url->scheme, SLICE("icap")) ||
                           slice_equal_nocase(url->scheme, SLICE("icaps")));
    if (!icap || url_path(url).length < 2)
        return load_fail(load, line,
                         "uri: \"%s\" is not the address of an ICAP service; write "
                         "\"icap://HOST:PORT/SERVICE\", or icaps:// for TLS",
                         text);
    return true;
}

static bool check_icap_uris(struct load *load, const struct document_section *section,
                            struct service_settings *service) {
    int line = load_line_of(section, "uri");
    unsigned count = 0;
    while (service->uri_texts[count] != NULL)
        count++;
    if (count == 0 || count > ICAP_ENDPOINTS_MAX)
        return load_fail(load, line, "uri: list 1 to %d addresses", ICAP_ENDPOINTS_MAX);
    service->endpoints = xcalloc(count, sizeof *service->endpoints);
    for (; service->endpoint_count < count; service->endpoint_count++)
        if (!parse_icap_uri(load, line, service->uri_texts[service->endpoint_count],
                            &service->endpoints[service->endpoint_count]))
            return false;
    return true;
}

static bool check_icap_credentials(struct load *load, const struct document_section *section,
                                   const struct service_settings *service) {
    if (service->credentials != NULL && service->proxy_credentials)
        return load_fail(
            load, load_line_of(section, "proxy_credentials"),
            "proxy_credentials: Proxy-Authorization carries either the proxy's credentials or "
            "those of clients; remove credentials or proxy_credentials");
    return true;
}

static bool uses_tls(const struct service_settings *service) {
    for (unsigned i = 0; i < service->endpoint_count; i++)
        if (slice_equal_nocase(service->endpoints[i].scheme, SLICE("icaps")))
            return true;
    return false;
}

static bool check_icap_tls(struct load *load, const struct document_section *section,
                           struct service_settings *service) {
    service->trust.check_staple = TLS_STAPLE_ON;
    if (!uses_tls(service))
        return true;
    if (!service->trust.verify)
        load_warn(load, section->line,
                  "icap_service %s: verify is false, so anybody on the path to the server can read "
                  "and change what is sent; set ca_file instead",
                  service->name);
    return load_trust(load, section, &service->trust);
}

static bool check_icap_include(struct load *load, const struct document_section *section,
                               const struct service_settings *service) {
    static const char *const known[] = {"X-Client-IP",          "X-Client-Port",
                                        "X-Server-IP",          "X-Client-Username",
                                        "X-Authenticated-User", "X-Authenticated-Groups",
                                        "X-Access-Rule",        "X-TLS-SNI",
                                        "X-TLS-Version",        "X-TLS-Cipher",
                                        "X-TLS-Issuer",         "X-TLS-Verification",
                                        "X-TLS-Client-Subject", "X-TLS-Client-Issuer",
                                        "X-TLS-Client-Serial",  "none"};
    for (char **name = service->include; name != NULL && *name != NULL; name++) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found = found || strcasecmp(*name, known[i]) == 0;
        if (!found)
            return load_fail(load, load_line_of(section, "include"),
                             "include: \"%s\" is not known; write X-Client-IP, X-Client-Port, "
                             "X-Server-IP, X-Client-Username, X-Authenticated-User, "
                             "X-Authenticated-Groups, X-Access-Rule, X-TLS-SNI, X-TLS-Version, "
                             "X-TLS-Cipher, X-TLS-Issuer, X-TLS-Verification, "
                             "X-TLS-Client-Subject, X-TLS-Client-Issuer, X-TLS-Client-Serial or "
                             "none",
                             *name);
    }
    return true;
}

static bool icap_load_service(struct load *load, const struct document_section *section,
                              struct service_settings *service) {
    if (!load_values(load, section, "icap_service", service) ||
        !check_icap_uris(load, section, service) ||
        !check_icap_credentials(load, section, service) ||
        !check_icap_tls(load, section, service) || !check_icap_include(load, section, service))
        return false;
    service->max_connections_given = document_value(section, "max_connections") != NULL;
    if (service->down_min > service->down_max)
        return load_fail(load, load_line_of(section, "down_min"),
                         "down_min is larger than down_max");
    return true;
}

static void icap_release_service(struct service_settings *service) {
    tls_trust_unload(&service->trust);
    free(service->endpoints);
}

const struct part_settings icap_part_settings = {
    .core_options = rows,
    .sections = sections,
    .service = {.load = icap_load_service, .release = icap_release_service},
};
