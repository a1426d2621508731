/*
 * The settings of origin groups and parent proxies.
 *
 *     origins web {
 *         servers = { "http://10.0.0.1:80 weight=2", "http://10.0.0.9 backup" }
 *         # or the servers that DNS names: "https://_https._tcp.shop.example srv"
 *         balance = least_connections
 *     }
 *     map "/" { origin = web }
 *     parent all { origins = upstream_caches  direct = fallback }
 *
 *     struct origin_server_settings server;
 *     if (!origins_parse_server(&server, "http://10.0.0.1 weight=2", error, sizeof error)) ...
 *     origins_release_server(&server);
 *
 * Threads: read-only once loaded. Units: milliseconds.
 */
#ifndef RETORT_SETTINGS_ORIGINS_H
#define RETORT_SETTINGS_ORIGINS_H

#include "http/url.h"
#include "tls/trust.h"

struct url_class;

/* May a name lead to the proxy's own machine? */
/* The header of the PROXY protocol that connections begin with, and the bytes that one takes at most (part.h). */
enum proxy_header_version { PROXY_HEADER_OFF, PROXY_HEADER_V1, PROXY_HEADER_V2 };
enum { PROXY_HEADER_WRITTEN = 128 };

enum local_destinations { LOCAL_DENY, LOCAL_ALLOW };

enum origins_balance {
    ORIGINS_ROUND_ROBIN,
    ORIGINS_LEAST_CONNECTIONS,
    ORIGINS_CONSISTENT_HASH,
};
/* The value that a consistent hash is made of. */
enum origins_hash { ORIGINS_HASH_URL, ORIGINS_HASH_HOST, ORIGINS_HASH_CLIENT };

struct origin_server_settings {
    char *text;     /* the URL alone, without what follows it */
    struct url url; /* slices of text */
    bool srv;       /* the URL's host is a name whose SRV records name the servers */
    char *name;     /* with srv: what the servers are called, in lower case; NULL: no srv */
    unsigned weight;
    bool backup; /* asked only while no other server is up */
    bool drain;  /* gets no new requests */
};

enum { ORIGINS_TRIES_MAX = 8, ORIGINS_WEIGHT_MAX = 256, ORIGINS_SERVERS_MAX = 1024 };

struct origins_rules {
    enum origins_balance balance;
    enum origins_hash hash_by;
    unsigned tries;              /* servers that are tried for one request at most */
    unsigned max_failures;       /* failures in a row that take a server down; 0: never */
    uint64_t down_min, down_max; /* shortest and longest pause before a failed server is tried */
    uint64_t slow_start;         /* time until a returning server has its full share; 0: none */
    unsigned max_connections;    /* requests in progress at each server, for all workers; 0: no
                               * limit */
    unsigned queue_max;          /* requests that may wait for a server */
    uint64_t queue_timeout;      /* how long a request may wait */
    bool failure_status[100];    /* for 500 to 599: whether the status counts as a failure */
};

/* Which versions of HTTP servers may be asked with. */
enum origins_http2 {
    ORIGINS_HTTP2_AUTO, /* https: what the TLS handshake agrees on; http: HTTP/1.1 */
    ORIGINS_HTTP2_ON,   /* https: likewise; http: HTTP/2 without asking */
    ORIGINS_HTTP2_OFF,
};

struct origins_settings {
    char *name;
    char **server_texts;
    char **failure_texts;
    struct origin_server_settings *servers;
    size_t server_count;
    struct origins_rules rules;
    uint64_t srv_ttl_min, srv_ttl_max; /* bounds of how long an answer about SRV records is kept */
    unsigned srv_servers;              /* of one name, at most */
    enum local_destinations local_destinations; /* of servers that SRV records name */
    char *health_check;                         /* path; NULL: none */
    uint64_t check_interval, check_timeout;
    enum proxy_header_version proxy_protocol; /* of the header that connections begin with */
    char *credentials; /* "user:password" for servers that are asked as proxies; NULL: none */
    enum origins_http2 http2;
    struct tls_trust_settings trust; /* what the group does not set is that of "origin" */
};

enum parent_direct { PARENT_DIRECT_NEVER, PARENT_DIRECT_FALLBACK, PARENT_DIRECT_ALWAYS };

/* A section parent CLASS { origins = NAME }: requests of the class go to another proxy. */
struct parent_settings {
    const struct url_class *url_class;
    char *origins_name;
    const struct origins_settings *origins; /* NULL: PARENT_DIRECT_ALWAYS */
    enum parent_direct direct;
};

/* Parses "URL [weight=N] [backup] [drain]" or "URL srv [name=HOST] [backup] [drain]". The caller releases *server, also after false. */
bool origins_parse_server(struct origin_server_settings *server, const char *text, char *error,
                          size_t error_size);
void origins_release_server(struct origin_server_settings *server);

/* Whether a value is well formed, for the option table. */
bool origins_check_server(const char *text, char *error, size_t error_size);
bool origins_check_status(const char *text, char *error, size_t error_size);
bool origins_check_alias(const char *text, char *error, size_t error_size);

#endif
