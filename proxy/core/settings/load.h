/*
 * The functions that turn a configuration file into a snapshot: one file for each kind of section,
 * and what these files share.
 *
 *     bool load_maps(struct load *load) {
 *         DOCUMENT_FOR_EACH_SECTION(section, load->document, "map") {
 *             if (!load_values(load, section, "map", map))
 *                 return false;
 *             if (...) return load_fail(load, load_line_of(section, "origin"), "...", ...);
 *
 * Each function loads its sections of the document into the settings. It may use what was loaded
 * before; settings.c has the order. It returns false at the first fault, and the caller releases
 * the settings as usual. Then the rest of the document is loaded again without the section at fault
 * (settings.c), so that nothing is made from half of a section. A message about a name that is
 * missing has the name in quotes; it is not shown when the section of that name is what is at fault.
 *
 * The `line` of a section or value is a place (config/document.h): for load_fail and load_warn
 * only.
 *
 * Threads: the caller's of settings_load.
 */
#ifndef RETORT_SETTINGS_LOAD_H
#define RETORT_SETTINGS_LOAD_H

#include "config/document.h"
#include "settings/options.h"
#include "settings/settings.h"

/* A snapshot in the making. */
struct load {
    struct settings *settings;
    struct document *document;
    struct faults *faults;
    unsigned owner;     /* whose options load_values reads: the core's, or a part's */
    bool without_files; /* the files of certificates and keys are those of another machine */
    bool quiet;         /* warnings have been written already */
};

/* Notes the fault and returns false. Line 0 means that the message is about the whole file. */
bool load_fail(struct load *load, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same about a value, as far as it may be shown: "OPTION: "VALUE" is not a size". */
bool load_fail_value(struct load *load, const struct document_value *value, const char *between,
                     const char *reason);
/* Writes a warning with its file and line. */
void load_warn(const struct load *load, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Likewise, what need not be changed. */
void load_tell(const struct load *load, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The line for an error about an option: the line of its value, or else of its section. */
int load_line_of(const struct document_section *section, const char *name);
/* Writes the options of one section, or their defaults, into the destination. */
bool load_values(struct load *load, const struct document_section *section, const char *kind,
                 void *destination);
void load_release_values(const char *kind, void *destination);
/* Checks that the title is a name that other sections can refer to. */
bool load_check_name(struct load *load, const struct document_section *section);
/* Checks the trust of a section and completes it, after load_values. */
bool load_trust(struct load *load, const struct document_section *section,
                struct tls_trust_settings *trust);
/* Before load_trust: what the section does not set is as in `from`. */
void load_trust_inherit(const struct document_section *section, struct tls_trust_settings *trust,
                        const struct tls_trust_settings *from);

bool load_listens(struct load *load);
bool load_listen_tls(struct load *load, const struct document_section *section,
                     struct listen_settings *listen);
bool load_forwarding(struct load *load);
bool load_origin(struct load *load);
bool load_origins_groups(struct load *load);
bool load_maps(struct load *load);
bool load_cache(struct load *load);
bool load_url_classes(struct load *load);
bool load_logs(struct load *load);
bool load_policies(struct load *load);
bool load_parents(struct load *load);
/* After all others: the configuration as a whole. */
bool check_listens(struct load *load);
void warn_about_maps(const struct load *load);
void warn_about_secrets(const struct load *load);

/* Returns NULL when no class has that name. */
const struct origins_settings *load_find_origins(const struct settings *settings,
                                                 struct slice name);
/* Finds the class that a section's title names. False with an error: there is none. */
bool load_section_class(struct load *load, const struct document_section *section,
                        const struct url_class **url_class);

void release_listens(struct settings *settings);
void release_listen_tls(struct listen_settings *listen);
void release_origins_groups(struct settings *settings);
void release_maps(struct settings *settings);
void release_url_classes(struct settings *settings);
void release_logs(struct settings *settings);
void release_policies(struct settings *settings);
void release_parents(struct settings *settings);

#endif
