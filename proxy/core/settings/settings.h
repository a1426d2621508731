/*
 * Settings: the configuration file, parsed once into an immutable snapshot.
 *
 *     char error[SETTINGS_ERROR];
 *     struct settings *settings = settings_load("/etc/retort/retort.conf", error);
 *     if (settings == NULL) fprintf(stderr, "%s\n", error);      "retort.conf:12: ..."
 *     ...
 *     settings_release(&settings);
 *
 * A reload makes a new snapshot and hands it to every worker. A transaction keeps the snapshot that
 * it began with. The table in settings/options.c defines each option once, with its type, default,
 * range and documentation; docs/CONFIGURATION.md and retort.conf(5) are printed from it.
 *
 * Threads: read-only after settings_load; the reference count is atomic.
 * Units: sizes in bytes, times in milliseconds.
 */
#ifndef RETORT_SETTINGS_SETTINGS_H
#define RETORT_SETTINGS_SETTINGS_H

#include "base/log.h"
#include "http/url.h"
#include "net/address.h"
#include "net/forwarded.h"
#include "part.h"
#include "settings/forwarding.h"
#include "settings/logs.h"
#include "settings/origins.h"
#include "settings/policy.h"
#include "settings/rule_kinds.h"
#include "tls/server.h"
#include "tls/trust.h"

#include <stdatomic.h>
#include <stdio.h>

struct authority;
struct class_lists;
struct head_changes;
struct proof_class;

/* Room for all errors of a configuration, one on each line. */
enum { SETTINGS_ERROR = 8192 };

enum listen_mode { LISTEN_FORWARD, LISTEN_REVERSE, LISTEN_TRANSPARENT };

enum unknown_name { UNKNOWN_NAME_DEFAULT, UNKNOWN_NAME_REFUSE };

/* TLS of a listener; see tls/server.h. */
/* Where OCSP responses come from that are stapled to certificates. */
enum listen_ocsp { LISTEN_OCSP_OFF, LISTEN_OCSP_FILE, LISTEN_OCSP_FETCH };

struct listen_tls_settings {
    char *
        *certificates; /* files and folders; ends with NULL; NULL: the listener speaks clear text */
    enum tls_version min_version;
    char *ciphers, *ciphersuites, *groups; /* NULL: the defaults */
    enum unknown_name unknown_name;
    bool session_tickets;
    enum listen_ocsp ocsp;
    bool ktls; /* the kernel encrypts, where it can */
    enum client_certificate client_certificate;
    char *client_ca, *client_crl;       /* NULL: none */
    bool client_certificate_fields;     /* origins are told about the client's certificate */
    char *hsts;                         /* NULL: the origin's field stays */
    struct certificate_set *set;        /* `certificates`, loaded; NULL: none */
    struct client_authority *authority; /* client_ca and client_crl, loaded; NULL: none */
};

struct listen_settings {
    struct address address;
    char *name; /* that classes know it by; by default the address as configured */
    enum listen_mode mode;
    enum local_destinations local_destinations; /* of forward and transparent listeners; see
                                                   net/egress.h */
    struct network *allow;                      /* clients that may use it; none: all clients */
    size_t allow_count;
    struct network *trusted_proxies; /* in front; see net/forwarded.h */
    size_t trusted_proxy_count;
    enum forwarded_field client_from; /* the field that they write */
    bool reads_forwarding;            /* requests have to be looked at for that */
    size_t max_head, max_url;         /* bytes of a request's head, and of its target */
    bool http2;                       /* clients may speak it: TLS offers it */
    unsigned redirect_to_https;       /* port that requests are redirected to; 0: none are */
    char **proxy_texts;               /* as in the file; ends with NULL */
    struct network *proxy_networks; /* load balancers, which send PROXY headers; none: the listener
                                       takes no headers */
    size_t proxy_network_count;
    struct listen_tls_settings tls;
};

/* May clients of the listener speak HTTP/2? NULL: a reload has removed it. */
static inline bool listen_offers_http2(const struct listen_settings *listen) {
    return listen != NULL && listen->http2;
}

/* A map section of reverse mode: map "PREFIX" { origin = "URL" } or { origin = NAME }. Rules
 * with a host are tried before rules without one; among those, the longest matching prefix wins. */
struct map_settings {
    char *host;        /* lower case, with ":port" if it is not 80; NULL: any */
    char *path;        /* prefix, starts with '/' */
    char *origin_text; /* as configured */
    struct url origin; /* slices of origin_text; its path replaces the prefix */
    const struct origins_settings
        *origins;      /* a group; `origin` then has only the path; NULL: none */
    char *parent_text; /* name of a group of proxies to ask; NULL: none */
    const struct origins_settings *parents;
    bool preserve_host;    /* send the client's Host to the origin rather than the origin's name */
    bool rewrite_location; /* URLs in the origin's headers become the client's */
    char **origin_aliases; /* other URLs of the origin; ends with NULL; NULL: none */
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

/* The name of a point in the configuration file. */
const char *adapt_point_name(enum adapt_point point);

enum { ICAP_ENDPOINTS_MAX = 16 };

/* Where a service runs: at ICAP servers (icap_service), or inside the proxy (service). */
enum service_kind { SERVICE_BY_ICAP, SERVICE_INSIDE };

/* Where a service inside the proxy runs. */
enum service_runs { SERVICE_RUNS_WORKER, SERVICE_RUNS_THREAD, SERVICE_RUNS_PROCESS };

/* A value of service.settings, NAME = VALUE: slices of service_settings.setting_texts. */
struct module_setting {
    struct slice name, value;
    char *where; /* "FILE:LINE" */
};

struct service_settings {
    enum service_kind kind;
    char *name;
    char *where;           /* the section stands: "FILE:LINE"; NULL: nobody asks */
    char **uri_texts;      /* one URI for each endpoint; ends with NULL. A service inside has one,
                              "module:PATH" */
    struct url *endpoints; /* uri_texts after parsing: slices of them; NULL: a service inside */
    unsigned endpoint_count;
    /* Of services inside. */
    char *module;                    /* the path of the shared object */
    char **setting_texts;            /* "NAME=VALUE"; ends with NULL; NULL: none */
    struct module_setting *settings; /* setting_texts, taken apart */
    size_t setting_count;
    char *helpers;               /* the socket of retort-helperd; NULL: the module's own setting */
    char *arguments;             /* as behind the "?" of the URI of an ICAP service; NULL: none */
    unsigned descriptors;        /* that it may watch outside of exchanges */
    unsigned content_operations; /* under way, or not closed */
    size_t content_object, content_memory; /* bytes of one object; of all operations */
    uint64_t content_timeout;              /* of a fetch */
    char *fetch_as, *fetch_via; /* of its own requests: the client; the listener or NULL */
    enum service_runs runs;
    unsigned threads;       /* or processes, that run it; not of workers */
    unsigned nice;          /* of its processes */
    uint64_t start_timeout; /* for the start of a process */
    uint64_t hang_timeout;  /* a process that shows no sign of life for so long is ended */
    /* Of both. */
    bool disabled;  /* no chain has it, and it does not run */
    bool as_before; /* of settings that were changed: nothing of it was (service_change.h) */
    enum adapt_point point;
    bool remember;               /* results are stored beside the response */
    bool ignore_istag;           /* results stay valid until "services bump" */
    char **remember_by;          /* request fields that select a result; ends with NULL */
    char **verdict_by;           /* request fields that select a verdict; "*": the whole head */
    bool bypass;                 /* after a failure: the original (true) or an error (false) */
    uint64_t timeout;            /* limit for the verdict, and for each pause of the answer */
    uint64_t first_byte_timeout; /* limit for the verdict; 0: timeout applies */
    uint64_t total_timeout;      /* limit for a whole transaction, even without pauses; 0: none */
    uint64_t connect_timeout;
    uint64_t idle_timeout;      /* how long an idle connection is kept */
    unsigned max_connections;   /* for all workers and endpoints; Max-Connections also applies */
    bool max_connections_given; /* max_connections is set in the file */
    unsigned max_messages;      /* at a time, of all workers; a service inside */
    unsigned queue_max;         /* transactions of one worker that may wait for one of these */
    uint64_t queue_timeout;     /* how long a transaction may wait for it */
    size_t preview;             /* largest preview; the service's Preview can lower it */
    uint64_t preview_wait;      /* how long a preview may take to fill; 0: no limit */
    size_t keep;                /* bytes of the original kept in memory until the verdict */
    size_t keep_on_disk;        /* further bytes of the original kept in a temporary file */
    const char *temporary_directory; /* settings.temporary_directory */
    bool decode;                     /* content codings are removed for the service */
    size_t decode_size;              /* largest decoded body */
    unsigned decode_ratio;           /* largest growth of a body by decoding; 0: no limit */
    uint64_t trickle_after;          /* wait for a verdict before the original trickles; 0: never */
    uint64_t trickle_every;          /* pause between two portions that trickle */
    size_t trickle_bytes;            /* bytes of a portion that trickles */
    uint64_t patience_after;     /* wait for a verdict before a waiting page is shown; 0: never */
    unsigned failures_down;      /* failures in a row that take an endpoint down */
    uint64_t down_min, down_max; /* shortest and longest pause before a failed service is tried */
    char *credentials;           /* "user:password" for the ICAP server; NULL: none */
    struct tls_trust_settings trust; /* of icaps servers */
    bool routing;                    /* its answers may name the next services */
    bool proxy_credentials;          /* the service sees clients' credentials for this proxy */
    char **include; /* fields about the client that the service always gets; NULL: none */
    char *info;     /* the name of c-icap's info service at the same servers; NULL: not asked */
};

/* The kind of section that it comes from. */
static inline const char *service_section_of(enum service_kind kind) {
    return kind == SERVICE_INSIDE ? "service" : "icap_service";
}
static inline const char *service_section(const struct service_settings *settings) {
    return service_section_of(settings->kind);
}

/* adapt CLASS { services = { a, b } } */
struct adapt_settings {
    const struct url_class *url_class;
    /* In the order in which they are asked. Behind them are those that the section disables, and
     * then those that are disabled themselves. */
    const struct service_settings **services;
    size_t service_count, disabled_count, unloaded_count;
    bool by_who; /* the class depends on who asks */
};

struct document;
struct faults;

struct settings {
    unsigned magic;
#define SETTINGS_MAGIC 0x53455454u
    _Atomic unsigned references, users;
    char *path;     /* path of the configuration file */
    char **include; /* as configured; ends with NULL; NULL: none */
    char **files;   /* the paths of all files that were read; ends with NULL */

    unsigned workers;            /* at least 1: a 0 in the file is already resolved */
    unsigned configured_workers; /* those of the next start */
    void *parts[PART_COUNT];     /* what each part has loaded (part_settings.h) */
    struct step_list *steps;     /* of a transaction (transaction/step.h); NULL: not in use yet */
    /* Whose options that only a start applies are in use; referenced. NULL: those of this one. */
    struct settings *start;
    char *name;      /* the name in Via and on error pages */
    char *error_log; /* NULL: stderr */
    enum log_level log_level;
    char *temporary_directory; /* for files without a name */
    uint64_t drain_timeout;
    size_t verdict_space;       /* bytes of remembered verdicts on requests */
    bool any_patience;          /* some service has patience_after */
    bool any_remembered;        /* results of some service behind the cache are */
    bool asks_at[ADAPT_POINTS]; /* some adapt section names a service at that point */
    bool has_pac;               /* there is a file by which browsers find the proxy */
    bool share_listeners;       /* other processes of this user may listen as well */

    struct listen_settings *listens;
    size_t listen_count;
    struct map_settings *maps; /* sorted so that the first match wins */
    size_t map_count;
    struct map_table *map_table;
    struct origins_settings *origins_groups; /* in the file's order */
    size_t origins_group_count;
    bool sends_proxy_headers;        /* to servers of some group */
    struct parent_settings *parents; /* likewise */
    size_t parent_count;
    unsigned asks_of_parts; /* what rules that parts have for themselves ask for (rules_ask) */
    bool removes_alt_svc;   /* of responses to clients of forward and transparent listeners */
    struct forwarding_settings forwarding;
    bool traces;               /* requests may be traced: of the part spans */
    bool watches_transactions; /* each step is looked at: log_level is debug, or there is tracing */
    const char *const *authenticators; /* their names, in the file's order */
    size_t authenticator_count;
    const struct proof_class *proofs; /* by them (transaction/proof.h); NULL: there are none */
    /* Rules change heads (transaction/head_changes.h): of requests for origins, of their responses, of replies. */
    bool changes_outgoing, changes_responses, changes_replies;
    const struct head_changes *head_changes;
    bool
        any_told_class; /* classes that ask who change requests, or choose services before the cache
                            or behind it */
    bool any_rewrite;   /* requests of clients may be changed: URLs or fields */
    uint16_t *connect_ports; /* ports that CONNECT may reach */
    size_t connect_port_count;
    struct log_settings *access_logs, *icap_logs; /* in the file's order */
    size_t access_log_count, icap_log_count;
    struct service_settings *services; /* of either kind, in the order of the file */
    size_t service_count;
    struct url_class **url_classes;
    size_t url_class_count;
    struct class_lists *class_lists; /* the files that they name */
    struct adapt_settings *adapts;   /* in the file's order */
    size_t adapt_count;
    bool access_asks_who;             /* some class of access sections depends on who asks */
    bool access_names_servers;        /* or says which servers: the name that TLS asks for counts */
    struct policy_settings *policies; /* in the file's order */
    size_t policy_count;
    bool policies_by_type; /* some policies have a class with a content_type */
    struct rules *rules;   /* of all sections for a class, kind after kind */
    size_t rule_first[RULE_KINDS], rule_count[RULE_KINDS]; /* the rules of each kind */

    struct {
        size_t memory;             /* bytes of bodies, heads and bookkeeping */
        size_t max_object;         /* larger bodies are delivered without being stored */
        unsigned max_variants;     /* variants of one URL */
        unsigned max_ranges;       /* ranges of one request */
        double heuristic_fraction; /* freshness as a share of the time since Last-Modified */
        char **negative_ttl;       /* rules, see negative.h; ends with NULL; NULL: none */
        char **accept_encoding;    /* content codings; ends with NULL; "none": the field is not
                                    * changed */
        bool x_cache;              /* send X-Cache */
        bool status_field;         /* send Cache-Status */
        uint64_t collapse_timeout; /* milliseconds; 0: no collapsing */
        uint64_t stale_if_error;   /* milliseconds */
        uint64_t failed_lifetime;  /* of responses that a service could not adapt; milliseconds;
                                    * 0: not stored */
        uint64_t stale_while_revalidate;
        uint64_t refresh_pause; /* longest pause; milliseconds; 0: none */
        char **targeted;        /* names of fields (RFC 9213), ends with NULL */
        uint64_t heuristic_max; /* milliseconds */
    } cache;

    struct {
        uint64_t header_timeout;    /* limit for a whole head from its first byte */
        uint64_t idle_timeout;      /* limit for the time between two requests */
        uint64_t handshake_timeout; /* limit for TLS handshakes, from the accept */
        unsigned max_handshakes;    /* TLS handshakes at a time, for all workers together */
        uint64_t body_timeout;      /* limit for a pause of a request body */
        uint64_t send_timeout;      /* limit for a pause of a client that reads a response */
        size_t max_head;
        unsigned max_connections; /* for all workers together */
        size_t min_rate;          /* bytes a second of heads and bodies; 0: no limit */
        uint64_t min_rate_after;  /* milliseconds of a message for which min_rate does not count */
        size_t memory;            /* bytes that all connections may hold; a 0 in the file is
                                   * already resolved */
        unsigned max_requests;    /* requests on one connection; 0: no limit */
    } client;

    struct {
        uint64_t tunnel_timeout;     /* limit for a pause of a tunnel in both directions */
        uint64_t connect_timeout;    /* limit for connecting to one address */
        uint64_t first_byte_timeout; /* limit from the end of the request to the end of the head */
        uint64_t read_timeout;       /* limit for a pause of the body */
        uint64_t total_timeout;      /* limit for the whole fetch, even without pauses; 0: none */
        uint64_t idle_timeout;       /* how long an idle connection is kept */
        size_t max_head;
        unsigned max_idle;        /* idle connections for each origin and worker */
        unsigned max_idle_total;  /* and for each worker */
        unsigned max_connections; /* requests in progress at an origin, for all workers; 0: no
                                   * limit */
        unsigned queue_max;       /* requests that may wait for an origin that is full */
        uint64_t queue_timeout;   /* how long a request may wait */
        uint64_t attempt_delay;   /* between two addresses of a host; 0: no race */
        bool dns_ipv6;            /* ask for AAAA */
        uint64_t dns_timeout;
        unsigned dns_tries; /* of each name server */
        uint64_t dns_ttl_max;
        uint64_t dns_negative_ttl_max;
        uint64_t dns_stale; /* how long addresses serve while name servers fail; 0: never */
        unsigned dns_names; /* that a worker remembers */
        unsigned dns_client_lookups;     /* of a client, in each worker */
        char **dns_servers;              /* end with NULL; "system": those of the system */
        char **dns_search;               /* likewise; or "none" */
        bool dns_search_clients;         /* clients' names are completed too */
        char *hosts_file;                /* or "none" */
        unsigned tls_hosts;              /* https origins whose TLS sessions a worker keeps */
        enum origins_http2 http2;        /* of servers that no group names */
        struct tls_trust_settings trust; /* of servers that no group names */
    } origin;

    /* What sockets do for transparent mode: of the part transparent. */
    struct {
        bool foreign;      /* its listeners take connections to foreign addresses */
        bool spoof_client; /* origins see the client's address */
        unsigned mark;     /* of the proxy's own connections; 0: none */
    } sockets;
};

/* Stands for a file in the messages about what was changed at run time. */
#define SETTINGS_CHANGED "retortctl set"

/* Returns NULL on an error, with a message that names the file, the line, and what to do. Several
 * errors are lines of the message. */
struct settings *settings_load(const char *path, char error[SETTINGS_ERROR]);
/* What a configuration is loaded for. A check may be made by another user than the one that retort
 * runs as. Elsewhere is another machine: no certificates and keys are read, and the snapshot can't
 * be served. */
enum settings_purpose { SETTINGS_TO_USE, SETTINGS_TO_CHECK, SETTINGS_FOR_ELSEWHERE };
struct settings *settings_load_for(enum settings_purpose purpose, const char *path,
                                   char error[SETTINGS_ERROR]);
/* Reads the configuration again. What was changed at run time stays changed. */
struct settings *settings_load_again(const struct settings *before, char error[SETTINGS_ERROR]);
/* For who has a document: the part that knows what was changed at run time. Sections with faults are dropped
 * from it. NULL: there are faults. */
struct settings_how {
    enum settings_purpose purpose;
    bool quiet;                   /* nothing is logged */
    const struct document *files; /* as they were read */
};
struct settings *settings_make(struct document *document, const struct settings_how *how,
                               struct faults *faults);
/* How many workers use the settings: a reload does not change their number. */
static inline unsigned settings_workers(const struct settings *settings) {
    return settings->start != NULL ? settings->start->workers : settings->workers;
}

struct settings *settings_reference(struct settings *settings);
void settings_release(struct settings **settingsp);
/* A reference of whoever serves by the settings. What parts have started for them (part.h: process.prepare) ends with the last
 * of these. The first one is that of who has made the settings. */
struct settings *settings_use(struct settings *settings);
void settings_end_use(struct settings **settingsp);

/* The class of that name; NULL: there is none. */
const struct url_class *settings_class(const struct settings *settings, const char *name);
/* Is there a listen section with this address? */
bool settings_listens_at(const struct settings *settings, const struct address *address);
/* The rule for this Host ("host" or "host:port", lower case) and path; NULL when none matches. */
const struct map_settings *settings_find_map(const struct settings *settings, struct slice host,
                                             struct slice path);
/* Does the listener take connections to addresses of other machines (TPROXY)? */
bool settings_take_foreign(const struct settings *settings, size_t listen);
/* Is some listener transparent? */
bool settings_are_transparent(const struct settings *settings);
/* The TLS server of a listener with certificates. `tickets`: see tls/ticket_keys.h. */
struct tls_server *listen_tls_server(const struct listen_settings *listen,
                                     struct ticket_keys *tickets);
bool settings_connect_port_allowed(const struct settings *settings, uint16_t port);
/* Of the sections of a kind, the first at `from` or behind it whose bit is set; rule_count of the
 * kind: there is none. */
static inline size_t settings_next_rule(const struct settings *settings, enum rule_kind kind,
                                        const uint64_t *bits, size_t from) {
    size_t first = settings->rule_first[kind];
    return rules_next(bits, first + from, first + settings->rule_count[kind]) - first;
}

/* The manual, made from the option table. */
void settings_print_markdown(FILE *out);
void settings_print_man(FILE *out);

#endif
