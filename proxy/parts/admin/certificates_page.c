#include "admin/certificates_page.h"

#include "admin/metric_text.h"
#include "admin/settings.h"
#include "tls/certificate_text.h"
#include "tls/verify.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { DAY = 86400 };

static json_t *certificate_to_json(const struct address *listen,
                                   const struct certificate *certificate) {
    char address[ADDRESS_TEXT], date[CERTIFICATE_TEXT_DATE], staple[TLS_PKI_TEXT] = "off";
    int64_t left = certificate->expires - (int64_t)time(NULL);
    address_format(listen, address);
    certificate_text_date(certificate->expires, date);
    if (tls_pki() != NULL)
        tls_pki()->describe(certificate->leaf, staple);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "listen", address, "name",
                     certificate_name(certificate), "kind",
                     certificate_kind_name(certificate->kind), "file", certificate->file, "expires",
                     date, "days", (json_int_t)(left / DAY), "ocsp", staple);
}

/* The certificates of the listener number `index`; behind the listeners comes the admin plane. NULL:
 * it has none. */
static const struct certificate_set *certificates_of(const struct settings *settings, size_t index,
                                                     const struct address **listen) {
    const struct admin_settings *mine = admin_settings_of(settings);
    const bool admin = index == settings->listen_count;
    *listen = admin ? &mine->address : &settings->listens[index].address;
    if (!admin)
        return settings->listens[index].tls.set;
    return mine->tls == NULL ? NULL : mine->tls->server.certificates;
}

json_t *certificates_page_to_json(const struct admin_report *report) {
    json_t *array = json_array();
    const struct address *listen;
    for (size_t i = 0; i <= report->settings->listen_count; i++) {
        const struct certificate_set *set = certificates_of(report->settings, i, &listen);
        for (size_t j = 0; set != NULL && j < certificate_set_count(set); j++)
            json_array_append_new(array, certificate_to_json(listen, certificate_set_at(set, j)));
    }
    return array;
}

static void print_expiry(FILE *out, const struct address *listen,
                         const struct certificate *certificate) {
    char address[ADDRESS_TEXT];
    address_format(listen, address);
    fprintf(out, "retort_certificate_expiry_seconds{listen=\"%s\",file=\"", address);
    metric_text_label(out, certificate->file);
    fputs("\",name=\"", out);
    metric_text_label(out, certificate_name(certificate));
    fprintf(out, "\"} %" PRId64 "\n", certificate->expires - (int64_t)time(NULL));
}

void certificates_page_print_metrics(FILE *out, const struct admin_report *report) {
    bool begun = false;
    const struct address *listen;
    for (size_t i = 0; i <= report->settings->listen_count; i++) {
        const struct certificate_set *set = certificates_of(report->settings, i, &listen);
        if (set == NULL)
            continue;
        if (!begun)
            fputs("# HELP retort_certificate_expiry_seconds Seconds until a listener's "
                  "certificate expires; less than 0 when it has expired.\n"
                  "# TYPE retort_certificate_expiry_seconds gauge\n",
                  out);
        begun = true;
        for (size_t j = 0; j < certificate_set_count(set); j++)
            print_expiry(out, listen, certificate_set_at(set, j));
    }
}
