#include "admin/certificates_page.h"

#include "tls/certificate_text.h"

#include <inttypes.h>
#include <time.h>

enum { DAY = 86400 };

static json_t *certificate_to_json(const struct listen_settings *listen,
                                   const struct certificate *certificate) {
    char address[ADDRESS_TEXT], date[CERTIFICATE_TEXT_DATE];
    int64_t left = certificate->expires - (int64_t)time(NULL);
    address_format(&listen->address, address);
    certificate_text_date(certificate->expires, date);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "listen", address, "name",
                     certificate_name(certificate), "kind",
                     certificate_kind_name(certificate->kind), "file", certificate->file, "expires",
                     date, "days", (json_int_t)(left / DAY));
}

json_t *certificates_page_to_json(const struct admin_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->settings->listen_count; i++) {
        const struct listen_settings *listen = &report->settings->listens[i];
        size_t count = listen->tls.set != NULL ? certificate_set_count(listen->tls.set) : 0;
        for (size_t j = 0; j < count; j++)
            json_array_append_new(
                array, certificate_to_json(listen, certificate_set_at(listen->tls.set, j)));
    }
    return array;
}

/* The value of a label in the text format of Prometheus. */
static void print_label(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void print_expiry(FILE *out, const struct listen_settings *listen,
                         const struct certificate *certificate) {
    char address[ADDRESS_TEXT];
    address_format(&listen->address, address);
    fprintf(out, "retort_certificate_expiry_seconds{listen=\"%s\",file=\"", address);
    print_label(out, certificate->file);
    fputs("\",name=\"", out);
    print_label(out, certificate_name(certificate));
    fprintf(out, "\"} %" PRId64 "\n", certificate->expires - (int64_t)time(NULL));
}

void certificates_page_print_metrics(FILE *out, const struct admin_report *report) {
    bool begun = false;
    for (size_t i = 0; i < report->settings->listen_count; i++) {
        const struct listen_settings *listen = &report->settings->listens[i];
        if (listen->tls.set == NULL)
            continue;
        if (!begun)
            fputs("# HELP retort_certificate_expiry_seconds Seconds until a listener's "
                  "certificate expires; less than 0 when it has expired.\n"
                  "# TYPE retort_certificate_expiry_seconds gauge\n",
                  out);
        begun = true;
        for (size_t j = 0; j < certificate_set_count(listen->tls.set); j++)
            print_expiry(out, listen, certificate_set_at(listen->tls.set, j));
    }
}
