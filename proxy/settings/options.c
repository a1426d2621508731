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
/* Waits that an operator may set: longer ones are mistakes of unit. */
#define TIMEOUT_MIN 1.0
#define TIMEOUT_MAX (1 * DAY)

/* Words of enums, in the order of the enums' members. */
static const char *const listen_mode_words[] = {"forward", "reverse", NULL};
static const char *const local_destination_words[] = {"deny", "allow", NULL};
static const char *const access_log_words[] = {"squid",          "combined",          "json",
                                               "squid_extended", "combined_extended", NULL};
static const char *const disk_io_words[] = {"auto", "threads", NULL};
static const char *const disk_admission_words[] = {"all", "second", NULL};
static const char *const icap_point_words[] = {"reqmod_precache", "reqmod_postcache",
                                               "respmod_precache", "respmod_postcache", NULL};

const char *icap_point_name(enum icap_point point) {
    return icap_point_words[point];
}
static const char *const policy_cache_words[] = {"normal", "never", "always", NULL};
static const char *const set_cookie_words[] = {"explicit", "store", "pass", "strip", NULL};
static const char *const query_sent_words[] = {"stored", "whole", NULL};
static const char *const balance_words[] = {"round_robin", "least_connections", "consistent_hash",
                                            NULL};
static const char *const hash_words[] = {"url", "host", "client", NULL};
static const char *const direct_words[] = {"never", "fallback", "always", NULL};
static const char *const log_level_words[] = {"error", "warn", "info", "debug", NULL};

/* Where a value goes. */
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

/* What they are and what they may be. */
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
     DOC "Threads that serve clients, each with its own event loop; 0 means one per core. A reload "
         "does not change it.",
     .example = "4"},
    {TOP(share_listeners), .name = "share_listeners", BOOL, DEFAULT("false"),
     DOC "Let another retort of the same user listen at the same addresses at the same time, for a "
         "new one that begins beside the old. The kernel deals connections out to both. Without it "
         "a start, or a reload that adds an address, is refused where another one listens.",
     .example = "true"},
    {TOP(name), .name = "name", STRING, DEFAULT("retort"), .check = option_check_pseudonym,
     DOC "What the proxy calls itself in Via and on error pages. Give each proxy of a chain a name "
         "of its own: a request that comes with our name in Via has gone round in a loop.",
     .example = "\"cache1.example.com\""},
    {TOP(error_log), .name = "error_log", STRING, .fallback_note = "standard error",
     DOC "File for the proxy's own messages. It is opened again at a reload.",
     .example = "\"/var/log/retort/error.log\""},
    {TOP(log_level), .name = "log_level", WORD(log_level_words), DEFAULT("info"),
     DOC "The least important messages that are written.", .example = "warn"},
    {TOP(temporary_directory), .name = "temporary_directory", STRING, DEFAULT("/var/tmp"),
     DOC
     "Where bodies too large for memory wait for the verdict of an ICAP service, in files "
     "without a name that go with their request. Should be on a disk; icap_service.keep_on_disk "
     "limits what each may take.",
     .example = "\"/var/cache/retort/tmp\""},
    {TOP(drain_timeout), .name = "drain_timeout", TIME_OF(0, DAY), DEFAULT("30s"),
     DOC "How long transactions under way may take to finish after SIGTERM or \"retortctl drain\" "
         "before they are cut off.",
     .example = "\"10s\""},
    {TOP(patience_keep), .name = "patience_keep", TIMEOUT, DEFAULT("10m"),
     DOC "How long what was made while a page asked for patience (icap_service.patience_after) is "
         "kept for the client's address, and how long it is gone on with if the page is not there "
         "any more to ask for it.",
     .example = "\"1h\""},
    {TOP(patience_space), .name = "patience_space", SIZE_OF(0, 1024 * GB), DEFAULT("1GB"),
     DOC "How much of all such results together is kept, in files in temporary_directory. What "
         "would be more fails.",
     .example = "\"20GB\""},
    {TOP(verdict_space), .name = "verdict_space", SIZE_OF(0, 64 * GB), DEFAULT("8MB"),
     DOC
     "Memory for what services at reqmod_precache and reqmod_postcache said of requests without "
     "a body, where they permit in the ICAP head of their answer that it is used again for "
     "equal requests (Cache-Control: max-age, or Expires). An entry takes little more than the "
     "request's head. 0: every request is asked about.",
     .example = "\"64MB\""},
    {TOP(connect_ports), .name = "connect_ports", .type = OPTION_PORTS,
     .count_at = offsetof(struct settings, connect_port_count), DEFAULT("443"),
     DOC "Ports that clients may reach with CONNECT. A proxy that tunnels to any port is a way "
         "around firewalls and into mail servers, so name only what is needed; none forbids "
         "CONNECT.",
     .example = "{ 443, 8443 }"},

    {LISTEN(mode), .name = "mode", WORD(listen_mode_words), .required = true,
     DOC "forward: clients know that they talk to a proxy and send whole URLs and CONNECT. "
         "reverse: clients take it for the server; map sections say where requests go.",
     .example = "forward"},
    {LISTEN(allow), .name = "allow", .type = OPTION_NETWORKS,
     .count_at = offsetof(struct listen_settings, allow_count),
     .fallback_note = "forward mode: this machine and private networks (127.0.0.0/8, 10.0.0.0/8, "
                      "172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16, ::1, fc00::/7, fe80::/10); "
                      "reverse mode: all",
     DOC "Addresses and networks of the clients that may use the listener; the others get 403. "
         "all lets everybody in: an open forward proxy on the Internet is found and misused within "
         "hours.",
     .example = "{ \"10.1.0.0/16\", \"::1\" }"},

    {LISTEN(local_destinations), .name = "local_destinations", WORD(local_destination_words),
     DEFAULT("deny"),
     DOC "Whether clients of a forward listener reach what runs on the proxy's own machine and its "
         "links. deny: loopback addresses (127.0.0.0/8, ::1), link-local ones (169.254.0.0/16, "
         "where clouds tell a machine its secrets, and fe80::/10), unspecified, multicast and "
         "broadcast ones and every address of the machine itself are answered with 403. It counts "
         "for the address that a name stands for, and for what services make of a request. Of a "
         "request that goes to a parent only addresses and localhost are looked at: names are the "
         "parent's to resolve and to refuse. Whatever is set, clients never reach the proxy's own "
         "listeners and admin plane through it. A reverse listener reaches what map sections name, "
         "whatever is set.",
     .example = "allow"},

    {MAP(origin_text), .name = "origin", STRING, .required = true,
     DOC "The origin's URL, http only. Its path takes the place of the prefix. Or the name of an "
         "origins section, a path behind it where one is wanted: \"web/app/\".",
     .example = "\"http://127.0.0.1:9000/\""},
    {MAP(preserve_host), .name = "preserve_host", BOOL, DEFAULT("false"),
     DOC "Send the client's Host to the origin; otherwise the origin sees the host and port of its "
         "own URL.",
     .example = "true"},
    {MAP(rewrite_location), .name = "rewrite_location", BOOL, DEFAULT("true"),
     DOC "Whether URLs in Location, Content-Location and Refresh of responses that lead to the "
         "origin itself are turned into what the client must ask for to get there: a path below "
         "the prefix, without scheme and host. Others stay as they are.",
     .example = "false"},
    {MAP(origin_aliases), .name = "origin_aliases", STRINGS, .check = origins_check_alias,
     DEFAULT("none"),
     DOC "Further URLs that the origin uses for what its URL stands for, as they may occur in the "
         "headers that rewrite_location is about.",
     .example = "\"http://app.internal:8080/\""},
    {MAP(parent_text), .name = "parent", STRING, .fallback_note = "the origin is asked directly",
     DOC "The name of an origins section whose servers are proxies: the origin is asked through "
         "one of them. It can not be combined with an origin that is a group itself.",
     .example = "upstream_caches"},

    {ORIGINS(server_texts), .name = "servers", STRINGS, .required = true,
     .check = origins_check_server,
     DOC "The servers' URLs, http only and without a path. Behind a URL may follow, after a blank: "
         "weight=N for N times the share of a server without (from 1 to 256); backup for a server "
         "that is asked only while no other one is up.",
     .example = "{ \"http://10.0.0.1:8080 weight=2\", \"http://10.0.0.2:8080\" }"},
    {ORIGINS(rules.balance), .name = "balance", WORD(balance_words), DEFAULT("round_robin"),
     DOC "How a server is chosen. round_robin: in turn, as often as its weight says. "
         "least_connections: the one with the fewest requests under way for its weight. "
         "consistent_hash: by hash_by, so that the same always goes to the same server; when one "
         "is down or full, only what was its own moves to others.",
     .example = "consistent_hash"},
    {ORIGINS(rules.hash_by), .name = "hash_by", WORD(hash_words), DEFAULT("url"),
     DOC "What a consistent_hash is of: the URL as it is the key of the cache, its host, or the "
         "client's address.",
     .example = "client"},
    {ORIGINS(rules.tries), .name = "tries", COUNT(1, ORIGINS_TRIES_MAX), DEFAULT("3"),
     DOC "At how many servers one request is tried at the most.", .example = "2"},
    {ORIGINS(rules.max_failures), .name = "max_failures", COUNT(0, 1e6), DEFAULT("3"),
     DOC "After how many failures in a row a server is down; 0 means never.", .example = "1"},
    {ORIGINS(failure_texts), .name = "failure_status", STRINGS, .check = origins_check_status,
     DEFAULT("502, 503, 504"),
     DOC "Answers that count as failures of the server; clients get them all the same. none: none. "
         "Answers of parent proxies never count, for they tell of servers behind them.",
     .example = "{ 500, 502, 503, 504 }"},
    {ORIGINS(rules.down_min), .name = "down_min", TIMEOUT, DEFAULT("1s"),
     DOC
     "How long a server that went down is left alone before one request tries it. Each try that "
     "fails doubles the time up to down_max.",
     .example = "\"5s\""},
    {ORIGINS(rules.down_max), .name = "down_max", TIMEOUT, DEFAULT("30s"),
     DOC "The longest time for which a server is left alone.", .example = "\"2m\""},
    {ORIGINS(rules.slow_start), .name = "slow_start", TIME_OF(0, DAY), DEFAULT("0"),
     DOC "In what time the share of a server that came back grows from a sixteenth to the whole; "
         "0: at once.",
     .example = "\"30s\""},
    {ORIGINS(rules.max_connections), .name = "max_connections", COUNT(0, 1e6), DEFAULT("0"),
     DOC "Most requests under way at each server, of all workers together; 0 means no limit. "
         "Requests that find all servers full wait. Tunnels, through parents or as WebSocket, "
         "count as long as they are open; kept connections without a request do not.",
     .example = "100"},
    {ORIGINS(rules.queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "Most requests that wait for a server of the group; further ones are answered with 503, "
         "but for those that a server has failed already: they wait in front of the others.",
     .example = "50"},
    {ORIGINS(rules.queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "How long a request may wait for a server; then it is answered with 503.",
     .example = "\"500ms\""},
    {ORIGINS(health_check), .name = "health_check", STRING, .check = origins_check_path,
     .fallback_note = "requests show how a server is",
     DOC "A path that each server is asked for every check_interval. An answer from 200 to 399 "
         "brings a server up that was down; anything else is a failure as that of a request. With "
         "it, no client's request is used to try a server that is down.",
     .example = "\"/healthz\""},
    {ORIGINS(check_interval), .name = "check_interval", TIMEOUT, DEFAULT("5s"),
     DOC "The pause between two checks of a server.", .example = "\"1s\""},
    {ORIGINS(check_timeout), .name = "check_timeout", TIMEOUT, DEFAULT("2s"),
     DOC "How long a check may take to connect, and again to be answered.", .example = "\"500ms\""},
    {ORIGINS(credentials), .name = "credentials", STRING, .secret = true,
     .check = http_credentials_check, .fallback_note = "none",
     DOC "\"USER:PASSWORD\" for parent proxies that want to know who asks: sent as "
         "Proxy-Authorization, scheme Basic, with each request and each CONNECT for which a server "
         "of the section is asked as a proxy, and with no other. What clients send in that field "
         "never goes on. The connection does not hide it. The admin plane does not show it.",
     .example = "\"proxy:secret\""},

    {PARENT(origins_name), .name = "origins", STRING, .fallback_note = "none, with direct = always",
     DOC "The name of the origins section whose servers are the proxies.",
     .example = "upstream_caches"},
    {PARENT(direct), .name = "direct", WORD(direct_words), DEFAULT("never"),
     DOC "never: when no parent answers, the request fails. fallback: then it goes directly to the "
         "server that its URL names; for parents that only save bandwidth, not for those that "
         "filter. always: requests of this class do not go to a parent.",
     .example = "fallback"},

    {ONCE("cache", cache.memory), .name = "memory", SIZE_OF(1 * MB, 4096 * GB), DEFAULT("256MB"),
     DOC "Most bytes that the cache holds: bodies, heads and its own bookkeeping.",
     .example = "\"512MB\""},
    {ONCE("cache", cache.max_object), .name = "max_object", SIZE_OF(0, 4096 * GB), DEFAULT("16MB"),
     DOC "Responses with larger bodies are passed on without being stored. It can not be larger "
         "than memory.",
     .example = "\"4MB\""},
    {ONCE("cache", cache.max_variants), .name = "max_variants", COUNT(1, 1e6), DEFAULT("32"),
     DOC "Most responses that are stored for one URL whose responses vary (Vary). When there are "
         "more, the one that came first goes, so that a field of many values, such as User-Agent, "
         "does not fill the cache with copies of one page.",
     .example = "8"},
    {ONCE("cache", cache.max_ranges), .name = "max_ranges", COUNT(1, 256), DEFAULT("16"),
     DOC
     "Most ranges of a stored response that one request may ask for (Range); ranges that overlap "
     "or nearly touch are sent as one. A request for more gets the whole response, because "
     "many small ranges are an attack (RFC 9110, 14.2) rather than a need.",
     .example = "1"},
    {ONCE("cache", cache.disk_io), .name = "disk_io", WORD(disk_io_words), DEFAULT("auto"),
     DOC
     "How disks are read when a read has to wait: with auto by io_uring where the kernel allows "
     "it, else, and with threads, by threads that wait themselves. Applied at a start.",
     .example = "threads"},
    {ONCE("cache", cache.heuristic_fraction), .name = "heuristic_fraction", FLOAT_OF(0, 1),
     DEFAULT("0.1"),
     DOC "A response that does not say how long it is fresh counts as fresh for this fraction of "
         "the time since its Last-Modified (RFC 9111, 4.2.2); 0 switches guessing off.",
     .example = "0.2"},
    {ONCE("cache", cache.heuristic_max), .name = "heuristic_max", TIME_OF(0, 365 * DAY),
     DEFAULT("1d"), DOC "The longest freshness that is guessed.", .example = "\"12h\""},
    {ONCE("cache", cache.status_field), .name = "status_field", BOOL, DEFAULT("true"),
     DOC
     "Tell in each response how the cache took part: \"Cache-Status: retort; hit; ttl=30\" (RFC "
     "9211).",
     .example = "false"},
    {ONCE("cache", cache.accept_encoding), .name = "accept_encoding", STRINGS,
     .check = option_check_coding, DEFAULT("none"),
     DOC
     "The content codings that origins use. Accept-Encoding of GET and HEAD requests is then "
     "reduced to those of them that the client takes, in this order, before the cache is looked "
     "into: \"gzip, deflate, br\" and \"br;q=1.0, gzip;q=0.8\" become \"br, gzip\", a client that "
     "takes none or says nothing sends \"identity\". Clients that take the same share a variant, "
     "and the origin is asked for just that; their order of preference is lost. A request that "
     "refuses identity stays as it is. none: every field goes out as it came, and variants are "
     "selected by the list without its order.",
     .example = "{ br, zstd, gzip }"},
    {ONCE("cache", cache.x_cache), .name = "x_cache", BOOL, DEFAULT("false"),
     DOC "Tell it in the way of older caches too, for tools that look for it: \"X-Cache: HIT from "
         "retort\" where the body came from the cache, revalidated or not, else \"MISS from "
         "retort\".",
     .example = "true"},
    {ONCE("cache", cache.negative_ttl), .name = "negative_ttl", STRINGS,
     .check = negative_ttl_check, DEFAULT("none"),
     DOC
     "How long errors are fresh that do not say so themselves: a time, with the status codes "
     "before it that it is for; \"4xx\" and \"5xx\" stand for all of them. The first that names a "
     "status counts. Without codes it is for 404, 410 and all from 500 on; \"none\" is for no "
     "error. Errors that tell of the request (400, 401, 405 to 408, 411 to 417, 421, 422, 425, "
     "426, 428, 429, 431, 511) are never stored, whatever a rule says: one client could have them "
     "served to all.",
     .example = "{ \"404 410 1m\", \"5xx 5s\" }"},
    {ONCE("cache", cache.failed_lifetime), .name = "failed_lifetime", TIME_OF(0, HOUR),
     DEFAULT("5s"),
     DOC
     "How long a response is kept that passed as it was because a service said that it could not "
     "adapt it: its helper was down or too slow, or it lacked memory. Then it is fetched anew, so "
     "that the service gets it again. The time spares the origins a stampede while the outage "
     "lasts. It holds against policies too, and a response that says less keeps that. 0: such "
     "responses are not stored.",
     .example = "\"30s\""},
    {ONCE("cache", cache.refresh_pause), .name = "refresh_pause", TIME_OF(0, DAY), DEFAULT("30s"),
     DOC
     "When a refresh in the background (stale_while_revalidate) has failed, the next for the same "
     "URL is begun a second later at the earliest, then two, four and so on up to this, while "
     "the stale response is served on. 0: with the next request. The last few thousand failures "
     "are remembered.",
     .example = "\"5m\""},
    {ONCE("cache", cache.collapse_timeout), .name = "collapse_timeout", TIME_OF(0, 10 * 60 * 1000),
     DEFAULT("5s"),
     DOC
     "While one request fetches something, others for the same wait at the most so long for what "
     "it brings, then they ask the origin themselves; 0 lets every request go for itself.",
     .example = "\"2s\""},
    {ONCE("cache", cache.stale_while_revalidate), .name = "stale_while_revalidate",
     TIME_OF(0, 365 * DAY), DEFAULT("0"),
     DOC
     "How long past its freshness a stored response is served at once while it is asked for anew "
     "in the background, where the response does not say so itself (stale-while-revalidate, RFC "
     "5861); not where its Cache-Control forbids stale responses.",
     .example = "\"10s\""},
    {ONCE("cache", cache.stale_if_error), .name = "stale_if_error", TIME_OF(0, 365 * DAY),
     DEFAULT("1h"),
     DOC
     "How long past its freshness a stored response stands in when its origin can't be reached "
     "or does not answer, unless its Cache-Control forbids that (must-revalidate, "
     "proxy-revalidate, s-maxage, no-cache) or names another time (stale-if-error). Errors that "
     "an origin sends are replaced only where stale-if-error allows it.",
     .example = "\"1d\""},
    {ONCE("cache", cache.targeted), .name = "targeted", STRINGS,
     DEFAULT("CDN-Cache-Control, Surrogate-Control"),
     DOC
     "Response fields that speak to this cache alone, the most important first (RFC 9213): the "
     "first one that is there and well formed counts instead of Cache-Control and Expires. They "
     "count on reverse listeners only: those who write them mean caches that work for the "
     "origin. They are dictionaries of Structured Fields: one that does not parse, or in which "
     "a value has the wrong type, as max-age=\"60\", is ignored as a whole. Surrogate-Control "
     "is ignored in the same cases; its names may have capital letters, and max-age=60+30 means "
     "that the response may be used 30 seconds longer while it is refreshed.",
     .example = "{ \"Retort-Cache-Control\", \"CDN-Cache-Control\" }"},

    {DISK(size), .name = "size", SIZE_OF(16 * MB, 2000 * GB), DEFAULT("1GB"),
     DOC "Size of the volume. The space is taken at the start. When it is full, what was written "
         "first goes first, unless it was asked for lately.",
     .example = "\"10GB\""},
    {DISK(admission), .name = "admission", WORD(disk_admission_words), DEFAULT("all"),
     DOC
     "all: everything that is stored is written to the volume. second: only what comes from its "
     "origin for a second time, as far back as a filter remembers; it spares the device where most "
     "responses are asked for once.",
     .example = "second"},
    {DISK(max_object), .name = "max_object", SIZE_OF(0, 4096 * GB), DEFAULT("1GB"),
     DOC "Larger bodies are not written to the volume.", .example = "\"64MB\""},
    {DISK(threads), .name = "threads", COUNT(1, 64), DEFAULT("4"),
     DOC "Threads that read from the volume what the kernel does not have in its memory.",
     .example = "16"},
    {DISK(write_queue), .name = "write_queue", SIZE_OF(1 * MB, 64 * GB), DEFAULT("64MB"),
     DOC "Most bytes that wait to be written. While they are too many, new objects are kept in "
         "memory only.",
     .example = "\"256MB\""},
    {DISK(sync), .name = "sync", BOOL, DEFAULT("true"),
     DOC
     "What the admin plane answers as done (purges, removals, injected objects, lifetimes, "
     "bumps) is on the device by then (fdatasync), so that it survives a loss of power; what an "
     "unsafe method such as POST makes invalid is there 0.2 seconds later. Without it such "
     "things survive the end of the process at any moment, but not that of the machine.",
     .example = "false"},
    {DISK(write_wait), .name = "write_wait", TIME_OF(0, DAY), DEFAULT("1s"),
     DOC "A body that is too large for memory is read from its origin no faster than the volume "
         "takes it. When a quarter of write_queue is such bytes and has been for so long, the body "
         "passes on without being stored. 0: at once, so that no client ever waits for the disk.",
     .example = "\"5s\""},

    {ONCE("client", client.header_timeout), .name = "header_timeout", TIMEOUT, DEFAULT("30s"),
     DOC "How long a request's head may take, from its first byte to its last. The whole head has "
         "one deadline, so that a client can not hold a connection by sending a byte now and then.",
     .example = "\"10s\""},
    {ONCE("client", client.idle_timeout), .name = "idle_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "How long a connection may stay open between requests.", .example = "\"15s\""},
    {ONCE("client", client.body_timeout), .name = "body_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "How long a request's body may pause.", .example = "\"30s\""},
    {ONCE("client", client.send_timeout), .name = "send_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "How long a client may go without taking a byte of its response.", .example = "\"30s\""},
    {ONCE("client", client.max_head), .name = "max_head", SIZE_OF(1 * KB, 1 * MB), DEFAULT("64KB"),
     DOC "The largest head of a request; a larger one is answered with 431.",
     .example = "\"16KB\""},
    {ONCE("client", client.max_connections), .name = "max_connections", COUNT(1, 10e6),
     DEFAULT("10000"),
     DOC "Most connections from clients at a time, over all workers. Further ones are closed at "
         "once. Each needs a file descriptor: see LimitNOFILE or ulimit -n.",
     .example = "2000"},
    {ONCE("client", client.memory), .name = "memory", SIZE_OF(0, 4096 * GB), DEFAULT("0"),
     DOC "Most bytes that connections may hold: read buffers, bodies on their way to slow readers, "
         "what is kept for services. From three quarters of it on, bodies are fetched in small "
         "pieces only. At the whole of it new connections are closed, new requests are answered "
         "with 503, and the slowest readers are cut. 0: a quarter of the machine's memory. What is "
         "stored has its own bound, cache.memory.",
     .example = "\"2GB\""},
    {ONCE("client", client.max_requests), .name = "max_requests", COUNT(0, 1e9), DEFAULT("0"),
     DOC "Requests after which a connection is closed, to spread clients over proxies again; 0 "
         "means no limit.",
     .example = "1000"},

    {ONCE("origin", origin.connect_timeout), .name = "connect_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "How long connecting to one address of an origin may take before the next address is "
         "tried; after the last one the client gets 502 or 504.",
     .example = "\"2s\""},
    {ONCE("origin", origin.first_byte_timeout), .name = "first_byte_timeout", TIMEOUT,
     DEFAULT("60s"),
     DOC "How long an origin may take from the end of the request to the end of the response's "
         "head. Then the client gets 504.",
     .example = "\"20s\""},
    {ONCE("origin", origin.read_timeout), .name = "read_timeout", TIMEOUT, DEFAULT("60s"),
     DOC "How long an origin's body may pause. Then the response is cut off visibly.",
     .example = "\"20s\""},
    {ONCE("origin", origin.total_timeout), .name = "total_timeout", TIME_OF(0, DAY), DEFAULT("0"),
     DOC "How long asking an origin may take in all, from the first try to the last byte of the "
         "body, waiting for a server and slow clients included. Then the client gets 504, or a "
         "response that is cut off visibly. 0 means no limit; tunnels have none.",
     .example = "\"10m\""},
    {ONCE("origin", origin.tunnel_timeout), .name = "tunnel_timeout", TIMEOUT, DEFAULT("15m"),
     DOC "How long a tunnel (CONNECT, or an upgrade such as WebSocket) may be silent in both "
         "directions before it is cut.",
     .example = "\"1h\""},
    {ONCE("origin", origin.idle_timeout), .name = "idle_timeout", TIME_OF(0, TIMEOUT_MAX),
     DEFAULT("30s"),
     DOC "How long an unused connection is kept for the next request. Choose it shorter than the "
         "origin's own.",
     .example = "\"4s\""},
    {ONCE("origin", origin.max_head), .name = "max_head", SIZE_OF(1 * KB, 1 * MB), DEFAULT("64KB"),
     DOC "The largest head of a response; a larger one is answered with 502.",
     .example = "\"128KB\""},
    {ONCE("origin", origin.max_idle), .name = "max_idle", COUNT(0, 1e6), DEFAULT("32"),
     DOC "Most unused connections that each worker keeps to an origin; 0 opens one for every "
         "request.",
     .example = "8"},
    {ONCE("origin", origin.max_connections), .name = "max_connections", COUNT(0, 1e6), DEFAULT("0"),
     DOC
     "Most requests under way at each origin, that is host and port, of all workers together; 0 "
     "means no limit. Further ones wait. It is for origins that a map or a forward request "
     "names by URL; groups have a max_connections of their own. Tunnels, by CONNECT or as "
     "WebSocket, count as long as they are open; kept connections without a request do not.",
     .example = "50"},
    {ONCE("origin", origin.queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "Most requests that wait for one origin; further ones are answered with 503.",
     .example = "50"},
    {ONCE("origin", origin.queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "How long a request may wait for its origin; then it is answered with 503.",
     .example = "\"500ms\""},
    {ONCE("origin", origin.dns_ipv6), .name = "dns_ipv6", BOOL, DEFAULT("true"),
     DOC "Ask for IPv6 addresses (AAAA) too. Switch it off where IPv6 has no way out.",
     .example = "false"},
    {ONCE("origin", origin.dns_timeout), .name = "dns_timeout", TIMEOUT, DEFAULT("5s"),
     DOC "How long finding the addresses of a name may take.", .example = "\"2s\""},
    {ONCE("origin", origin.dns_ttl_max), .name = "dns_ttl_max", TIME_OF(0, 7 * DAY), DEFAULT("5m"),
     DOC "Addresses are asked for again after the time that the name server gives, at the latest "
         "after this one.",
     .example = "\"30s\""},

    {ACCESS_LOG(format), .name = "format", WORD(access_log_words), DEFAULT("squid"),
     DOC "squid: Squid's native format. combined: the one of Apache and nginx. json: one object a "
         "line, with everything that is known, services and times included. squid_extended and "
         "combined_extended have further columns behind those of the format: the transaction's id, "
         "and the services with their verdicts and milliseconds; combined_extended has the result "
         "of the cache in front of these.",
     .example = "json"},

    {SERVICE(uri_texts), .name = "uri", STRINGS, .required = true,
     DOC "The service's address: icap://HOST[:PORT]/SERVICE. The port is 1344 when left out. "
         "Several addresses are endpoints of the same service: each transaction goes to the one "
         "with the fewest under way, and on to another one, once, if that fails before its "
         "verdict.",
     .example = "{ \"icap://10.0.0.1/gray\", \"icap://10.0.0.2/gray\" }"},
    {SERVICE(point), .name = "point", WORD(icap_point_words), .required = true,
     DOC "Where in a request's life the service is asked (RFC 3507, 6.1). reqmod_precache: about "
         "the request, before the cache is looked into. reqmod_postcache: about the request to "
         "the origin, when the cache has no answer; what is stored still counts as the answer to "
         "the client's request. respmod_precache: about the origin's response, before it is "
         "stored, so that one adaptation serves every later hit. respmod_postcache: about each "
         "response on its way to a client, be it stored or not; what is stored stays as it is, "
         "and every client gets an adaptation of its own.",
     .example = "respmod_precache"},
    {SERVICE(remember), .name = "remember", BOOL, DEFAULT("false"),
     DOC "For point respmod_postcache: what the service makes of a stored response is kept in "
         "memory beside it, and given to all clients, until the service's ISTag changes, "
         "\"retortctl services bump\" says so, or the response itself goes; then it is made again "
         "from what is stored, without asking the origin. That the service has nothing to change "
         "is remembered too. Leave it off for services that treat clients differently. Such "
         "services are remembered as long as they stand first in the chain; those behind the "
         "first that is not are asked each time.",
     .example = "true"},
    {SERVICE(remember_by), .name = "remember_by", STRINGS, DEFAULT("Accept-Encoding"),
     DOC "Names of request header fields on which it depends what the service makes of a response, "
         "besides those that Vary names. Each combination of their values has a variant of its "
         "own. \"none\": the response alone.",
     .example = "{ Accept-Encoding, Save-Data }"},
    {SERVICE(ignore_istag), .name = "ignore_istag", BOOL, DEFAULT("false"),
     DOC
     "Whether the service's ISTags say nothing: what it made is good until \"retortctl services "
     "bump\" says otherwise, or the response goes. For servers that send no ISTag, and for those "
     "that send another one with each answer, as pyicap does: what is stored before the cache "
     "would never be used, since each answer would make old what others were made under.",
     .example = "true"},
    {SERVICE(verdict_by), .name = "verdict_by", STRINGS, DEFAULT("*"),
     DOC
     "For points reqmod_precache and reqmod_postcache: names of the request header fields on "
     "which the service's verdict depends, besides method, URL, and what the service is told "
     "of the client. A verdict that the service permits to be used again is then used for all "
     "requests in which these are the same; but a request that it has changed, an answer with "
     "Vary, and one to a Range or a condition, only for one with the same head. \"*\": the whole "
     "head counts. \"none\": method and URL alone. See "
     "verdict_space.",
     .example = "{ Accept, Origin, Referer, Sec-Fetch-Dest, Sec-Fetch-Site }"},
    {SERVICE(bypass), .name = "bypass", BOOL, DEFAULT("false"),
     DOC "What happens when the service fails or is down. true: the message goes on unchanged. "
         "false: the client gets an error page. The default is false because a service may be a "
         "filter, and a filter that can be passed by making it fail protects nobody; set it to "
         "true for services that only improve things.",
     .example = "true"},
    {SERVICE(timeout), .name = "timeout", TIMEOUT, DEFAULT("30s"),
     DOC "How long the service may take for its verdict, and then how long its answer may pause.",
     .example = "\"5s\""},
    {SERVICE(first_byte_timeout), .name = "first_byte_timeout", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "How long the service may take for its verdict once it has the word, where that differs "
         "from timeout, which then is for pauses only: a virus scanner thinks long and answers "
         "fast. 0 means timeout.",
     .example = "\"2m\""},
    {SERVICE(total_timeout), .name = "total_timeout", TIME_OF(0, DAY), DEFAULT("1h"),
     DOC "How long a whole transaction with the service may take, even if it never pauses; slow "
         "origins and clients count in. 0 means no limit.",
     .example = "\"5m\""},
    {SERVICE(connect_timeout), .name = "connect_timeout", TIMEOUT, DEFAULT("3s"),
     DOC
     "How long connecting to the ICAP server may take, and how long its host may leave unanswered "
     "what it has to acknowledge: then it counts as lost, and so do all services there. That "
     "the service thinks for longer is no matter.",
     .example = "\"500ms\""},
    {SERVICE(idle_timeout), .name = "idle_timeout", TIME_OF(0, TIMEOUT_MAX), DEFAULT("60s"),
     DOC "How long an unused connection to the ICAP server is kept.", .example = "\"20s\""},
    {SERVICE(max_connections), .name = "max_connections", COUNT(1, 1e6), DEFAULT("64"),
     DOC "Most connections to the service, over all its endpoints and all workers, idle ones "
         "included. What an endpoint says as Max-Connections is held besides, for all workers "
         "together. Transactions that find all of them busy wait. Where the server states none and "
         "this is left out, the log says so, since connections that it has no thread for only "
         "wait there.",
     .example = "16"},
    {SERVICE(queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC "How many transactions of a worker may wait for a connection to the service. Those beyond "
         "are treated as if the service had failed, at once.",
     .example = "100"},
    {SERVICE(queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("10s"),
     DOC "How long a transaction may wait for a connection to the service before it is treated as "
         "if the service had failed.",
     .example = "\"1s\""},
    {SERVICE(preview), .name = "preview", SIZE_OF(0, 1 * MB), DEFAULT("4KB"),
     DOC "The largest preview of a body; the service's own Preview lowers it. 0: none is sent, "
         "and every service gets whole bodies.",
     .example = "\"1KB\""},
    {SERVICE(preview_wait), .name = "preview_wait", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "How long the bytes of a preview may take to come, once a body has made the service wait "
         "for one. Then the preview ends with those that are there, maybe none, and the service "
         "decides about these; else the head of a page that drips, or of a stream of events, and "
         "what has come of it reach the client only when the preview is full. For services that "
         "need no beginning, as gzip and inject; one that tells a body's kind by it, a scanner "
         "say, could be deceived by an origin that pauses. 0: as long as it takes.",
     .example = "\"100ms\""},
    {SERVICE(keep), .name = "keep", SIZE_OF(0, 1 * GB), DEFAULT("256KB"),
     DOC "How much of a body is kept in memory until the service's verdict, so that the original "
         "can be sent after a 204 or a failure, or the request repeated. What is beyond goes to a "
         "file, see keep_on_disk. At least as large as preview.",
     .example = "\"1MB\""},
    {SERVICE(keep_on_disk), .name = "keep_on_disk", SIZE_OF(0, 1024 * GB), DEFAULT("16GB"),
     DOC "How much more of a body is kept in a file in temporary_directory. Only what a service "
         "reads before it has decided goes there; a service that answers while it reads costs no "
         "file. Bodies larger than both can not be bypassed, nor left as they are by a 204 after "
         "the preview, once more than this was sent. 0: no file.",
     .example = "\"1GB\""},
    {SERVICE(decode), .name = "decode", BOOL, DEFAULT("false"),
     DOC "Whether the service is to see responses without content codings: gzip, deflate, br and "
         "zstd are undone in front of the first service of a chain that wants that, once for all "
         "that follow. A response that none of them changes goes on as it came. Responses with "
         "Cache-Control: no-transform and with codings that are not known stay coded. One that "
         "turns out not to be decodable, or to be past decode_size or decode_ratio, counts as a "
         "failure of the service: bypass says what happens then.",
     .example = "true"},
    {SERVICE(decode_size), .name = "decode_size", SIZE_OF(1 * MB, 1024 * GB), DEFAULT("256MB"),
     DOC "How much a body may become by decoding.", .example = "\"1GB\""},
    {SERVICE(decode_ratio), .name = "decode_ratio", COUNT(0, 1e6), DEFAULT("200"),
     DOC "How many times as much as was sent a body may become by decoding; the first MB is free. "
         "Pages become 4 to 20 times as much, bombs 1000 times and more. 0: any.",
     .example = "1000"},
    {SERVICE(trickle_after), .name = "trickle_after", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "For a service that must see all of a body, such as a virus scanner: when it has not "
         "decided for so long the client gets the head, and of the body as it was a little now and "
         "then, so that it does not give up. Never more than half of what has come is sent before "
         "the verdict. If that is anything but the same response, the connection is cut: what the "
         "client has is incomplete, and it can tell. Such a response has no Content-Length and is "
         "not stored. Only the last service of a chain can have it, without decoding in front of "
         "it, and without routing. 0: never.",
     .example = "\"5s\""},
    {SERVICE(trickle_bytes), .name = "trickle_bytes", SIZE_OF(1, 1 * MB), DEFAULT("1KB"),
     DOC "How much of a body trickles at a time.", .example = "\"64KB\""},
    {SERVICE(trickle_every), .name = "trickle_every", TIMEOUT, DEFAULT("1s"),
     DOC "How long the next portion is waited for.", .example = "\"5s\""},
    {SERVICE(patience_after), .name = "patience_after", TIME_OF(0, DAY), DEFAULT("0s"),
     DOC "For downloads by browsers: when there is no verdict for so long, a page goes out that "
         "tells how far things are, asks again by itself, and becomes the download in the end. "
         "For a GET whose Accept names text/html and whose response is a 200 but not HTML; others "
         "wait, or see trickle_after, of which the one that comes first counts. See patience_keep. "
         "Only at respmod_precache. 0: never.",
     .example = "\"5s\""},
    {SERVICE(failures_down), .name = "failures_down", COUNT(1, 1e6), DEFAULT("10"),
     DOC
     "So many transactions in a row, of all workers, must fail for an endpoint of the service to "
     "be taken for down. One that can not be connected to, or whose host has fallen silent for "
     "connect_timeout, is down at once.",
     .example = "3"},
    {SERVICE(down_min), .name = "down_min", TIMEOUT, DEFAULT("1s"),
     DOC
     "How long a service that failed is left alone before it is asked for its OPTIONS again. "
     "Each further failure doubles the time up to down_max. One that can not be reached is tried "
     "twice a second all the same, which costs a packet or two, so that its return is noticed.",
     .example = "\"2s\""},
    {SERVICE(down_max), .name = "down_max", TIMEOUT, DEFAULT("30s"),
     DOC "The longest time for which a service is left alone.", .example = "\"5m\""},
    {SERVICE(routing), .name = "routing", BOOL, DEFAULT("false"),
     DOC "Whether the service may say which services follow it: X-Next-Services in its answer, a "
         "list of names of icap_service sections of the same point, takes the place of what adapt "
         "sections have behind it; an empty one ends the chain.",
     .example = "true"},
    {SERVICE(credentials), .name = "credentials", STRING, .secret = true,
     .check = http_credentials_check, .fallback_note = "none",
     DOC "\"USER:PASSWORD\" for an ICAP server that wants to know who asks: sent as "
         "Proxy-Authorization, scheme Basic (RFC 3507, 7.1). Only icaps:// hides them on the way. "
         "The admin plane does not show them.",
     .example = "\"proxy:secret\""},
    {SERVICE(verify), .name = "verify", BOOL, DEFAULT("true"),
     DOC "Whether the certificate of a server whose uri begins with icaps:// must be trusted, in "
         "force, and for the uri's host. Without that whoever stands between can read and change "
         "all that is sent.",
     .example = "false"},
    {SERVICE(ca_file), .name = "ca_file", STRING, .fallback_note = "what the system trusts",
     DOC "A file of certificates in PEM: the authorities that certificates of icaps servers may "
         "come from, or a server's own certificate if it signed that itself. Read when the proxy "
         "starts and when it reloads.",
     .example = "\"/etc/retort/icap-ca.pem\""},
    {SERVICE(certificate), .name = "certificate", STRING, .fallback_note = "none",
     DOC "A file with the certificate, in PEM, that the proxy shows to an icaps server which wants "
         "one, and those of its issuers behind it. Together with certificate_key.",
     .example = "\"/etc/retort/proxy.pem\""},
    {SERVICE(certificate_key), .name = "certificate_key", STRING, .fallback_note = "none",
     DOC "A file with the key of that certificate, in PEM, without a password.",
     .example = "\"/etc/retort/proxy.key\""},
    {SERVICE(proxy_credentials), .name = "proxy_credentials", BOOL, DEFAULT("false"),
     DOC
     "Whether the service sees Proxy-Authorization of requests and Proxy-Authenticate of "
     "responses, as fields of the ICAP request (RFC 3507, 4.4.2). They hold clients' passwords: "
     "only for a service that checks them. Not together with credentials.",
     .example = "true"},
    {SERVICE(include), .name = "include", STRINGS, DEFAULT("X-Client-IP"),
     DOC
     "Fields about the client and the server that the service gets even if the X-Include of "
     "its OPTIONS does not ask for them: X-Client-IP, X-Client-Port, X-Server-IP. \"none\": only "
     "what it asks for. What it said of one client's request is used again (verdict_space) for "
     "those alone of whom it would be told the same.",
     .example = "{ X-Client-IP, X-Client-Port }"},

    {URL_CLASS(hosts), .name = "host", STRINGS, .check = url_class_check_host,
     DOC "Names of hosts, exactly; \"*.example.com\" stands for all names below example.com, "
         "without itself.",
     .example = "{ \"www.example.com\", \"*.img.example.com\" }"},
    {URL_CLASS(domains), .name = "domain", STRINGS, .check = url_class_check_domain,
     DOC "Domains: the name itself and all names below it.", .example = "\"example.com\""},
    {URL_CLASS(path_regexes), .name = "path_regex", STRINGS, .check = regex_check,
     DOC "Regular expressions (PCRE2, as in Perl) that are searched in the URL's path, without the "
         "query. They tell upper from lower case unless they begin with (?i). A search that takes "
         "more than a hundred thousand steps, as a hostile URL may provoke, counts as no match. "
         "However many there are, only those are searched for whose fixed texts of at least two "
         "characters stand in the path; give each one that is its own.",
     .example = "'\\.(jpe?g|gif|png)$'"},
    {URL_CLASS(url_regexes), .name = "url_regex", STRINGS, .check = regex_check,
     DOC "Regular expressions that are searched in the whole URL, query included.",
     .example = "'[?&]utm_source='"},
    {URL_CLASS(methods), .name = "method", STRINGS, .check = url_class_check_method,
     DOC "Request methods.", .example = "{ GET, HEAD }"},
    {URL_CLASS(content_types), .name = "content_type", STRINGS,
     .check = url_class_check_content_type,
     DOC "Media types of the response, without parameters; \"image/*\" stands for all images. A "
         "class with this condition matches only where there is a response, never for a reqmod "
         "service.",
     .example = "{ \"text/html\", \"image/*\" }"},
    {URL_CLASS(clients), .name = "client", STRINGS, .check = url_class_check_client,
     DOC "Addresses and networks of clients. What is adapted before the cache is stored and then "
         "served to everybody, so use it for request services, or where all clients of the cache "
         "are meant.",
     .example = "{ \"10.1.0.0/16\", \"2001:db8::/32\" }"},

    {ADAPT(services), .name = "services", STRINGS, .required = true,
     DOC "Names of icap_service sections, in the order in which they are asked.",
     .example = "{ adremover, gzip }"},

    {POLICY(cache), .name = "cache", WORD(policy_cache_words), DEFAULT("normal"),
     DOC "normal: responses are stored as RFC 9111 has it. never: the cache is neither asked nor "
         "filled. always: responses of every status are stored that have a lifetime, be it from a "
         "ttl of this policy; what is private, no-store, or an answer to an authorized request is "
         "not, see override.",
     .example = "always"},
    {POLICY(override), .name = "override", BOOL, DEFAULT("false"),
     DOC
     "With cache = always: no-store, private, no-cache, must-revalidate and proxy-revalidate of "
     "responses, and no-store of requests, count for nothing. One client then gets what was "
     "meant for another, so use it only where you know that everybody gets the same. Answers to "
     "requests with Authorization stay unstored unless the origin allows it.",
     .example = "true"},
    {POLICY(ttl), .name = "ttl", TIME_OF(0, 3650 * DAY), .fallback_note = "what the response says",
     DOC "How long responses are fresh from when they came, whatever they say themselves. Errors "
         "(status 400 and above) keep what they say; see negative_ttl. It makes nothing storable "
         "that is not, and no-cache still means that the origin is asked each time.",
     .example = "\"10m\""},
    {POLICY(ttl_default), .name = "ttl_default", TIME_OF(0, 3650 * DAY),
     .fallback_note = "guessed from Last-Modified",
     DOC "How long responses are fresh that have neither max-age, s-maxage nor Expires, errors "
         "excepted.",
     .example = "\"5m\""},
    {POLICY(ttl_min), .name = "ttl_min", TIME_OF(0, 3650 * DAY), .fallback_note = "none",
     DOC "The shortest time for which responses are fresh, errors excepted. A longer time than the "
         "origin's own is a promise that you make in its place.",
     .example = "\"10s\""},
    {POLICY(ttl_max), .name = "ttl_max", TIME_OF(0, 3650 * DAY), .fallback_note = "none",
     DOC "The longest time for which responses are fresh.", .example = "\"1d\""},
    {POLICY(negative_ttl), .name = "negative_ttl", STRINGS, .check = negative_ttl_check,
     .fallback_note = "cache.negative_ttl", DOC "As cache.negative_ttl, which then has no say.",
     .example = "\"30s\""},
    {POLICY(required_headers), .name = "required_headers", COUNT(0, 2), DEFAULT("0"),
     DOC
     "What a response must say to be stored, as in Traffic Server. 0: nothing. 1: Last-Modified, "
     "Expires, max-age or s-maxage. 2: how long it is fresh, with Expires, max-age or s-maxage. "
     "cache = always demands nothing, and neither does negative_ttl of the errors it is for.",
     .example = "2"},
    {POLICY(ignore_client_no_cache), .name = "ignore_client_no_cache", BOOL, DEFAULT("false"),
     DOC
     "Whether no-cache, max-age=0 and Pragma of requests count for nothing, so that clients can "
     "not make the proxy ask the origin.",
     .example = "true"},
    {POLICY(max_variants), .name = "max_variants", COUNT(1, 1e6),
     .fallback_note = "cache.max_variants", DOC "As cache.max_variants.", .example = "4"},
    {POLICY(query_drop), .name = "query_drop", STRINGS, .check = policy_check_parameter,
     DOC "Names of parameters of the query that make no difference to what is stored; a '*' at the "
         "end stands for the rest of the name. The origin does not get them either, unless "
         "query_sent says so.",
     .example = "{ \"utm_*\", fbclid }"},
    {POLICY(query_keep), .name = "query_keep", STRINGS, .check = policy_check_parameter,
     DOC "The only parameters that make a difference; query_drop takes from these.",
     .example = "{ id, page }"},
    {POLICY(query_sort), .name = "query_sort", BOOL, DEFAULT("false"),
     DOC "Whether the order of the parameters makes no difference. Those of one name stay in "
         "theirs. The origin gets them sorted by their names, unless query_sent says otherwise.",
     .example = "true"},
    {POLICY(query_ignore), .name = "query_ignore", BOOL, DEFAULT("false"),
     DOC "Whether the query as a whole makes no difference.", .example = "true"},
    {POLICY(query_sent), .name = "query_sent", WORD(query_sent_words), DEFAULT("stored"),
     DOC
     "Which query the origin gets of GET and HEAD requests that the cache has a part in. stored: "
     "what query_drop, query_keep, query_sort and query_ignore leave, by which the response is "
     "stored. So what everybody gets does not depend on what one client has written. whole: the "
     "query as the client wrote it. Use it only where the origin counts visits by it and its "
     "response does not depend on it: else one client chooses what all others get.",
     .example = "whole"},
    {POLICY(strip_cookies), .name = "strip_cookies", BOOL, DEFAULT("false"),
     DOC
     "Whether Cookie is taken from GET and HEAD requests before the cache is looked into, and "
     "Set-Cookie from the responses that are stored: for what is the same for everybody, though "
     "the site sets its cookies everywhere.",
     .example = "true"},
    {POLICY(set_cookie), .name = "set_cookie", WORD(set_cookie_words), DEFAULT("explicit"),
     DOC
     "What becomes of responses with Set-Cookie. explicit: stored where the response itself says "
     "how long it is fresh, as RFC 9111 allows: its origin has thought of caches; not where the "
     "lifetime is guessed, or longer by a policy, since that origin has not, and the cookie may "
     "be somebody's session. store: stored, with the cookie. pass: not stored. strip: stored "
     "without the cookie; what is not stored keeps it.",
     .example = "strip"},
    {POLICY(stale_if_error), .name = "stale_if_error", TIME_OF(0, 3650 * DAY),
     .fallback_note = "what the response says, else cache.stale_if_error",
     DOC "How long past its freshness a stored response stands in for an origin that does not "
         "answer or answers with 500, 502, 503 or 504, as if the response had said stale-if-error. "
         "0: not at all.",
     .example = "\"1h\""},

    {POLICY(stale_while_revalidate), .name = "stale_while_revalidate", TIME_OF(0, 3650 * DAY),
     .fallback_note = "what the response says, else cache.stale_while_revalidate",
     DOC
     "How long past its freshness a stored response is served at once while it is asked for anew "
     "in the background, as if the response had said stale-while-revalidate. 0: not at all.",
     .example = "\"1m\""},

    {ONCE("admin", admin.listen), .name = "listen", STRING, .fallback_note = "no admin plane",
     DOC
     "A path for a Unix socket, which only the proxy's user (and root) can reach, or a loopback "
     "address with a port, which every user of the machine can. Other addresses are refused: "
     "the admin plane has no passwords. A reload does not change it.",
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
             "is not a content coding: write small letters, as in \"gzip\"; identity goes without "
             "saying");
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
