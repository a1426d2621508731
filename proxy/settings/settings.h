/*
 * Settings: the configuration file, parsed once into an immutable snapshot.
 *
 *     char error[SETTINGS_ERROR];
 *     struct settings *settings = settings_load("/etc/retort/retort.conf", error);
 *     if (settings == NULL) fprintf(stderr, "%s\n", error);      "retort.conf:12: ..."
 *     ...
 *     settings_release(&settings);
 *
 * A reload makes a new snapshot and hands it to every worker; a transaction keeps the one it began
 * with. Every option stands once, in the table of settings/options.c, with its type, default, range
 * and documentation; docs/CONFIGURATION.md and retort.conf(5) are printed from it.
 *
 * Threads: read-only after settings_load; the reference count is atomic.
 * Units: sizes in bytes, times in milliseconds.
 */
#ifndef RETORT_SETTINGS_SETTINGS_H
#define RETORT_SETTINGS_SETTINGS_H

#include "base/log.h"
#include "http/url.h"
#include "net/address.h"
#include "settings/origins.h"
#include "settings/policy.h"

#include <stdatomic.h>
#include <stdio.h>

enum { SETTINGS_ERROR = 1024 };

enum listen_mode { LISTEN_FORWARD, LISTEN_REVERSE };
enum local_destinations { LOCAL_DENY, LOCAL_ALLOW };

struct listen_settings {
    struct address address;
    enum listen_mode mode;
    enum local_destinations local_destinations; /* net/reach.h; of forward listeners */
    struct network *allow;                      /* clients that may use it; none: everybody */
    size_t allow_count;
};

/* map "PREFIX" { origin = "URL" } or { origin = NAME }: reverse mode. The longest matching prefix
 * wins; one with a host before one without. */
struct map_settings {
    char *host;        /* lower case, with ":port" if it is not 80; NULL: any */
    char *path;        /* prefix, starts with '/' */
    char *origin_text; /* as configured */
    struct url origin; /* slices of origin_text; its path replaces the prefix */
    const struct origins_settings *origins; /* NULL: one origin; else of `origin` only the path */
    char *parent_text;                      /* name of a group of proxies to ask; NULL: none */
    const struct origins_settings *parents;
    bool preserve_host;    /* send the client's Host to the origin rather than the origin's name */
    bool rewrite_location; /* URLs in the origin's headers become the client's */
    char **origin_aliases; /* what else the origin calls itself; ends with NULL; NULL: nothing */
};

enum access_log_format {
    ACCESS_LOG_SQUID,
    ACCESS_LOG_COMBINED,
    ACCESS_LOG_JSON,
    ACCESS_LOG_SQUID_EXTENDED,
    ACCESS_LOG_COMBINED_EXTENDED
};

struct access_log_settings {
    char *path;
    enum access_log_format format;
};

/* cache { disk "PATH" { ... } }: a volume of the cache on disk. */
enum disk_io { DISK_IO_AUTO, DISK_IO_THREADS };
enum disk_admission { DISK_ADMIT_ALL, DISK_ADMIT_SECOND };

struct disk_settings {
    char *path;                    /* a directory, a file, or a block device */
    size_t size;                   /* of the volume */
    enum disk_admission admission; /* DISK_ADMIT_SECOND: what is asked for a second time */
    size_t max_object;             /* larger bodies are not kept on disk */
    unsigned threads;              /* that read */
    size_t write_queue;            /* bytes that may wait to be written */
    bool sync;                     /* what was answered as done is on the device */
    uint64_t write_wait;           /* milliseconds that a large body waits for the others */
};

/* The vectoring points of RFC 3507 §6.1, in the order in which a request meets them. */
enum adapt_point {
    ADAPT_REQMOD_PRECACHE,
    ADAPT_REQMOD_POSTCACHE,
    ADAPT_RESPMOD_PRECACHE,
    ADAPT_RESPMOD_POSTCACHE,
    ADAPT_POINTS,
};

static inline bool adapt_point_is_reqmod(enum adapt_point point) {
    return point == ADAPT_REQMOD_PRECACHE || point == ADAPT_REQMOD_POSTCACHE;
}

/* As in the configuration. */
const char *adapt_point_name(enum adapt_point point);

enum { ICAP_ENDPOINTS_MAX = 16 };

struct icap_service_settings {
    char *name;
    char **uri_texts;      /* one an endpoint; ends with NULL */
    struct url *endpoints; /* the same, parsed: slices of uri_texts */
    unsigned endpoint_count;
    enum adapt_point point;
    bool remember;               /* what it makes is kept beside what is stored */
    bool ignore_istag;           /* its results are good until it is bumped */
    char **remember_by;          /* fields of requests on which that depends; ends with NULL */
    char **verdict_by;           /* fields that stand for a request's head; "*": all of it */
    bool bypass;                 /* on failure: the virgin message (true) or an error (false) */
    uint64_t timeout;            /* for the verdict, and for each pause of the answer */
    uint64_t first_byte_timeout; /* for the verdict alone; 0: timeout */
    uint64_t total_timeout;      /* for a whole transaction, however busy; 0: none */
    uint64_t connect_timeout;
    uint64_t idle_timeout;      /* of a pooled connection */
    unsigned max_connections;   /* of all workers and endpoints; also bound by Max-Connections */
    bool max_connections_given; /* it is no default */
    unsigned queue_max;         /* transactions that may wait for a connection, in a worker */
    uint64_t queue_timeout;     /* and for how long */
    size_t preview;             /* largest preview sent; bound by the service's Preview */
    uint64_t preview_wait;      /* for it to be full; then it ends with what there is; 0: always */
    size_t keep;                /* virgin bytes kept in memory for a 204, a bypass or a retry */
    size_t keep_on_disk;        /* and in a temporary file beyond that */
    const char *temporary_directory; /* the settings' */
    bool decode;                     /* it reads no content codings: they are undone for it */
    size_t decode_size;              /* bytes that may come of a body */
    unsigned decode_ratio;           /* times what came over the network; 0: any */
    uint64_t trickle_after;          /* no verdict for so long: its input trickles; 0: never */
    uint64_t trickle_every;          /* between portions */
    size_t trickle_bytes;            /* of a portion */
    uint64_t patience_after;     /* no verdict for so long: a page asks for patience; 0: never */
    unsigned failures_down;      /* transactions in a row that take an endpoint down */
    uint64_t down_min, down_max; /* back-off of a service that fails */
    char *credentials;           /* "user:password" for the ICAP server; NULL: none */
    bool verify;                 /* the certificate of an icaps server */
    char *ca_file;               /* whom that is trusted from; NULL: the system's */
    char *certificate, *certificate_key; /* that we show it; NULL: none */
    bool routing;                        /* its X-Next-Services names the services that follow */
    bool proxy_credentials;              /* it may see those that clients have for this proxy */
    char **include; /* fields about the client that it gets unasked; NULL: none */
};

/* adapt CLASS { services = { a, b } } */
struct adapt_settings {
    const struct url_class *url_class;
    const struct icap_service_settings **services; /* in order */
    size_t service_count;
};

struct settings {
    unsigned magic;
#define SETTINGS_MAGIC 0x53455454u
    _Atomic unsigned references;
    char *path; /* of the file */

    unsigned workers; /* resolved: at least 1 */
    char *name;       /* in Via and error pages */
    char *error_log;  /* NULL: stderr */
    enum log_level log_level;
    char *temporary_directory; /* for files without a name */
    uint64_t drain_timeout;
    uint64_t patience_keep; /* of what was made while a page asked for patience */
    size_t patience_space;  /* bytes of all of it */
    size_t verdict_space;   /* bytes of remembered verdicts on requests */
    bool any_patience;      /* some service has patience_after */
    bool share_listeners;   /* with other processes of this user */

    struct listen_settings *listens;
    size_t listen_count;
    struct map_settings *maps; /* sorted: first match wins */
    size_t map_count;
    struct map_table *map_table;
    struct origins_settings *origins_groups; /* in the file's order */
    size_t origins_group_count;
    struct parent_settings *parents; /* likewise */
    size_t parent_count;
    uint16_t *connect_ports; /* where CONNECT may go */
    size_t connect_port_count;
    struct access_log_settings *access_logs;
    size_t access_log_count;
    struct icap_service_settings *icap_services;
    size_t icap_service_count;
    struct url_class **url_classes;
    size_t url_class_count;
    struct adapt_settings *adapts; /* in the file's order */
    size_t adapt_count;
    struct policy_settings *policies; /* likewise */
    size_t policy_count;
    bool policies_by_type;            /* some are for what the response turns out to be */
    struct rules *rules;              /* the policies, then the adapt sections, then the parents */
    size_t adapt_rules, parent_rules; /* the numbers of their first ones */

    struct {
        size_t memory;             /* bytes of bodies, heads and bookkeeping */
        size_t max_object;         /* larger bodies are passed on, not stored */
        unsigned max_variants;     /* of a URL */
        unsigned max_ranges;       /* of a request */
        double heuristic_fraction; /* of the time since Last-Modified */
        char **negative_ttl;       /* rules, see negative.h; ends with NULL; NULL: none */
        char **accept_encoding;    /* codings; ends with NULL; "none": left as it is */
        bool x_cache;              /* send X-Cache */
        bool status_field;         /* send Cache-Status */
        uint64_t collapse_timeout; /* milliseconds; 0: no collapsing */
        uint64_t stale_if_error;   /* milliseconds */
        uint64_t failed_lifetime;  /* of what a service could not adapt; milliseconds; 0: none */
        uint64_t stale_while_revalidate;
        uint64_t refresh_pause; /* longest; milliseconds; 0: none */
        char **targeted;        /* names of fields (RFC 9213), ends with NULL */
        uint64_t heuristic_max; /* milliseconds */
        enum disk_io disk_io;
        struct disk_settings *disks; /* in the file's order */
        size_t disk_count;
    } cache;

    struct {
        uint64_t header_timeout; /* for a whole head, from its first byte */
        uint64_t idle_timeout;   /* between requests */
        uint64_t body_timeout;   /* without a byte of a request body */
        uint64_t send_timeout;   /* without the client taking a byte of the response */
        size_t max_head;
        unsigned max_connections; /* of all workers together */
        size_t memory;            /* bytes that all connections may hold; resolved */
        unsigned max_requests;    /* on a connection; 0: no limit */
    } client;

    struct {
        uint64_t tunnel_timeout;     /* without a byte in a tunnel, either way */
        uint64_t connect_timeout;    /* an attempt at one address */
        uint64_t first_byte_timeout; /* from the request's end to the head's */
        uint64_t read_timeout;       /* without a byte of the body */
        uint64_t total_timeout;      /* for the whole of it, however busy; 0: none */
        uint64_t idle_timeout;       /* of a pooled connection */
        size_t max_head;
        unsigned max_idle;        /* pooled connections per origin and worker */
        unsigned max_connections; /* requests under way at an origin, of all workers; 0: any */
        unsigned queue_max;       /* requests that wait for an origin that has so many */
        uint64_t queue_timeout;   /* how long each of them may */
        bool dns_ipv6;            /* ask for AAAA */
        uint64_t dns_timeout;
        uint64_t dns_ttl_max;
    } origin;

    struct {
        char *listen; /* "/path" or "127.0.0.1:port"; NULL: no admin plane */
        struct address address;
    } admin;
};

/* NULL on error, with a message that names file, line, and what to do. */
struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]);
struct settings *settings_reference(struct settings *settings);
void settings_release(struct settings **settingsp);

/* The rule for this Host ("host" or "host:port", lower case) and path; NULL when none matches. */
const struct map_settings *settings_find_map(const struct settings *settings, struct slice host,
                                             struct slice path);
bool settings_connect_port_allowed(const struct settings *settings, uint16_t port);

/* The manual, made from the option table. */
void settings_print_markdown(FILE *out);
void settings_print_man(FILE *out);
/* What the snapshot holds, every option with its value, secrets excepted, as JSON text for the
 * admin plane; the caller frees it. */
char *settings_to_json(const struct settings *settings);

#endif
