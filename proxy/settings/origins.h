/*
 * Origin groups and parent proxies as they are configured.
 *
 *     origins web {
 *         servers = { "http://10.0.0.1:80 weight=2", "http://10.0.0.2:80", "http://10.0.0.9 backup"
 * } balance = least_connections
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

struct url_class;

enum origins_balance {
    ORIGINS_ROUND_ROBIN,
    ORIGINS_LEAST_CONNECTIONS,
    ORIGINS_CONSISTENT_HASH,
};
/* What a consistent hash is of. */
enum origins_hash { ORIGINS_HASH_URL, ORIGINS_HASH_HOST, ORIGINS_HASH_CLIENT };

struct origin_server_settings {
    char *text;     /* its URL, without what follows it */
    struct url url; /* slices of text */
    unsigned weight;
    bool backup; /* asked only while no other server is up */
};

enum { ORIGINS_TRIES_MAX = 8, ORIGINS_WEIGHT_MAX = 256, ORIGINS_SERVERS_MAX = 1024 };

struct origins_rules {
    enum origins_balance balance;
    enum origins_hash hash_by;
    unsigned tries;              /* servers that one request is tried at */
    unsigned max_failures;       /* in a row, then it is down; 0: never */
    uint64_t down_min, down_max; /* back-off of a server that fails */
    uint64_t slow_start;         /* until a server that came back has its whole share; 0: at once */
    unsigned max_connections; /* requests under way at each server, of all workers; 0: no limit */
    unsigned queue_max;       /* requests that wait for a server */
    uint64_t queue_timeout;   /* how long each of them may */
    bool failure_status[100]; /* 500 to 599: the answer counts as a failure */
};

struct origins_settings {
    char *name;
    char **server_texts;
    char **failure_texts;
    struct origin_server_settings *servers;
    size_t server_count;
    struct origins_rules rules;
    char *health_check; /* path; NULL: none */
    uint64_t check_interval, check_timeout;
    char *credentials; /* "user:password" for servers that are asked as proxies; NULL: none */
};

enum parent_direct { PARENT_DIRECT_NEVER, PARENT_DIRECT_FALLBACK, PARENT_DIRECT_ALWAYS };

/* parent CLASS { origins = NAME }: requests of the class go to another proxy. */
struct parent_settings {
    const struct url_class *url_class;
    char *origins_name;
    const struct origins_settings *origins; /* NULL: PARENT_DIRECT_ALWAYS */
    enum parent_direct direct;
};

/* "URL [weight=N] [backup]". What is in *server is the caller's to release, also after false. */
bool origins_parse_server(struct origin_server_settings *server, const char *text, char *error,
                          size_t error_size);
void origins_release_server(struct origin_server_settings *server);

/* Whether a value is well formed, for the option table. */
bool origins_check_server(const char *text, char *error, size_t error_size);
bool origins_check_status(const char *text, char *error, size_t error_size);
bool origins_check_path(const char *text, char *error, size_t error_size);
bool origins_check_alias(const char *text, char *error, size_t error_size);

#endif
