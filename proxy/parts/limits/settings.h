/*
 * The settings of the part limits: settings->parts[PART_LIMITS]. A limit section says what each client, each user, or all
 * together may use of the proxy, for the requests of a URL class.
 *
 *     limit_parse_rate("10/s", &units, &seconds)           10 and 1
 *
 * Threads: values, read-only once the settings are at work.
 */
#ifndef RETORT_LIMITS_SETTINGS_H
#define RETORT_LIMITS_SETTINGS_H

#include "limits/limit_table.h"
#include "settings/settings.h"

struct limit_section;
struct url_class;

enum limit_by { LIMIT_BY_CLIENT, LIMIT_BY_USER, LIMIT_BY_CLASS };
enum limit_answer { LIMIT_ANSWER_429, LIMIT_ANSWER_503, LIMIT_ANSWER_CLOSE };

struct limit_settings {
    const struct url_class *url_class;
    enum limit_by by;
    unsigned ipv4_prefix, ipv6_prefix;  /* bits of an address that tell clients apart */
    char *requests;                     /* as written; NULL: no limit */
    unsigned burst;                     /* requests at once; 0 in the file is already resolved */
    unsigned concurrent, connections;   /* 0: no limit */
    size_t bandwidth, upload_bandwidth; /* bytes a second; 0: no limit */
    size_t max_request, max_response;   /* bytes of a body; 0: no limit */
    enum limit_answer status;
    /* Made of these. */
    char *name;                    /* tells the sections apart, over reloads too */
    struct limit_demand demand;    /* of a request */
    bool counts;                   /* something of it is counted in the table */
    struct limit_section *section; /* set before the settings are at work */
};

struct limits_settings {
    struct limit_settings *list; /* in the file's order */
    size_t count;
    unsigned entries; /* of the table of limits */
    /* What each client may have of the connections: options of the section client. */
    unsigned max_connections_per_client; /* a 0 in the file is already resolved */
    unsigned max_half_open;              /* likewise; of one client */
    unsigned ipv4_prefix, ipv6_prefix;   /* bits of an address that tell clients apart */
    struct network *uncounted;           /* clients whose connections are not bounded one by one */
    size_t uncounted_count;
};

static inline struct limits_settings *limits_settings_of(const struct settings *settings) {
    return settings->parts[PART_LIMITS];
}

extern const struct part_settings limits_part_settings;

/* False: the text is no number of requests in a second, minute or hour. */
bool limit_parse_rate(const char *text, unsigned *units, unsigned *seconds);

#endif
