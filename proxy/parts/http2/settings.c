/* The options of HTTP/2, which stand in sections of the core. */
#include "http2/settings.h"

#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

/* enum origins_http2. */
static const char *const http2_words[] = {"auto", "on", "off", NULL};

/* Whether HTTP/2 may be spoken: the TLS handshake offers it, which is the core's, and so is the choice of a connection to an
 * origin. */
static const struct option core_rows[] = {
    {ONE("listen", struct listen_settings, http2), .name = "http2", .after = "proxy_protocol",
     AT_RUN_TIME, BOOL, DEFAULT("true"),
     DOC
     "Sets whether clients may speak HTTP/2 (RFC 9113). A listener with certificates offers it "
     "in the TLS handshake (ALPN), before HTTP/1.1; so does Retort inside connections that it "
     "intercepts. In clear text a client that knows beforehand that it may speak HTTP/2 begins "
     "with it. Retort ignores a request to upgrade from HTTP/1.1 (Upgrade: h2c). false: clients "
     "speak HTTP/1.1 only.",
     .example = "false"},
    {ONE("origins", struct origins_settings, http2), .name = "http2", .after = "proxy_protocol",
     AT_RUN_TIME, WORD(http2_words), DEFAULT("auto"),
     DOC
     "Sets whether the servers of the group are asked with HTTP/2 (RFC 9113). auto: servers with "
     "https:// URLs choose in the TLS handshake (ALPN) between HTTP/2 and HTTP/1.1, and servers "
     "with http:// URLs are asked with HTTP/1.1. on: the same for https, and servers with "
     "http:// URLs are asked with HTTP/2 at once, so all of them must speak it. off: HTTP/1.1 "
     "only. Requests that need a connection of their own go by HTTP/1.1 in each case: upgrades "
     "such as WebSocket, and those with NTLM or Negotiate credentials. So do requests to parent "
     "proxies; inside a tunnel that a parent opens, the value of the origin counts.",
     .example = "on"},
    {ONE("origin", struct settings, origin.http2), .name = "http2", .after = "hosts_file",
     AT_RUN_TIME, WORD(http2_words), DEFAULT("auto"),
     DOC
     "Sets whether origins that no origins section names are asked with HTTP/2 (RFC 9113): those "
     "in the URLs of forward requests and in map sections. auto: https origins choose in the TLS "
     "handshake (ALPN) between HTTP/2 and HTTP/1.1, and http origins are asked with HTTP/1.1. "
     "on: the same for https, and http origins are asked with HTTP/2 at once, so all of them "
     "must speak it. off: HTTP/1.1 only. Requests that need a connection of their own go by "
     "HTTP/1.1 in each case: upgrades such as WebSocket, and those with NTLM or Negotiate "
     "credentials.",
     .example = "off"},
    {.name = NULL},
};

#define CLIENT(member) ONE("client", struct http2_settings, client.member)
#define ORIGIN(member) ONE("origin", struct http2_settings, origin.member)

static const struct option rows[] = {
    {CLIENT(streams), .name = "http2_streams", COUNT(1, 10000), DEFAULT("128"),
     DOC "Limits the number of requests under way at a time on one HTTP/2 connection. Clients are "
         "told (SETTINGS_MAX_CONCURRENT_STREAMS), and wait. A request above that is refused with "
         "REFUSED_STREAM, so that the client may send it again, and "
         "retort_client_http2_streams_refused_total counts it.",
     .example = "32"},
    {CLIENT(window), .name = "http2_window", SIZE_OF(1 * KB, 16 * MB), DEFAULT("256KB"),
     DOC "Sets how many bytes of a request's body a client may send ahead on one HTTP/2 stream, "
         "while Retort has not passed them on (SETTINGS_INITIAL_WINDOW_SIZE). With a larger window "
         "uploads over long ways are faster, and each upload that waits takes more memory.",
     .example = "\"1MB\""},
    {CLIENT(connection_window), .name = "http2_connection_window", SIZE_OF(64 * KB, 64 * MB),
     DEFAULT("1MB"),
     DOC "Sets how many bytes of all request bodies of one HTTP/2 connection a client may send "
         "ahead. It bounds the memory that the uploads of one connection take.",
     .example = "\"4MB\""},
    {CLIENT(frame_size), .name = "http2_frame_size", SIZE_OF(16 * KB, 1 * MB), DEFAULT("16KB"),
     DOC "Sets the size of the largest HTTP/2 frame that clients may send "
         "(SETTINGS_MAX_FRAME_SIZE). A larger frame ends the connection with FRAME_SIZE_ERROR, and "
         "retort_client_http2_protocol_errors_total counts it.",
     .example = "\"64KB\""},
    {CLIENT(budget), .name = "http2_budget", COUNT(100, 1e6), DEFAULT("1000"),
     DOC
     "Limits the work without use that an HTTP/2 connection may cause: requests that the client "
     "gives up or that break the protocol, and frames that carry nothing, such as PING, "
     "SETTINGS, PRIORITY, empty DATA, and WINDOW_UPDATE with few bytes. A frame costs one "
     "unit, a request that is reset two. Time brings all units back within a minute, and "
     "within 5 seconds where as many requests are answered. A connection that has used "
     "up its budget is ended with ENHANCE_YOUR_CALM, and "
     "retort_client_http2_calmed_total counts it.",
     .example = "5000"},
    {ORIGIN(connections), .name = "http2_connections", .after = "http2", COUNT(1, 10000),
     DEFAULT("100"),
     DOC
     "Limits the number of HTTP/2 connections that each worker opens to an origin. Another one "
     "is opened when the others carry as many requests as the origin allows, or as "
     "http2_streams. Then requests wait, for connect_timeout at most: after that time the client "
     "gets 504, and retort_origin_http2_wait_timeouts_total counts the request.",
     .example = "16"},
    {ORIGIN(streams), .name = "http2_streams", .after = "http2_connections", COUNT(1, 10000),
     DEFAULT("100"),
     DOC "Limits the number of requests under way at a time on one HTTP/2 connection to an origin. "
         "The origin may allow fewer (SETTINGS_MAX_CONCURRENT_STREAMS).",
     .example = "32"},
    {ORIGIN(window), .name = "http2_window", .after = "http2_streams", SIZE_OF(16 * KB, 16 * MB),
     DEFAULT("256KB"),
     DOC
     "Sets how many bytes of a response an origin may send ahead on one HTTP/2 stream, while its "
     "client has not taken them (SETTINGS_INITIAL_WINDOW_SIZE). With a larger window, downloads "
     "over long ways are faster, and each slow client takes more memory. The window of the "
     "connection is so large that a slow client does not stop the others.",
     .example = "\"1MB\""},
    {ORIGIN(budget), .name = "http2_budget", .after = "http2_window", COUNT(100, 1e6),
     DEFAULT("10000"),
     DOC "Limits the work without use that an origin may cause on an HTTP/2 connection: requests "
         "that it resets, and frames that carry nothing, such as PING, SETTINGS, empty DATA, and "
         "WINDOW_UPDATE with few bytes. Each costs one unit or two. Responses earn units back, and "
         "so does time. A connection that has used up its budget is ended with ENHANCE_YOUR_CALM, "
         "and retort_origin_http2_calmed_total counts it.",
     .example = "1000"},
    {.name = NULL},
};

static bool http2_load(struct load *load, void *mine) {
    return load_values(load, document_section(load->document, "client", NULL), "client", mine) &&
           load_values(load, document_section(load->document, "origin", NULL), "origin", mine);
}

const struct part_settings http2_part_settings = {
    .options = rows,
    .core_options = core_rows,
    .size = sizeof(struct http2_settings),
    .load = http2_load,
};
