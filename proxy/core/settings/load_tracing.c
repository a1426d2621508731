/* Traces for OpenTelemetry: the section tracing. */
#include "settings/load.h"

#include "base/failure.h"
#include "config.h"
#include "http/url.h"
#include "settings/options.h"

#include <stdio.h>
#include <unistd.h>

bool option_check_collector(const char *text, char *error, size_t error_size) {
    struct url url;
    if (url_parse(&url, slice_from(text)) && url.host.length > 0 &&
        (slice_equal_nocase(url.scheme, SLICE("http")) ||
         slice_equal_nocase(url.scheme, SLICE("https"))))
        return true;
    return failure(error, error_size,
                   "is no URL of a collector: write one like http://127.0.0.1:4318/v1/traces");
}

bool option_check_service_name(const char *text, char *error, size_t error_size) {
    size_t length = strlen(text);
    if (length <= TRACING_SERVICE_NAME)
        return true;
    return failure(error, error_size, "has %zu bytes: write a name of at most %d bytes", length,
                   TRACING_SERVICE_NAME);
}

bool load_tracing(struct load *load) {
    struct tracing_settings *tracing = &load->settings->tracing;
    const struct document_section *section = document_section(load->document, "tracing", NULL);
    if (!load_values(load, section, "tracing", load->settings))
        return false;
    if (tracing->collector == NULL)
        return true;
#ifndef HAVE_LIBCURL
    return load_fail(load, load_line_of(section, "collector"),
                     "tracing is not possible: this retort was built without libcurl; remove "
                     "collector, or build it with libcurl4-openssl-dev installed");
#endif
    if (tracing->ca_file != NULL && !load->without_files && access(tracing->ca_file, R_OK) != 0)
        return load_fail(load, load_line_of(section, "ca_file"),
                         "cannot read ca_file %s: create it, or let this user read it",
                         tracing->ca_file);
    load->settings->watches_transactions = true;
    return true;
}
