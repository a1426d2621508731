/* Logs: access_log and icap_log sections. */
#include "settings/load.h"

#include "base/assert.h"
#include "base/failure.h"
#include "settings/options.h"
#include "tls/trust_files.h"

#include <stdlib.h>
#include <string.h>

/* Squid's format of that name. */
static const char icap_squid[] = "%ts.%03tu %6icap::tr %>a %icap::to/%03icap::Hs %icap::<st "
                                 "%icap::rm %icap::ru %un -/%icap::<A -";

/* In the order of enum access_log_format. */
static const char *const formats[] = {"squid", "combined", "json", "squid_extended",
                                      "combined_extended"};

bool log_statuses_parse(const char *text, struct log_statuses *statuses) {
    unsigned hundred = (unsigned)(text[0] - '0') * 100;
    uint64_t from, to;
    if (text[0] >= '1' && text[0] <= '5' && strcmp(text + 1, "xx") == 0) {
        *statuses = (struct log_statuses){hundred, hundred + 99};
        return true;
    }
    size_t dash = strcspn(text, "-");
    if (!slice_to_uint64(slice_make(text, dash), &from))
        return false;
    to = from;
    if (text[dash] == '-' && !slice_to_uint64(slice_from(text + dash + 1), &to))
        return false;
    if (from < 100 || to > 599 || from > to)
        return false;
    *statuses = (struct log_statuses){(unsigned)from, (unsigned)to};
    return true;
}

bool option_check_log_status(const char *text, char *error, size_t error_size) {
    struct log_statuses statuses;
    if (log_statuses_parse(text, &statuses))
        return true;
    return failure(error, error_size, "is no status: write 404, 5xx or 400-499");
}

bool option_check_log_result(const char *text, char *error, size_t error_size) {
    static const char *const known[] = {"NONE",        "HIT",       "STALE",  "MISS",
                                        "REVALIDATED", "REFRESHED", "PASS",   "TUNNEL",
                                        "BUMP",        "SERVICE",   "DENIED", "ERROR"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i]) == 0)
            return true;
    return failure(
        error, error_size,
        "is no result: write HIT, STALE, MISS, REVALIDATED, REFRESHED, PASS, TUNNEL, BUMP, "
        "SERVICE, DENIED, ERROR or NONE");
}

static bool load_own_format(struct load *load, const struct document_section *section,
                            struct log_settings *log, const char *text, bool icap) {
    char error[LOG_FORMAT_ERROR];
    int line = load_line_of(section, "format");
    log->format = ACCESS_LOG_OWN;
    log->own = log_format_new(text, log->escape, icap, error);
    if (log->own == NULL)
        return load_fail(load, line, "format: %s", error);
    const char *field = log_format_tells_client(log->own);
    if (field != NULL && (log->ipv4_prefix < 32 || log->ipv6_prefix < 128))
        return load_fail(load, line,
                         "format: the field %s tells the client's address, which ipv4_prefix or "
                         "ipv6_prefix would shorten; leave the field out",
                         field);
    return true;
}

static bool load_format(struct load *load, const struct document_section *section,
                        struct log_settings *log, bool icap) {
    const char *text = log->format_text;
    for (size_t i = 0; !icap && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(text, formats[i]) == 0) {
            log->format = (enum access_log_format)i;
            return true;
        }
    if (icap && strcmp(text, "icap_squid") == 0)
        text = icap_squid;
    if (strchr(text, '%') == NULL)
        return load_fail(
            load, load_line_of(section, "format"),
            "format: \"%s\" is neither %s nor a format with %%-codes, such as \"%%>a "
            "%%>Hs %%ru\"",
            text, icap ? "icap_squid" : "squid, combined, json, squid_extended, combined_extended");
    return load_own_format(load, section, log, text, icap);
}

static void set_statuses(struct log_settings *log) {
    for (char **text = log->status_texts; text != NULL && *text != NULL; text++)
        log->status_count++;
    log->statuses = xcalloc(log->status_count + 1, sizeof *log->statuses);
    for (size_t i = 0; i < log->status_count; i++)
        log_statuses_parse(log->status_texts[i], &log->statuses[i]);
}

static bool check_services(struct load *load, const struct document_section *section,
                           const struct log_settings *log) {
    const struct settings *settings = load->settings;
    for (char **name = log->services; name != NULL && *name != NULL; name++) {
        bool found = false;
        for (size_t i = 0; i < settings->service_count; i++)
            found |= strcmp(settings->services[i].name, *name) == 0;
        if (!found)
            return load_fail(
                load, load_line_of(section, "service"),
                "service: there is no icap_service \"%s\", and no service of this name; add one or "
                "correct the name",
                *name);
    }
    return true;
}

/* TLS is for places that have it: an option without effect would promise what is not so. The default
 * promises nothing, and stands where all settings are shown. */
static bool load_log_trust(struct load *load, const struct document_section *section,
                           struct log_settings *log) {
    static const char *const names[] = {"verify", "ca_file", "crl_file", "certificate",
                                        "certificate_key"};
    if (log->place.kind == LOG_PLACE_TLS || log->place.kind == LOG_PLACE_SYSLOG_TLS)
        return load_trust(load, section, &log->trust);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (document_value(section, names[i]) != NULL && (i > 0 || !log->trust.verify))
            return load_fail(load, load_line_of(section, names[i]),
                             "%s: only syslog+tls:// and tls:// places have TLS; leave it out, or "
                             "write such a place",
                             names[i]);
    return true;
}

static bool load_one_log(struct load *load, const struct document_section *section,
                         struct log_settings *log, bool icap) {
    const char *kind = section->kind->name;
    char error[LOG_PLACE_ERROR];
    log->path = xstrdup(section->title);
    if (!log_place_parse(&log->place, log->path, error))
        return load_fail(load, section->line, "%s: %s", kind, error);
    if (!load_values(load, section, kind, log) || !load_log_trust(load, section, log) ||
        !load_format(load, section, log, icap) || !check_services(load, section, log))
        return false;
    set_statuses(log);
    if (log->class_name == NULL)
        return true;
    log->url_class = settings_class(load->settings, log->class_name);
    return log->url_class != NULL ||
           load_fail(load, load_line_of(section, "class"),
                     "class: there is no url_class \"%s\"; add one or correct the name",
                     log->class_name);
}

static bool load_kind(struct load *load, const char *kind, struct log_settings **logs,
                      size_t *count) {
    *logs = xcalloc(document_section_count(load->document, kind) + 1, sizeof **logs);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, kind)
        if (!load_one_log(load, section, &(*logs)[(*count)++], strcmp(kind, "icap_log") == 0))
            return false;
    return true;
}

bool load_logs(struct load *load) {
    struct settings *settings = load->settings;
    return load_kind(load, "access_log", &settings->access_logs, &settings->access_log_count) &&
           load_kind(load, "icap_log", &settings->icap_logs, &settings->icap_log_count);
}

static void release_kind(const char *kind, struct log_settings *logs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        load_release_values(kind, &logs[i]);
        tls_trust_unload(&logs[i].trust);
        log_format_free(&logs[i].own);
        free(logs[i].statuses);
        free(logs[i].path);
    }
    free(logs);
}

void release_logs(struct settings *settings) {
    release_kind("access_log", settings->access_logs, settings->access_log_count);
    release_kind("icap_log", settings->icap_logs, settings->icap_log_count);
}
