/*
 * The option table of retort: config/option.h says what it is for. Its destination is struct settings
 * for the top level and for sections that occur once (cache, client, ...), and an element for other
 * sections (struct listen_settings for "listen", struct url_class_conditions for "url_class", ...).
 *
 *     OPTIONS_FOR_EACH(option, settings_table(), "cache")
 *         printf("cache.%s: changed %s\n", option->name, option_change_name(option));
 *
 * Threads: constants.
 */
#ifndef RETORT_SETTINGS_OPTIONS_H
#define RETORT_SETTINGS_OPTIONS_H

#include "config/option.h"

/* The rows of the core, and those of the parts that are built (part_settings.h). */
const struct option_table *settings_table(void);

/* The sections of the core. */
extern const struct option_section option_sections[];

/* struct network: an empty list is everybody ("all"), or nobody ("none"). */
extern const struct option_elements option_networks, option_networks_or_nobody;
extern const struct option_elements option_ports; /* uint16_t */

/* The words of enum tls_version, enum client_certificate and enum adapt_point. */
extern const char *const option_tls_versions[], *const option_client_certificates[],
                                                    *const option_adapt_points[];

/* The destination of "adapt" while names are not yet resolved. */
struct adapt_names {
    char **services, **disabled; /* end with NULL; disabled NULL: none */
};

/* At run time, at the start, or by the file. */
enum option_change option_change_of(const struct option *option);
/* Does a change wait for a restart, also one in the file? */
bool option_waits_for_start(const struct option *option);
/* "now", "restart" or "file". */
const char *option_change_name(const struct option *option);

/* An IP address, maybe with a port, or system. */
bool option_check_name_server(const char *text, char *error, size_t error_size);
/* A domain, or none, or system. */
bool option_check_domain(const char *text, char *error, size_t error_size);
/* An address or a network, or none. */
bool option_check_network(const char *text, char *error, size_t error_size);
/* The name of a content coding, or none. */
bool option_check_coding(const char *text, char *error, size_t error_size);
/* A token that may stand in Via. */
bool option_check_pseudonym(const char *text, char *error, size_t error_size);

#endif
