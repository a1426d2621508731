#include "settings/options.h"

#include "http/credentials.h"
#include "match/regex.h"
#include "settings/negative.h"
#include "settings/settings.h"

#include <stdio.h>
#include <string.h>

#define KB     1024.0
#define MB     (1024.0 * KB)
#define GB     (1024.0 * MB)
#define SECOND 1000.0
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* The range of timeouts that an operator may set. A longer one is probably a wrong unit. */
#define TIMEOUT_MIN 1.0
#define TIMEOUT_MAX (1 * DAY)

/* Words of enums, in the order of the enums' members. */
static const char *const listen_mode_words[] = {"forward", "reverse", NULL};
static const char *const local_destination_words[] = {"deny", "allow", NULL};
static const char *const access_log_words[] = {"squid",          "combined",          "json",
                                               "squid_extended", "combined_extended", NULL};
static const char *const disk_io_words[] = {"auto", "threads", NULL};
static const char *const disk_admission_words[] = {"all", "second", NULL};
static const char *const adapt_point_words[] = {"reqmod_precache", "reqmod_postcache",
                                                "respmod_precache", "respmod_postcache", NULL};

const char *adapt_point_name(enum adapt_point point) {
    return adapt_point_words[point];
}
static const char *const policy_cache_words[] = {"normal", "never", "always", NULL};
static const char *const set_cookie_words[] = {"explicit", "store", "pass", "strip", NULL};
static const char *const query_sent_words[] = {"stored", "whole", NULL};
static const char *const balance_words[] = {"round_robin", "least_connections", "consistent_hash",
                                            NULL};
static const char *const hash_words[] = {"url", "host", "client", NULL};
static const char *const direct_words[] = {"never", "fallback", "always", NULL};
static const char *const log_level_words[] = {"error", "warn", "info", "debug", NULL};

/* The destination of a value. */
#define TOP(member)        .section = "", .at = offsetof(struct settings, member)
#define ONCE(name, member) .section = name, .at = offsetof(struct settings, member)
#define DISK(member)       .section = "disk", .at = offsetof(struct disk_settings, member)
#define LISTEN(member)     .section = "listen", .at = offsetof(struct listen_settings, member)
#define MAP(member)        .section = "map", .at = offsetof(struct map_settings, member)
#define ORIGINS(member)    .section = "origins", .at = offsetof(struct origins_settings, member)
#define PARENT(member)     .section = "parent", .at = offsetof(struct parent_settings, member)
#define ACCESS_LOG(member)                                                                         \
    .section = "access_log", .at = offsetof(struct access_log_settings, member)
#define SERVICE(member)                                                                            \
    .section = "icap_service", .at = offsetof(struct icap_service_settings, member)
#define URL_CLASS(member)                                                                          \
    .section = "url_class", .at = offsetof(struct url_class_conditions, member)
#define ADAPT(member)  .section = "adapt", .at = offsetof(struct adapt_names, member)
#define POLICY(member) .section = "policy", .at = offsetof(struct cache_policy, member)

/* The type and range of a value. */
#define BOOL               .type = OPTION_BOOL
#define COUNT(from, to)    .type = OPTION_COUNT, .least = from, .most = to
#define SIZE_OF(from, to)  .type = OPTION_SIZE, .least = from, .most = to
#define TIME_OF(from, to)  .type = OPTION_TIME, .least = from, .most = to
#define TIMEOUT            TIME_OF(TIMEOUT_MIN, TIMEOUT_MAX)
#define FLOAT_OF(from, to) .type = OPTION_FLOAT, .least = from, .most = to
#define STRING             .type = OPTION_STRING
#define STRINGS            .type = OPTION_STRINGS
#define WORD(list)         .type = OPTION_WORD, .words = list
#define DEFAULT(text)      .fallback = text
#define DOC                .documentation =

const struct option options[] = {
    /* The top level. */
    {TOP(workers), .name = "workers", COUNT(0, 1024), DEFAULT("0"),
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
    {TOP(log_level), .name = "log_level", WORD(log_level_words), DEFAULT("info"),
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
         "are still running after this time are cut off.",
     .example = "\"10s\""},
    {TOP(patience_keep), .name = "patience_keep", TIMEOUT, DEFAULT("10m"),
     DOC "Sets how long the result behind a waiting page (icap_service.patience_after) is kept "
         "for the client's address. It also sets how long the download goes on after the browser "
         "has stopped asking for it.",
     .example = "\"1h\""},
    {TOP(patience_space), .name = "patience_space", SIZE_OF(0, 1024 * GB), DEFAULT("1GB"),
     DOC "Limits the disk space of all results behind waiting pages together. They are files in "
         "temporary_directory. A download that would exceed the limit fails, and "
         "retort_patience_failures_total counts it.",
     .example = "\"20GB\""},
    {TOP(verdict_space), .name = "verdict_space", SIZE_OF(0, 64 * GB), DEFAULT("8MB"),
     DOC "Limits the memory for verdicts of services at reqmod_precache and reqmod_postcache. "
         "Retort remembers the verdict on a request without a body where the service permits it "
         "in the ICAP head of its answer (Cache-Control: max-age, or Expires), and uses it for "
         "equal requests. An entry takes little more than the head of the request. When the "
         "space is full, old verdicts are dropped, and retort_verdicts_evicted_total counts "
         "them. The value 0 means that services are asked about every request.",
     .example = "\"64MB\""},
    {TOP(connect_ports), .name = "connect_ports", .type = OPTION_PORTS,
     .count_at = offsetof(struct settings, connect_port_count), DEFAULT("443"),
     DOC "Lists the ports that clients may reach with CONNECT. A proxy that opens tunnels to any "
         "port is a way around firewalls and into mail servers, so list only the ports that are "
         "needed. CONNECT to another port is answered with 403 and counted in "
         "retort_client_denied_total. The value none forbids CONNECT.",
     .example = "{ 443, 8443 }"},

    {LISTEN(mode), .name = "mode", WORD(listen_mode_words), .required = true,
     DOC "Sets how clients use the listener. forward: clients know that they talk to a proxy, "
         "and they send whole URLs and CONNECT. reverse: clients take the proxy for the server, "
         "and map sections say where requests go.",
     .example = "forward"},
    {LISTEN(allow), .name = "allow", .type = OPTION_NETWORKS,
     .count_at = offsetof(struct listen_settings, allow_count),
     .fallback_note = "forward mode: this machine and private networks (127.0.0.0/8, 10.0.0.0/8, "
                      "172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16, ::1, fc00::/7, fe80::/10); "
                      "reverse mode: all",
     DOC "Lists the addresses and networks of clients that may use the listener. Other clients "
         "get 403, and retort_client_denied_total counts their requests. The value all admits "
         "everybody. An open forward proxy on the Internet is found and misused within hours.",
     .example = "{ \"10.1.0.0/16\", \"::1\" }"},

    {LISTEN(local_destinations), .name = "local_destinations", WORD(local_destination_words),
     DEFAULT("deny"),
     DOC "Sets whether clients of a forward listener may reach services on the proxy's own "
         "machine and on its links. deny: Retort answers with 403 when the destination is a "
         "loopback address (127.0.0.0/8, ::1), a link-local address (169.254.0.0/16, where "
         "clouds give a machine its secrets, and fe80::/10), an unspecified, multicast or "
         "broadcast address, or any address of the machine itself. Retort checks the address "
         "that a name resolves to, also after a service has changed the request; "
         "retort_destinations_denied_total counts refusals. When a request goes to a parent "
         "proxy, Retort checks only addresses and localhost; the parent resolves names and has "
         "to refuse them. In both modes clients never reach the proxy's own listeners and its "
         "admin plane through the proxy. The option does not affect reverse listeners: these "
         "reach what map sections name.",
     .example = "allow"},

    {MAP(origin_text), .name = "origin", STRING, .required = true,
     DOC "Sets where matching requests go. The value is an http URL whose path replaces the "
         "prefix, or the name of an origins section, with a path behind it if one is needed: "
         "\"web/app/\".",
     .example = "\"http://127.0.0.1:9000/\""},
    {MAP(preserve_host), .name = "preserve_host", BOOL, DEFAULT("false"),
     DOC "Sends the client's Host field to the origin. Otherwise Host contains the host and port "
         "of the origin's URL.",
     .example = "true"},
    {MAP(rewrite_location), .name = "rewrite_location", BOOL, DEFAULT("true"),
     DOC "Rewrites URLs in the Location, Content-Location and Refresh fields of responses. A URL "
         "that leads to the origin becomes the path that the client must ask the proxy for, "
         "without scheme and host. Other URLs do not change.",
     .example = "false"},
    {MAP(origin_aliases), .name = "origin_aliases", STRINGS, .check = origins_check_alias,
     DEFAULT("none"),
     DOC "Lists other URLs that the origin uses for itself in its response headers. "
         "rewrite_location treats them like the origin's URL.",
     .example = "\"http://app.internal:8080/\""},
    {MAP(parent_text), .name = "parent", STRING, .fallback_note = "the origin is asked directly",
     DOC "Names an origins section whose servers are parent proxies. Requests then reach the "
         "origin through one of these proxies. An origin that is itself a group can not have a "
         "parent.",
     .example = "upstream_caches"},

    {ORIGINS(server_texts), .name = "servers", STRINGS, .required = true,
     .check = origins_check_server,
     DOC "Lists the URLs of the servers: http only, without a path. Parameters may follow a URL "
         "after a blank. weight=N (1 to 256) gives the server N times the share of a server "
         "without a weight. backup marks a server that gets requests only while all others are "
         "down.",
     .example = "{ \"http://10.0.0.1:8080 weight=2\", \"http://10.0.0.2:8080\" }"},
    {ORIGINS(rules.balance), .name = "balance", WORD(balance_words), DEFAULT("round_robin"),
     DOC "Sets how a server is chosen. round_robin: the servers take turns, in proportion to "
         "their weights. least_connections: the server with the fewest requests in progress, "
         "relative to its weight. consistent_hash: the server follows from hash_by, so that "
         "equal values always go to the same server; when a server is down or full, only its own "
         "share moves to other servers.",
     .example = "consistent_hash"},
    {ORIGINS(rules.hash_by), .name = "hash_by", WORD(hash_words), DEFAULT("url"),
     DOC "Sets the value that balance = consistent_hash uses: the URL as the cache stores it, "
         "the host of the URL, or the client's address.",
     .example = "client"},
    {ORIGINS(rules.tries), .name = "tries", COUNT(1, ORIGINS_TRIES_MAX), DEFAULT("3"),
     DOC "Limits the number of servers that are tried for one request. "
         "retort_origin_server_switches_total counts requests that moved to another server.",
     .example = "2"},
    {ORIGINS(rules.max_failures), .name = "max_failures", COUNT(0, 1e6), DEFAULT("3"),
     DOC "Sets how many failures in a row take a server down. retort_origin_servers_down_total "
         "counts these events. The value 0 means that servers are never taken down.",
     .example = "1"},
    {ORIGINS(failure_texts), .name = "failure_status", STRINGS, .check = origins_check_status,
     DEFAULT("502, 503, 504"),
     DOC "Lists response statuses that count as a failure of the server. The client gets such a "
         "response all the same. The value none means that no status counts as a failure. "
         "Responses of parent proxies never count, because they may report a failure of a server "
         "behind the proxy.",
     .example = "{ 500, 502, 503, 504 }"},
    {ORIGINS(rules.down_min), .name = "down_min", TIMEOUT, DEFAULT("1s"),
     DOC "Sets how long a server stays without requests after it goes down. Then one request "
         "tries it. Each failed try doubles the time, up to down_max.",
     .example = "\"5s\""},
    {ORIGINS(rules.down_max), .name = "down_max", TIMEOUT, DEFAULT("30s"),
     DOC "Limits the time for which a server that is down stays without requests.",
     .example = "\"2m\""},
    {ORIGINS(rules.slow_start), .name = "slow_start", TIME_OF(0, DAY), DEFAULT("0"),
     DOC "Sets how long a server that comes back takes to get its full share of requests. Its "
         "share grows from one sixteenth. The value 0 gives it the full share at once.",
     .example = "\"30s\""},
    {ORIGINS(rules.max_connections), .name = "max_connections", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Limits the number of requests in progress at each server, for all workers together. "
         "Requests wait in a queue when all servers are full. Tunnels (through a parent, or "
         "WebSocket) count while they are open. Idle connections do not count. The value 0 means "
         "no limit.",
     .example = "100"},
    {ORIGINS(rules.queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "Limits the number of requests that wait for a server of the group. Further requests "
         "are answered with 503 and counted in retort_origin_queue_refused_total. A request that "
         "a server has already failed is exempt: it waits at the front of the queue.",
     .example = "50"},
    {ORIGINS(rules.queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "Sets how long a request may wait for a server. After this time it is answered with 503 "
         "and counted in retort_origin_queue_timeouts_total.",
     .example = "\"500ms\""},
    {ORIGINS(health_check), .name = "health_check", STRING, .check = origins_check_path,
     .fallback_note = "none; failures of clients' requests take servers down",
     DOC "Sets a path that Retort requests from each server every check_interval. A status from "
         "200 to 399 brings a server up again; anything else counts as a failure, like that of a "
         "client's request. With health checks, a server that is down is never tried with a "
         "client's request.",
     .example = "\"/healthz\""},
    {ORIGINS(check_interval), .name = "check_interval", TIMEOUT, DEFAULT("5s"),
     DOC "Sets the pause between two health checks of a server.", .example = "\"1s\""},
    {ORIGINS(check_timeout), .name = "check_timeout", TIMEOUT, DEFAULT("2s"),
     DOC "Sets how long a health check may take to connect, and how long it may then wait for "
         "the response.",
     .example = "\"500ms\""},
    {ORIGINS(credentials), .name = "credentials", STRING, .secret = true,
     .check = http_credentials_check, .fallback_note = "none",
     DOC "Sets \"USER:PASSWORD\" for parent proxies that demand authentication. Retort sends it "
         "as Proxy-Authorization (scheme Basic) with each request and each CONNECT for which a "
         "server of this section is used as a proxy, and with no others. Retort never forwards "
         "the Proxy-Authorization field of a client. The connection to the parent is not "
         "encrypted. The admin plane does not show the value.",
     .example = "\"proxy:secret\""},

    {PARENT(origins_name), .name = "origins", STRING,
     .fallback_note = "none; only with direct = always",
     DOC "Names the origins section whose servers are the parent proxies.",
     .example = "upstream_caches"},
    {PARENT(direct), .name = "direct", WORD(direct_words), DEFAULT("never"),
     DOC "Sets whether requests may go directly to the server in their URL. never: the request "
         "fails when no parent answers. fallback: the request goes directly when no parent "
         "answers; use this for parents that only save bandwidth, not for parents that filter. "
         "always: requests of this class never go to a parent.",
     .example = "fallback"},

    {ONCE("cache", cache.memory), .name = "memory", SIZE_OF(1 * MB, 4096 * GB), DEFAULT("256MB"),
     DOC "Limits the memory of the cache: bodies, heads and the bookkeeping of the cache itself.",
     .example = "\"512MB\""},
    {ONCE("cache", cache.max_object), .name = "max_object", SIZE_OF(0, 4096 * GB), DEFAULT("16MB"),
     DOC "Limits the size of a stored body. A response with a larger body is delivered without "
         "being stored. The value can not be larger than memory.",
     .example = "\"4MB\""},
    {ONCE("cache", cache.max_variants), .name = "max_variants", COUNT(1, 1e6), DEFAULT("32"),
     DOC "Limits the number of responses that are stored for one URL when they differ by request "
         "fields (Vary). When a URL has more, the oldest one is removed, so that a field with "
         "many values, such as User-Agent, does not fill the cache with copies of one page.",
     .example = "8"},
    {ONCE("cache", cache.max_ranges), .name = "max_ranges", COUNT(1, 256), DEFAULT("16"),
     DOC "Limits the number of ranges of a stored response that one request may ask for (Range). "
         "Ranges that overlap or nearly touch are merged first. A request for more ranges gets "
         "the whole response and is counted in retort_cache_ranges_refused_total, because many "
         "small ranges are more often an attack (RFC 9110, 14.2) than a need.",
     .example = "1"},
    {ONCE("cache", cache.disk_io), .name = "disk_io", WORD(disk_io_words), DEFAULT("auto"),
     DOC "Sets how Retort reads from disk when a read has to wait. auto: io_uring where the "
         "kernel allows it, otherwise threads. threads: threads that block until the data is "
         "there. A change takes effect at the next start.",
     .example = "threads"},
    {ONCE("cache", cache.heuristic_fraction), .name = "heuristic_fraction", FLOAT_OF(0, 1),
     DEFAULT("0.1"),
     DOC "Sets the freshness of responses that do not state one: this fraction of the time since "
         "their Last-Modified (RFC 9111, 4.2.2). For example, with 0.1 a page that changed ten "
         "days ago is fresh for one day. The value 0 turns this off.",
     .example = "0.2"},
    {ONCE("cache", cache.heuristic_max), .name = "heuristic_max", TIME_OF(0, 365 * DAY),
     DEFAULT("1d"), DOC "Limits the freshness that heuristic_fraction gives.",
     .example = "\"12h\""},
    {ONCE("cache", cache.status_field), .name = "status_field", BOOL, DEFAULT("true"),
     DOC "Adds a Cache-Status field (RFC 9211) to each response. It shows how the cache handled "
         "the request: \"Cache-Status: retort; hit; ttl=30\".",
     .example = "false"},
    {ONCE("cache", cache.accept_encoding), .name = "accept_encoding", STRINGS,
     .check = option_check_coding, DEFAULT("none"),
     DOC "Lists the content codings that origins use, the preferred one first. Retort then "
         "reduces the Accept-Encoding field of GET and HEAD requests to the codings in this list "
         "that the client accepts, in the order of the list, before it looks into the cache. For "
         "example, with { br, gzip } both \"gzip, deflate, br\" and \"br;q=1.0, gzip;q=0.8\" "
         "become \"br, gzip\", and a client that accepts none of them sends \"identity\". "
         "Clients that accept the same codings then share a variant. The origin sees the reduced "
         "field, so the client's order of preference is lost. A request that refuses identity is "
         "not changed. The value none forwards every field unchanged; variants are then selected "
         "by the codings without their order.",
     .example = "{ br, zstd, gzip }"},
    {ONCE("cache", cache.x_cache), .name = "x_cache", BOOL, DEFAULT("false"),
     DOC "Adds an X-Cache field to each response, for tools that expect it: \"X-Cache: HIT from "
         "retort\" when the body came from the cache, revalidated or not, and \"X-Cache: MISS "
         "from retort\" otherwise.",
     .example = "true"},
    {ONCE("cache", cache.negative_ttl), .name = "negative_ttl", STRINGS,
     .check = negative_ttl_check, DEFAULT("none"),
     DOC "Sets the freshness of errors that do not state one. A value is a time, optionally with "
         "status codes before it; \"4xx\" and \"5xx\" stand for all codes of their class. The "
         "first value that names a status applies to it. A time without codes applies to 404, "
         "410 and all statuses from 500. The value none applies to no error. Errors that depend "
         "on the request (400, 401, 405 to 408, 411 to 417, 421, 422, 425, 426, 428, 429, 431, "
         "511) are never stored, because one client could otherwise have such an error served to "
         "all.",
     .example = "{ \"404 410 1m\", \"5xx 5s\" }"},
    {ONCE("cache", cache.failed_lifetime), .name = "failed_lifetime", TIME_OF(0, HOUR),
     DEFAULT("5s"),
     DOC "Limits how long a response is kept that a service could not adapt, because its helper "
         "was down or too slow or because memory was short. After this time Retort fetches the "
         "response again, so that the service gets another chance. Until then the stored "
         "response protects the origin from a rush of requests. The limit also applies against "
         "policies, and a response that states a shorter freshness keeps that. "
         "retort_adapted_unable_total counts these responses. The value 0 means that they are "
         "not stored.",
     .example = "\"30s\""},
    {ONCE("cache", cache.refresh_pause), .name = "refresh_pause", TIME_OF(0, DAY), DEFAULT("30s"),
     DOC "Limits the pause after a failed refresh in the background (stale_while_revalidate). "
         "The first pause for a URL is one second, and each further failure doubles it up to "
         "this value. The stale response is served meanwhile. Retort remembers the last few "
         "thousand failures; retort_cache_background_failures_total counts all of them. The "
         "value 0 starts a new refresh with the next request.",
     .example = "\"5m\""},
    {ONCE("cache", cache.collapse_timeout), .name = "collapse_timeout", TIME_OF(0, 10 * 60 * 1000),
     DEFAULT("5s"),
     DOC "Sets how long a request waits when another request is already fetching the same "
         "response. After this time it asks the origin itself. retort_cache_collapsed_total "
         "counts requests that waited. The value 0 means that requests never wait for one "
         "another.",
     .example = "\"2s\""},
    {ONCE("cache", cache.stale_while_revalidate), .name = "stale_while_revalidate",
     TIME_OF(0, 365 * DAY), DEFAULT("0"),
     DOC "Sets how long a response is still served after its freshness has ended, while Retort "
         "refreshes it in the background. It applies to responses that do not state such a time "
         "themselves (stale-while-revalidate, RFC 5861). It does not apply where Cache-Control "
         "forbids stale responses.",
     .example = "\"10s\""},
    {ONCE("cache", cache.stale_if_error), .name = "stale_if_error", TIME_OF(0, 365 * DAY),
     DEFAULT("1h"),
     DOC "Sets how long after its freshness a stored response may replace the answer of an "
         "origin that can not be reached or does not answer. It does not apply when the "
         "Cache-Control of the response forbids stale responses (must-revalidate, "
         "proxy-revalidate, s-maxage, no-cache) or states another time (stale-if-error). An "
         "error that the origin sends is replaced only where stale-if-error allows it.",
     .example = "\"1d\""},
    {ONCE("cache", cache.targeted), .name = "targeted", STRINGS,
     DEFAULT("CDN-Cache-Control, Surrogate-Control"),
     DOC "Lists response fields that address this cache alone, the most important one first (RFC "
         "9213). The first field that is present and well formed replaces Cache-Control and "
         "Expires. The list applies to reverse listeners only, because the authors of these "
         "fields mean caches that work for the origin. The fields are dictionaries (Structured "
         "Fields): a field that does not parse, or that has a value of the wrong type such as "
         "max-age=\"60\", is ignored as a whole. Surrogate-Control is ignored in the same cases, "
         "but its names may have capital letters, and max-age=60+30 means that the response may "
         "be used for 30 more seconds while it is refreshed.",
     .example = "{ \"Retort-Cache-Control\", \"CDN-Cache-Control\" }"},

    {DISK(size), .name = "size", SIZE_OF(16 * MB, 2000 * GB), DEFAULT("1GB"),
     DOC "Sets the size of the volume. The space is reserved at the start. When the volume is "
         "full, the oldest objects are removed first, except those that were used recently.",
     .example = "\"10GB\""},
    {DISK(admission), .name = "admission", WORD(disk_admission_words), DEFAULT("all"),
     DOC "Sets which objects are written to the volume. all: everything that is stored. second: "
         "only objects that come from their origin for the second time, as far back as a filter "
         "remembers. This spares the device when most responses are requested only once.",
     .example = "second"},
    {DISK(max_object), .name = "max_object", SIZE_OF(0, 4096 * GB), DEFAULT("1GB"),
     DOC "Limits the size of a body on the volume. Larger bodies are not written to it.",
     .example = "\"64MB\""},
    {DISK(threads), .name = "threads", COUNT(1, 64), DEFAULT("4"),
     DOC "Sets the number of threads that read from the volume when the kernel does not have the "
         "data in memory.",
     .example = "16"},
    {DISK(write_queue), .name = "write_queue", SIZE_OF(1 * MB, 64 * GB), DEFAULT("64MB"),
     DOC "Limits the number of bytes that wait to be written. While the queue is full, new "
         "objects stay in memory only, and retort_disk_writes_dropped_total counts them.",
     .example = "\"256MB\""},
    {DISK(sync), .name = "sync", BOOL, DEFAULT("true"),
     DOC "Makes changes by the admin plane survive a loss of power: purges, removals, injected "
         "objects, lifetimes and bumps are on the device (fdatasync) before the admin plane "
         "answers. Removals by unsafe methods such as POST follow within 0.2 seconds. With "
         "false, these changes survive a crash of the process, but not of the machine.",
     .example = "false"},
    {DISK(write_wait), .name = "write_wait", TIME_OF(0, DAY), DEFAULT("1s"),
     DOC "Sets how long a client waits for a slow volume. A body that is too large for memory is "
         "read from its origin only as fast as the volume writes it. When such bodies have "
         "filled a quarter of write_queue for this time, the body is delivered without being "
         "stored. The value 0 means that a client never waits for the disk.",
     .example = "\"5s\""},

    {ONCE("client", client.header_timeout), .name = "header_timeout", TIMEOUT, DEFAULT("30s"),
     DOC "Sets how long the head of a request may take, from its first byte to its last. The "
         "whole head has one deadline, so that a client can not hold a connection by sending a "
         "byte now and then. After this time the connection is closed, and "
         "retort_client_timeouts_total counts it.",
     .example = "\"10s\""},
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

    {ONCE("origin", origin.connect_timeout), .name = "connect_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "Sets how long a connection to one address of an origin may take. After this time the "
         "next address is tried. After the last address the client gets 502 or 504, and "
         "retort_origin_failures_total counts the request.",
     .example = "\"2s\""},
    {ONCE("origin", origin.first_byte_timeout), .name = "first_byte_timeout", TIMEOUT,
     DEFAULT("60s"),
     DOC "Sets how long an origin may take from the end of the request to the end of the "
         "response's head. After this time the client gets 504, and retort_origin_failures_total "
         "counts the request.",
     .example = "\"20s\""},
    {ONCE("origin", origin.read_timeout), .name = "read_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "Sets how long the body of a response may pause. After this time the response is cut "
         "off in a way that the client can see.",
     .example = "\"20s\""},
    {ONCE("origin", origin.total_timeout), .name = "total_timeout", TIME_OF(0, DAY), DEFAULT("0"),
     DOC "Sets how long a request to an origin may take in total: from the first try to the last "
         "byte of the body, with the time in a queue and the time of slow clients. After this "
         "time the client gets 504, or a response that is visibly cut off. Tunnels are exempt. "
         "The value 0 means no limit.",
     .example = "\"10m\""},
    {ONCE("origin", origin.tunnel_timeout), .name = "tunnel_timeout", TIMEOUT, DEFAULT("15m"),
     DOC "Sets how long a tunnel (CONNECT, or an upgrade such as WebSocket) may be silent in "
         "both directions. After this time it is closed.",
     .example = "\"1h\""},
    {ONCE("origin", origin.idle_timeout), .name = "idle_timeout", TIME_OF(0, TIMEOUT_MAX),
     DEFAULT("30s"),
     DOC "Sets how long an unused connection to an origin is kept for the next request. Choose a "
         "shorter time than the origin's own, so that the origin does not close a connection "
         "just as Retort uses it.",
     .example = "\"4s\""},
    {ONCE("origin", origin.max_head), .name = "max_head", SIZE_OF(1 * KB, 1 * MB), DEFAULT("64KB"),
     DOC "Limits the size of a response's head. A larger one is answered with 502.",
     .example = "\"128KB\""},
    {ONCE("origin", origin.max_idle), .name = "max_idle", COUNT(0, 1e6), DEFAULT("32"),
     DOC "Limits the number of unused connections that each worker keeps to an origin. The value "
         "0 opens a new connection for every request.",
     .example = "8"},
    {ONCE("origin", origin.max_connections), .name = "max_connections", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Limits the number of requests in progress at each origin (host and port), for all "
         "workers together. Further requests wait in a queue. The limit applies to origins that "
         "a map section or a forward request names by URL; groups have origins.max_connections. "
         "Tunnels (CONNECT or WebSocket) count while they are open. Idle connections do not "
         "count. The value 0 means no limit.",
     .example = "50"},
    {ONCE("origin", origin.queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "Limits the number of requests that wait for one origin. Further requests are answered "
         "with 503 and counted in retort_origin_queue_refused_total.",
     .example = "50"},
    {ONCE("origin", origin.queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "Sets how long a request may wait for its origin. After this time it is answered with "
         "503 and counted in retort_origin_queue_timeouts_total.",
     .example = "\"500ms\""},
    {ONCE("origin", origin.dns_ipv6), .name = "dns_ipv6", BOOL, DEFAULT("true"),
     DOC "Looks up IPv6 addresses (AAAA) as well. Set it to false where IPv6 has no route to the "
         "Internet.",
     .example = "false"},
    {ONCE("origin", origin.dns_timeout), .name = "dns_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "Sets how long a name lookup may take. retort_dns_failures_total counts names that "
         "could not be resolved.",
     .example = "\"2s\""},
    {ONCE("origin", origin.dns_ttl_max), .name = "dns_ttl_max", TIME_OF(0, 7 * DAY), DEFAULT("5m"),
     DOC "Limits how long the addresses of a name are kept. They are looked up again after the "
         "time that the name server states, and after this time at the latest.",
     .example = "\"30s\""},

    {ACCESS_LOG(format), .name = "format", WORD(access_log_words), DEFAULT("squid"),
     DOC "Sets the format of a line. squid: the native format of Squid. combined: the format of "
         "Apache and nginx. json: one object per line with everything that is known, including "
         "services and times. squid_extended and combined_extended: the same formats with more "
         "columns at the end, which are the transaction's id and the services with their "
         "verdicts and milliseconds; combined_extended has the result of the cache before these.",
     .example = "json"},

    {SERVICE(uri_texts), .name = "uri", STRINGS, .required = true,
     DOC "Sets the address of the service: icap://HOST[:PORT]/SERVICE, or icaps:// for TLS. The "
         "port of icap is 1344 when none is given. Several addresses are endpoints of one "
         "service: each transaction goes to the endpoint with the fewest transactions in "
         "progress, and once more to another one if the first fails before its verdict.",
     .example = "{ \"icap://10.0.0.1/gray\", \"icap://10.0.0.2/gray\" }"},
    {SERVICE(point), .name = "point", WORD(adapt_point_words), .required = true,
     DOC "Sets when the service is asked (RFC 3507, 6.1). reqmod_precache: about each request, "
         "before the cache is searched. reqmod_postcache: about a request that goes to the "
         "origin, after the cache had no answer; the response is still stored under the request "
         "of the client. respmod_precache: about the origin's response before it is stored, so "
         "that one adaptation serves all later hits. respmod_postcache: about each response to a "
         "client, stored or not; the stored response does not change, and every client gets an "
         "adaptation of its own.",
     .example = "respmod_precache"},
    {SERVICE(remember), .name = "remember", BOOL, DEFAULT("false"),
     DOC "Keeps in memory what a service at respmod_postcache made of a stored response, and "
         "serves it to all clients. The result is used until the service's ISTag changes, until "
         "\"retortctl services bump\", or until the stored response is removed. Then the service "
         "adapts the stored response again, without a request to the origin. Retort also "
         "remembers that a service has nothing to change. Leave this off for services that treat "
         "clients differently. Results are remembered for the services at the beginning of a "
         "chain that have this option; the first service without it, and all services after "
         "that, are asked each time.",
     .example = "true"},
    {SERVICE(remember_by), .name = "remember_by", STRINGS, DEFAULT("Accept-Encoding"),
     DOC "Lists the request fields that the result of the service depends on, in addition to "
         "those in Vary. Each combination of their values has a variant of its own. The value "
         "none means that the result depends on the response alone.",
     .example = "{ Accept-Encoding, Save-Data }"},
    {SERVICE(ignore_istag), .name = "ignore_istag", BOOL, DEFAULT("false"),
     DOC "Ignores the ISTags of the service. Its results then stay valid until \"retortctl "
         "services bump\", or until the response is removed. Use it for servers that send no "
         "ISTag, and for servers that send a new one with each answer, as pyicap does: otherwise "
         "each answer would make all earlier results outdated, and a response stored by "
         "respmod_precache would never be used.",
     .example = "true"},
    {SERVICE(verdict_by), .name = "verdict_by", STRINGS, DEFAULT("*"),
     DOC "Lists the request fields that the verdict of a service at reqmod_precache or "
         "reqmod_postcache depends on. The method, the URL and what the service is told about "
         "the client always count. When the service permits it, its verdict is used for all "
         "requests in which these values are equal. Three kinds of verdict are used only for "
         "requests with the same head: a changed request, an answer with Vary, and an answer to "
         "a request with Range or a condition. The value \"*\" compares the whole head. The "
         "value none compares only the method and the URL. See verdict_space.",
     .example = "{ Accept, Origin, Referer, Sec-Fetch-Dest, Sec-Fetch-Site }"},
    {SERVICE(bypass), .name = "bypass", BOOL, DEFAULT("false"),
     DOC "Sets what happens when the service fails or is down. true: the message passes "
         "unchanged, and retort_icap_bypassed_total counts it. false: the client gets an error "
         "page. The default is false because a service may be a filter, and a filter that can be "
         "avoided by making it fail protects nobody. Set it to true for services that only "
         "improve messages.",
     .example = "true"},
    {SERVICE(timeout), .name = "timeout", TIMEOUT, DEFAULT("30s"),
     DOC "Sets how long the service may take for its verdict, and how long its answer may pause "
         "after that. A longer wait counts as a failure of the service (bypass says what happens "
         "then) and in retort_icap_service_error_timeout_total.",
     .example = "\"5s\""},
    {SERVICE(first_byte_timeout), .name = "first_byte_timeout", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "Sets how long the service may take for its verdict after it has received the message. "
         "timeout then limits pauses only. It is meant for services such as virus scanners, "
         "which think for a long time and then answer fast. The value 0 means that timeout "
         "applies.",
     .example = "\"2m\""},
    {SERVICE(total_timeout), .name = "total_timeout", TIME_OF(0, DAY), DEFAULT("1h"),
     DOC "Sets how long a whole transaction with the service may take, even if it never pauses. "
         "The time of slow origins and slow clients counts. The value 0 means no limit.",
     .example = "\"5m\""},
    {SERVICE(connect_timeout), .name = "connect_timeout", TIMEOUT, DEFAULT("3s"),
     DOC "Sets how long a connection to the ICAP server may take. It also sets how long the "
         "server's host may leave sent packets unacknowledged: after this time the host counts "
         "as lost, and so do all services on it (retort_icap_service_error_lost_total). A "
         "service that thinks for longer is not affected, because its host still acknowledges.",
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
    {SERVICE(preview), .name = "preview", SIZE_OF(0, 1 * MB), DEFAULT("4KB"),
     DOC "Limits the preview of a body. The Preview value of the service can only lower it. The "
         "value 0 sends no preview, and the service always gets whole bodies.",
     .example = "\"1KB\""},
    {SERVICE(preview_wait), .name = "preview_wait", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "Limits how long Retort waits for the bytes of a preview after the body has paused. "
         "After this time the preview ends with the bytes that are there, possibly none, and the "
         "service decides on these. Without a limit, a page that arrives in small pieces or a "
         "stream of events reaches the client only when the preview is full. Use it for services "
         "that do not need the beginning of a body, such as gzip and inject. Do not use it for a "
         "scanner that detects the type of a body by its beginning: an origin could deceive it "
         "with a pause. retort_icap_service_previews_cut_total counts shortened previews. The "
         "value 0 means no limit.",
     .example = "\"100ms\""},
    {SERVICE(keep), .name = "keep", SIZE_OF(0, 1 * GB), DEFAULT("256KB"),
     DOC "Limits the part of a body that stays in memory until the verdict of the service. "
         "Retort needs the original to send it after a 204 or a failure, or to repeat the "
         "request. The rest goes to a file (keep_on_disk). The value must not be smaller than "
         "preview.",
     .example = "\"1MB\""},
    {SERVICE(keep_on_disk), .name = "keep_on_disk", SIZE_OF(0, 1024 * GB), DEFAULT("16GB"),
     DOC "Limits the part of a body that is kept in a file in temporary_directory, in addition "
         "to keep. Only data that the service reads before its verdict goes there; a service "
         "that answers while it reads needs no file. For a body that is larger than both limits, "
         "a failed service can not be bypassed, and the service can not answer 204 after the "
         "preview once more than both limits was sent. retort_icap_service_unkept_total counts "
         "such bodies. The value 0 means no file.",
     .example = "\"1GB\""},
    {SERVICE(decode), .name = "decode", BOOL, DEFAULT("false"),
     DOC "Removes content codings from responses before the service sees them. gzip, deflate, br "
         "and zstd are decoded once, before the first service of a chain that has this option, "
         "for all services after it. A response that none of them changes goes on as it arrived. "
         "Responses with Cache-Control: no-transform or with an unknown coding are not decoded. "
         "A response that can not be decoded, or that exceeds decode_size or decode_ratio, "
         "counts as a failure of the service (see bypass).",
     .example = "true"},
    {SERVICE(decode_size), .name = "decode_size", SIZE_OF(1 * MB, 1024 * GB), DEFAULT("256MB"),
     DOC "Limits the size of a decoded body. retort_adapt_decode_limited_total counts bodies "
         "that exceed this limit or decode_ratio.",
     .example = "\"1GB\""},
    {SERVICE(decode_ratio), .name = "decode_ratio", COUNT(0, 1e6), DEFAULT("200"),
     DOC "Limits how many times larger than the received bytes a decoded body may be. The first "
         "MB is exempt. Pages usually become 4 to 20 times larger, compression bombs 1000 times "
         "and more. The value 0 means no limit.",
     .example = "1000"},
    {SERVICE(trickle_after), .name = "trickle_after", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "Sends clients a little of the original body while a service has not decided. It is "
         "meant for services that must see a whole body, such as virus scanners. After this time "
         "the client gets the head and then trickle_bytes every trickle_every, so that it does "
         "not give up. At most half of what has arrived is sent before the verdict. When the "
         "verdict is anything but the same response, the connection is cut, so that the client "
         "can see that its copy is incomplete (retort_adapt_trickle_cut_total). Such a response "
         "has no Content-Length and is not stored. Only the last service of a chain can have "
         "this option, and neither with decoding before it nor with routing. The value 0 means "
         "never.",
     .example = "\"5s\""},
    {SERVICE(trickle_bytes), .name = "trickle_bytes", SIZE_OF(1, 1 * MB), DEFAULT("1KB"),
     DOC "Sets how much of a body trickle_after sends at a time.", .example = "\"64KB\""},
    {SERVICE(trickle_every), .name = "trickle_every", TIMEOUT, DEFAULT("1s"),
     DOC "Sets the pause between two portions that trickle_after sends.", .example = "\"5s\""},
    {SERVICE(patience_after), .name = "patience_after", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "Shows a waiting page to browsers when a download has no verdict after this time. The "
         "page shows the progress, reloads itself, and becomes the download in the end. It is "
         "used for a GET whose Accept names text/html and whose response has status 200 and is "
         "not HTML. For other requests, and when trickle_after is shorter, trickle_after applies "
         "if it is set; otherwise the client waits. See patience_keep and patience_space. It "
         "works at respmod_precache only. The value 0 means never.",
     .example = "\"5s\""},
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
    {SERVICE(credentials), .name = "credentials", STRING, .secret = true,
     .check = http_credentials_check, .fallback_note = "none",
     DOC "Sets \"USER:PASSWORD\" for an ICAP server that demands authentication. Retort sends it "
         "as Proxy-Authorization, scheme Basic (RFC 3507, 7.1). The connection is encrypted only "
         "with icaps://. The admin plane does not show the value.",
     .example = "\"proxy:secret\""},
    {SERVICE(verify), .name = "verify", BOOL, DEFAULT("true"),
     DOC "Verifies the certificate of a server whose uri begins with icaps://: it must be "
         "trusted, valid now, and issued for the host in the uri. With false, anybody on the "
         "path can read and change all that is sent.",
     .example = "false"},
    {SERVICE(ca_file), .name = "ca_file", STRING,
     .fallback_note = "the certificates that the system trusts",
     DOC "Sets a file of trusted certificates in PEM for icaps:// servers: the authorities that "
         "issue their certificates, or a server's own self-signed certificate. The file is read "
         "at the start and at each reload.",
     .example = "\"/etc/retort/icap-ca.pem\""},
    {SERVICE(certificate), .name = "certificate", STRING, .fallback_note = "none",
     DOC "Sets a file in PEM with the certificate that the proxy shows to an icaps:// server "
         "that demands one. The certificates of its issuers follow in the same file. "
         "certificate_key must be set as well.",
     .example = "\"/etc/retort/proxy.pem\""},
    {SERVICE(certificate_key), .name = "certificate_key", STRING, .fallback_note = "none",
     DOC "Sets a file in PEM with the key of certificate. The key must not have a password.",
     .example = "\"/etc/retort/proxy.key\""},
    {SERVICE(proxy_credentials), .name = "proxy_credentials", BOOL, DEFAULT("false"),
     DOC "Shows the service the Proxy-Authorization of requests and the Proxy-Authenticate of "
         "responses, as fields of the ICAP request (RFC 3507, 4.4.2). They contain the passwords "
         "of clients, so use it only for a service that checks them. It can not be combined with "
         "credentials.",
     .example = "true"},
    {SERVICE(include), .name = "include", STRINGS, DEFAULT("X-Client-IP"),
     DOC "Lists fields about the client and the server that the service gets even if the "
         "X-Include of its OPTIONS does not ask for them: X-Client-IP, X-Client-Port, "
         "X-Server-IP. The value none sends only the fields that the service asks for. A "
         "remembered verdict (verdict_space) is used only for clients for which these fields are "
         "the same.",
     .example = "{ X-Client-IP, X-Client-Port }"},

    {URL_CLASS(hosts), .name = "host", STRINGS, .check = url_class_check_host,
     DOC "Lists exact host names. \"*.example.com\" stands for all names below example.com, but "
         "not for example.com itself.",
     .example = "{ \"www.example.com\", \"*.img.example.com\" }"},
    {URL_CLASS(domains), .name = "domain", STRINGS, .check = url_class_check_domain,
     DOC "Lists domains: the name itself and all names below it.", .example = "\"example.com\""},
    {URL_CLASS(path_regexes), .name = "path_regex", STRINGS, .check = regex_check,
     DOC "Lists regular expressions (PCRE2, as in Perl) that are searched in the path of the "
         "URL, without the query. They are case-sensitive unless they begin with (?i). A search "
         "that takes more than a hundred thousand steps, which a hostile URL may provoke, counts "
         "as no match. A regular expression that contains fixed text of at least two characters "
         "is searched only in paths that contain this text, so many expressions are fast when "
         "each has a fixed text of its own.",
     .example = "'\\.(jpe?g|gif|png)$'"},
    {URL_CLASS(url_regexes), .name = "url_regex", STRINGS, .check = regex_check,
     DOC "Lists regular expressions that are searched in the whole URL, with the query.",
     .example = "'[?&]utm_source='"},
    {URL_CLASS(methods), .name = "method", STRINGS, .check = url_class_check_method,
     DOC "Lists request methods.", .example = "{ GET, HEAD }"},
    {URL_CLASS(content_types), .name = "content_type", STRINGS,
     .check = url_class_check_content_type,
     DOC "Lists media types of the response, without parameters. \"image/*\" stands for all "
         "images. A class with this condition matches only when there is a response, so it never "
         "matches for a reqmod service.",
     .example = "{ \"text/html\", \"image/*\" }"},
    {URL_CLASS(clients), .name = "client", STRINGS, .check = url_class_check_client,
     DOC "Lists addresses and networks of clients. A response that is adapted before the cache "
         "is stored and then served to everybody, so use this condition for request services, or "
         "for a network that contains all clients of the cache.",
     .example = "{ \"10.1.0.0/16\", \"2001:db8::/32\" }"},

    {ADAPT(services), .name = "services", STRINGS, .required = true,
     DOC "Lists the names of icap_service sections in the order in which they are asked.",
     .example = "{ adremover, gzip }"},

    {POLICY(cache), .name = "cache", WORD(policy_cache_words), DEFAULT("normal"),
     DOC "Sets whether responses are stored. normal: as RFC 9111 says. never: the cache is "
         "neither searched nor filled. always: responses of every status are stored if they have "
         "a lifetime, which may come from a ttl of this policy. Private responses, no-store, and "
         "answers to authorized requests are still not stored; see override.",
     .example = "always"},
    {POLICY(override), .name = "override", BOOL, DEFAULT("false"),
     DOC "Ignores no-store, private, no-cache, must-revalidate and proxy-revalidate of "
         "responses, and no-store of requests. It needs cache = always. One client may then get "
         "a response that was meant for another, so use it only where everybody gets the same "
         "response. Answers to requests with Authorization are still stored only where the "
         "origin allows it.",
     .example = "true"},
    {POLICY(ttl), .name = "ttl", TIME_OF(0, 3650 * DAY),
     .fallback_note = "the freshness that the response states",
     DOC "Sets how long responses are fresh after they arrive, whatever they state themselves. "
         "Errors (status 400 and above) keep their own freshness; see negative_ttl. The option "
         "does not make a response storable that is not, and no-cache still means that the "
         "origin is asked each time.",
     .example = "\"10m\""},
    {POLICY(ttl_default), .name = "ttl_default", TIME_OF(0, 3650 * DAY),
     .fallback_note = "guessed from Last-Modified",
     DOC "Sets how long responses are fresh that have neither max-age, s-maxage nor Expires. It "
         "does not apply to errors.",
     .example = "\"5m\""},
    {POLICY(ttl_min), .name = "ttl_min", TIME_OF(0, 3650 * DAY), .fallback_note = "none",
     DOC "Sets the shortest freshness of responses. It does not apply to errors. When it is "
         "longer than the freshness that the origin states, you make a promise in the origin's "
         "place.",
     .example = "\"10s\""},
    {POLICY(ttl_max), .name = "ttl_max", TIME_OF(0, 3650 * DAY), .fallback_note = "none",
     DOC "Sets the longest freshness of responses.", .example = "\"1d\""},
    {POLICY(negative_ttl), .name = "negative_ttl", STRINGS, .check = negative_ttl_check,
     .fallback_note = "cache.negative_ttl",
     DOC "Replaces cache.negative_ttl for this class, with the same form of values.",
     .example = "\"30s\""},
    {POLICY(required_headers), .name = "required_headers", COUNT(0, 2), DEFAULT("0"),
     DOC "Sets what a response must state to be stored, as in Traffic Server. 0: nothing. 1: "
         "Last-Modified, Expires, max-age or s-maxage. 2: a freshness, which is Expires, max-age "
         "or s-maxage. With cache = always nothing is required, and neither is it for errors "
         "that negative_ttl covers.",
     .example = "2"},
    {POLICY(ignore_client_no_cache), .name = "ignore_client_no_cache", BOOL, DEFAULT("false"),
     DOC "Ignores no-cache, max-age=0 and Pragma of requests, so that clients can not force a "
         "request to the origin.",
     .example = "true"},
    {POLICY(max_variants), .name = "max_variants", COUNT(1, 1e6),
     .fallback_note = "cache.max_variants", DOC "Replaces cache.max_variants for this class.",
     .example = "4"},
    {POLICY(query_drop), .name = "query_drop", STRINGS, .check = policy_check_parameter,
     DOC "Lists query parameters that make no difference to the response. \"*\" at the end of a "
         "name stands for any rest. Retort removes these parameters before it searches the "
         "cache, and the origin does not get them either, unless query_sent says so.",
     .example = "{ \"utm_*\", fbclid }"},
    {POLICY(query_keep), .name = "query_keep", STRINGS, .check = policy_check_parameter,
     DOC "Lists the only query parameters that make a difference. query_drop still removes "
         "parameters from these.",
     .example = "{ id, page }"},
    {POLICY(query_sort), .name = "query_sort", BOOL, DEFAULT("false"),
     DOC "Sorts query parameters by name, so that their order makes no difference. Parameters "
         "with the same name keep their order. The origin gets them sorted as well, unless "
         "query_sent says otherwise.",
     .example = "true"},
    {POLICY(query_ignore), .name = "query_ignore", BOOL, DEFAULT("false"),
     DOC "Ignores the whole query.", .example = "true"},
    {POLICY(query_sent), .name = "query_sent", WORD(query_sent_words), DEFAULT("stored"),
     DOC "Sets which query the origin gets for GET and HEAD requests that the cache handles. "
         "stored: the query after query_drop, query_keep, query_sort and query_ignore, which is "
         "the one that the response is stored under. The stored response then does not depend on "
         "what one client has written. whole: the query as the client wrote it. Use whole only "
         "where the origin counts visits by the query and its response does not depend on it. "
         "Otherwise one client decides what all others get.",
     .example = "whole"},
    {POLICY(strip_cookies), .name = "strip_cookies", BOOL, DEFAULT("false"),
     DOC "Removes Cookie from GET and HEAD requests before the cache is searched, and Set-Cookie "
         "from the responses that are stored. Use it for content that is the same for everybody "
         "on a site that sets cookies everywhere.",
     .example = "true"},
    {POLICY(set_cookie), .name = "set_cookie", WORD(set_cookie_words), DEFAULT("explicit"),
     DOC "Sets what happens to responses with Set-Cookie. explicit: the response is stored if it "
         "states its freshness itself, as RFC 9111 allows, because its origin has then thought "
         "of caches. It is not stored if the freshness is guessed or extended by a policy, "
         "because the cookie may be somebody's session. store: the response is stored with the "
         "cookie. pass: it is not stored. strip: it is stored without the cookie; a response "
         "that is not stored keeps its cookie.",
     .example = "strip"},
    {POLICY(stale_if_error), .name = "stale_if_error", TIME_OF(0, 3650 * DAY),
     .fallback_note = "the time that the response states, otherwise cache.stale_if_error",
     DOC "Sets how long after its freshness a stored response may replace the answer of an "
         "origin that does not answer, or that answers with 500, 502, 503 or 504. It works as if "
         "the response had stated stale-if-error. The value 0 means never.",
     .example = "\"1h\""},

    {POLICY(stale_while_revalidate), .name = "stale_while_revalidate", TIME_OF(0, 3650 * DAY),
     .fallback_note = "the time that the response states, otherwise cache.stale_while_revalidate",
     DOC "Sets how long a response is still served after its freshness has ended, while Retort "
         "refreshes it in the background. It works as if the response had stated "
         "stale-while-revalidate. The value 0 means never.",
     .example = "\"1m\""},

    {ONCE("admin", admin.listen), .name = "listen", STRING, .fallback_note = "no admin plane",
     DOC "Sets where the admin plane listens: a path for a Unix socket, which only the proxy's "
         "user and root can reach, or a loopback address with a port, which every user of the "
         "machine can reach. Other addresses are refused, because the admin plane has no "
         "passwords. A reload does not change this setting.",
     .example = "\"/run/retort/retort.sock\""},

    {.name = NULL},
};

const struct option *options_next(const struct option *from, const char *section) {
    for (; from->name != NULL; from++)
        if (strcmp(from->section, section) == 0)
            return from;
    return NULL;
}

const struct option *options_find(const char *section, const char *name) {
    OPTIONS_FOR_EACH (option, section)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

bool option_is_list(const struct option *option) {
    return option->type == OPTION_STRINGS || option->type == OPTION_NETWORKS ||
           option->type == OPTION_PORTS;
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
