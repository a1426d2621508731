#include "admin/trust_page.h"

#include "admin/metric_text.h"
#include "admin/part_pages.h"
#include "admin/settings.h"
#include "tls/certificate_text.h"
#include "tls/client_authority.h"
#include "tls/trust_files.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { DAY = 86400, PLACE = 300 };

void trust_see(const struct trust_rows *rows, const char *kind, const char *place, const char *file,
               const struct validity *validity) {
    if (validity_is_known(validity))
        rows->see(rows->arg, &(struct trust_row){kind, place, file, *validity});
}

/* Issuers that a listener shows behind its certificates, and whom it believes about clients. */
static void see_listener(const struct trust_rows *rows, const char *section,
                         const struct address *address, const struct certificate_set *set,
                         const struct client_authority *authority, const char *ca,
                         const char *crl) {
    char place[PLACE], text[ADDRESS_TEXT];
    address_format(address, text);
    snprintf(place, sizeof place, "%s %s", section, text);
    for (size_t i = 0; set != NULL && i < certificate_set_count(set); i++) {
        struct validity validity = VALIDITY_OF_NOTHING;
        validity_add_certificates(&validity, certificate_set_at(set, i)->chain);
        trust_see(rows, "issuer", place, certificate_set_at(set, i)->file, &validity);
    }
    if (authority == NULL)
        return;
    struct validity authorities = VALIDITY_OF_NOTHING, lists = VALIDITY_OF_NOTHING;
    client_authority_validity(authority, &authorities, &lists);
    trust_see(rows, "ca", place, ca, &authorities);
    trust_see(rows, "crl", place, crl, &lists);
}

static void see_trust(const struct trust_rows *rows, const char *section, const char *name,
                      const struct tls_trust_settings *trust) {
    const struct tls_trust_files *files = trust->files;
    struct validity validity = VALIDITY_OF_NOTHING;
    char place[PLACE];
    snprintf(place, sizeof place, "%s%s%.250s", section, name[0] != '\0' ? " " : "", name);
    if (files == NULL)
        return;
    if (trust->ca_file != NULL)
        validity_add_certificates(&validity, files->authorities);
    trust_see(rows, "ca", place, trust->ca_file, &validity);
    validity = VALIDITY_OF_NOTHING;
    validity_add_lists(&validity, files->lists);
    trust_see(rows, "crl", place, trust->crl_file, &validity);
    validity = VALIDITY_OF_NOTHING;
    validity_add_certificates(&validity, files->chain);
    trust_see(rows, "certificate", place, trust->certificate, &validity);
}

/* Most groups have the trust of the section origin. */
static bool is_of_origin(const struct settings *settings, const struct tls_trust_settings *trust) {
    return strcmp(trust->digest, settings->origin.trust.digest) == 0;
}

static void trust_each(const struct admin_report *report, const struct trust_rows *rows) {
    const struct settings *settings = report->settings;
    const struct admin_settings *mine = admin_settings_of(settings);
    PAGES_FOR_EACH (number, see_trust)
        part_pages_table[number]->see_trust(rows, settings);
    for (size_t i = 0; i < settings->listen_count; i++) {
        const struct listen_settings *listen = &settings->listens[i];
        see_listener(rows, "listen", &listen->address, listen->tls.set, listen->tls.authority,
                     listen->tls.client_ca, listen->tls.client_crl);
    }
    if (mine->tls != NULL)
        see_listener(rows, "admin", &mine->address, mine->tls->server.certificates,
                     mine->tls->server.client_authority, mine->client_ca, mine->client_crl);
    see_trust(rows, "origin", "", &settings->origin.trust);
    for (size_t i = 0; i < settings->origins_group_count; i++)
        if (!is_of_origin(settings, &settings->origins_groups[i].trust))
            see_trust(rows, "origins", settings->origins_groups[i].name,
                      &settings->origins_groups[i].trust);
    for (size_t i = 0; i < settings->service_count; i++)
        if (settings->services[i].kind == SERVICE_BY_ICAP)
            see_trust(rows, "icap_service", settings->services[i].name,
                      &settings->services[i].trust);
}

static void row_to_json(void *arg, const struct trust_row *row) {
    json_t *array = arg;
    char date[CERTIFICATE_TEXT_DATE];
    char *name = certificate_text_name(row->validity.name);
    certificate_text_date(row->validity.ends, date);
    json_array_append_new(
        array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "kind", row->kind, "place", row->place,
                         "file", row->file, "name", name, "expires", date, "days",
                         (json_int_t)((row->validity.ends - (int64_t)time(NULL)) / DAY)));
    free(name);
}

json_t *trust_page_to_json(const struct admin_report *report) {
    json_t *array = json_array();
    trust_each(report, &(struct trust_rows){row_to_json, array});
    return array;
}

struct trust_metric {
    FILE *out;
    bool begun;
};

static void row_to_metric(void *arg, const struct trust_row *row) {
    struct trust_metric *metric = arg;
    FILE *out = metric->out;
    char *name = certificate_text_name(row->validity.name);
    if (!metric->begun)
        fputs("# HELP retort_trust_expiry_seconds Seconds until what certificates are signed or "
              "verified with ends; less than 0 when it has ended.\n"
              "# TYPE retort_trust_expiry_seconds gauge\n",
              out);
    metric->begun = true;
    fprintf(out, "retort_trust_expiry_seconds{kind=\"%s\",place=\"", row->kind);
    metric_text_label(out, row->place);
    fputs("\",file=\"", out);
    metric_text_label(out, row->file);
    fputs("\",name=\"", out);
    metric_text_label(out, name);
    fprintf(out, "\"} %" PRId64 "\n", row->validity.ends - (int64_t)time(NULL));
    free(name);
}

void trust_page_print_metrics(FILE *out, const struct admin_report *report) {
    struct trust_metric metric = {.out = out};
    trust_each(report, &(struct trust_rows){row_to_metric, &metric});
}
