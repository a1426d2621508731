/* Traces for OpenTelemetry: the section tracing. */
#include "spans/settings.h"

#include "base/failure.h"
#include "config.h"
#include "http/url.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_section sections[] = {
    {
        .name = "tracing",
        .after = "forwarding",
        .documentation =
            "Traces requests: Retort tells an OpenTelemetry collector, for some of them, when each "
            "step, each call of a service and each request to an origin began and ended. Origins "
            "and services learn the trace from the fields traceparent and tracestate (W3C Trace "
            "Context), so that their spans join it. Without this section, both fields pass "
            "through as they are.",
        .example = "tracing {\n"
                   "    collector = \"http://127.0.0.1:4318/v1/traces\"\n"
                   "    sample = 0.05\n"
                   "    trust = \"10.0.0.0/8\"\n"
                   "}",
    },
    {.name = NULL},
};

/* enum tracing_icap. */
static const char *const icap_words[] = {"head", "message", "both", "off", NULL};

static bool tracing_check_collector(const char *text, char *error, size_t error_size) {
    struct url url;
    if (url_parse(&url, slice_from(text)) && url.host.length > 0 &&
        (slice_equal_nocase(url.scheme, SLICE("http")) ||
         slice_equal_nocase(url.scheme, SLICE("https"))))
        return true;
    return failure(error, error_size,
                   "is no URL of a collector: write one like http://127.0.0.1:4318/v1/traces");
}

static bool tracing_check_service_name(const char *text, char *error, size_t error_size) {
    size_t length = strlen(text);
    if (length <= TRACING_SERVICE_NAME)
        return true;
    return failure(error, error_size, "has %zu bytes: write a name of at most %d bytes", length,
                   TRACING_SERVICE_NAME);
}

#define TRACING(member) ONE("tracing", struct tracing_settings, member)

static const struct option rows[] = {
    {TRACING(collector), .name = "collector", STRING, .check = tracing_check_collector,
     .fallback_note = "nothing is traced",
     DOC "Sets the URL that spans are posted to, as OTLP over HTTP in JSON. Collectors take it at "
         "the port 4318 and the path /v1/traces.",
     .example = "\"http://127.0.0.1:4318/v1/traces\""},
    {TRACING(sample), .name = "sample", FLOAT_OF(0, 1), DEFAULT("0.01"),
     DOC "Sets which part of the requests is traced that do not come with a trace of a caller in "
         "trust: 0.01 is one of a hundred, chosen at random. The value 0 means none, 1 all.",
     .example = "1"},
    {TRACING(trust), .name = "trust", ELEMENTS(option_networks_or_nobody),
     .count_at = offsetof(struct tracing_settings, trust_count), DEFAULT("none"),
     DOC
     "Lists the addresses of callers whose traceparent and tracestate are believed: other "
     "proxies and services of yours. Their requests are traced when they say that they trace "
     "them, and not when they say that they do not. From all others both fields are removed, so "
     "that a client can neither have its requests traced nor write into your traces. The "
     "address is that of the connection.",
     .example = "\"10.0.0.0/8\""},
    {TRACING(icap), .name = "icap", AT_RUN_TIME, WORD(icap_words), DEFAULT("head"),
     DOC "Sets how ICAP services learn to which trace a message belongs. head: the head of the "
         "ICAP request has the fields traceparent and tracestate. message: the HTTP request that "
         "it encapsulates has them. both: both have them. off: neither has.",
     .example = "both"},
    {TRACING(queries), .name = "queries", BOOL, DEFAULT("false"),
     DOC "Sets whether the URLs in spans have their query. Queries often contain names, addresses "
         "and tokens of users.",
     .example = "true"},
    {TRACING(service_name), .name = "service_name", STRING, DEFAULT("retort"),
     .check = tracing_check_service_name,
     DOC "Sets the name of this proxy in traces (service.name), of at most 256 bytes.",
     .example = "\"edge-proxy\""},
    {TRACING(queue), .name = "queue", COUNT(1, 1e6), DEFAULT("2048"),
     DOC "Limits how many traced requests wait for the collector. Each takes some kilobytes. The "
         "spans of further ones are dropped, and retort_spans_dropped_total counts them.",
     .example = "500"},
    {TRACING(timeout), .name = "timeout", TIMEOUT, DEFAULT("10s"),
     DOC "Limits how long the collector may take for one post. No request waits for that.",
     .example = "\"3s\""},
    {TRACING(authorization), .name = "authorization", STRING, .secret = OPTION_SECRET,
     .fallback_note = "none",
     DOC "Sets the field Authorization of the posts, for collectors that ask for it.",
     .example = "\"Bearer 3b1f...\""},
    {TRACING(ca_file), .name = "ca_file", STRING, .fallback_note = "those of the system",
     DOC "Sets a file with the certificates of the authorities that a collector at https is "
         "verified with.",
     .example = "\"/etc/retort/collector-ca.pem\""},
    {.name = NULL},
};

static bool tracing_load(struct load *load, void *mine) {
    struct tracing_settings *tracing = mine;
    const struct document_section *section = document_section(load->document, "tracing", NULL);
    if (!load_values(load, section, "tracing", tracing))
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
    load->settings->traces = load->settings->watches_transactions = true;
    return true;
}

const struct part_settings spans_part_settings = {
    .options = rows,
    .sections = sections,
    .size = sizeof(struct tracing_settings),
    .load = tracing_load,
};
