#include "part.h"

#include "base/assert.h"
#include "base/slice.h"
#include "intercept/intercept.h"
#include "server.h"
#include "text/text_template.h"
#include "tls/authority.h"
#include "tls/certificate_text.h"
#include "tls/server.h"
#include "transaction/internal.h"
#include "transaction/page.h"

#include <openssl/pem.h>
#include <stdio.h>

/*
 * The page that gives clients the certificate of the proxy's authority, if the settings have
 * `interception { ca_page = true }`: http://retort.internal/ca says how to install it, or is the page of an
 * error_page section with for = authority; /ca/retort-ca.crt and .der are the certificate. The key is
 * nowhere near it: the page is made from the certificate alone.
 */

static void ca_page_put_text(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
    }
}

static void ca_page_write_html(FILE *out, X509 *certificate) {
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT], until[CERTIFICATE_TEXT_DATE];
    char *name = certificate_text_name(X509_get_subject_name(certificate));
    certificate_text_fingerprint(certificate, fingerprint);
    certificate_text_date(certificate_text_expiry(certificate), until);
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n"
        "<title>Certificate of this network's proxy</title></head>\n<body>\n"
        "<h1>Certificate of this network's proxy</h1>\n"
        "<p>The proxy opens some encrypted connections, so that it can check and change what they "
        "carry. A device that trusts the certificate below accepts this. Install it only if "
        "whoever runs this network has asked you to, and compare the fingerprint with the one "
        "that they give you.</p>\n"
        "<p><a href=\"/ca/retort-ca.crt\">retort-ca.crt</a> (PEM) or "
        "<a href=\"/ca/retort-ca.der\">retort-ca.der</a> (DER)</p>\n<p>",
        out);
    ca_page_put_text(out, name);
    fprintf(out, "<br>valid until %s<br>SHA-256 <code>%s</code></p>\n", until, fingerprint);
    for (const struct authority_hint *hint = authority_hints; hint->system != NULL; hint++) {
        fputs("<h2>", out);
        ca_page_put_text(out, hint->system);
        fputs("</h2>\n<pre>", out);
        ca_page_put_text(out, hint->steps);
        fputs("</pre>\n", out);
    }
    fputs("</body></html>\n", out);
    free(name);
}

static void ca_page_write_pem(FILE *out, X509 *certificate) {
    PEM_write_X509(out, certificate);
}

static void ca_page_write_der(FILE *out, X509 *certificate) {
    i2d_X509_fp(out, certificate);
}

static const struct {
    struct slice path, type;
    void (*write)(FILE *out, X509 *certificate);
} files[] = {
    {{"/ca", 3}, {"text/html; charset=utf-8", 24}, ca_page_write_html},
    {{"/ca/retort-ca.crt", 17}, {"application/x-pem-file", 22}, ca_page_write_pem},
    {{"/ca/retort-ca.der", 17}, {"application/x-x509-ca-cert", 26}, ca_page_write_der},
};

static struct slice ca_page_body(X509 *certificate, void (*write)(FILE *, X509 *),
                                 struct arena *arena) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    write(out, certificate);
    fclose(out);
    struct slice body = arena_slice(arena, slice_make(text, length));
    free(text);
    return body;
}

/* The variables of an error_page section with for = authority. */
static struct slice ca_page_value(void *arg, unsigned variable) {
    struct transaction *transaction = arg;
    X509 *certificate = intercept_settings(transaction)->authority->certificate;
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT], until[CERTIFICATE_TEXT_DATE];
    switch (variable) {
    case VARIABLE_CA_SUBJECT: {
        char *name = certificate_text_name(X509_get_subject_name(certificate));
        struct slice value = arena_slice(&transaction->arena, slice_from(name));
        free(name);
        return value;
    }
    case VARIABLE_CA_FINGERPRINT:
        certificate_text_fingerprint(certificate, fingerprint);
        return arena_slice(&transaction->arena, slice_from(fingerprint));
    case VARIABLE_CA_EXPIRY:
        certificate_text_date(certificate_text_expiry(certificate), until);
        return arena_slice(&transaction->arena, slice_from(until));
    default: return slice_make(NULL, 0);
    }
}

/* The page for people, the first file, may be an operator's. */
static bool ca_page_answer(struct transaction *transaction, struct slice path) {
    const struct interception_settings *settings = intercept_settings(transaction);
    struct page_text page = {
        .purpose = PAGE_FOR_AUTHORITY, .value = ca_page_value, .arg = transaction};
    size_t i = 0, count = sizeof files / sizeof files[0];
    while (i < count && !slice_equal(files[i].path, path))
        i++;
    if (i == count || !settings->ca_page || settings->authority == NULL)
        return false;
    if (i > 0 || !page_write(transaction, &page))
        page.body =
            ca_page_body(settings->authority->certificate, files[i].write, &transaction->arena);
    internal_respond(transaction, 200, files[i].type, SLICE("no-store"), page.body);
    page_add_language(transaction->response.head, &page);
    return true;
}

/* The part intercept: TLS connections of clients that are opened, spliced or blocked. */

/* ---- the server -------------------------------------------------------------------------------- */

static void intercept_open(struct server *server) {
    server->parts[PART_INTERCEPT] = interception_new(interception_settings_of(server->settings));
}

static void intercept_change(struct server *server, struct settings *settings) {
    interception_configure(server->parts[PART_INTERCEPT], interception_settings_of(settings));
}

static void intercept_close(struct server *server) {
    struct interception *interception = server->parts[PART_INTERCEPT];
    server->parts[PART_INTERCEPT] = NULL;
    interception_free(&interception);
}

/* ---- a worker ---------------------------------------------------------------------------------- */

static struct tls_server *inside_new(bool http2) {
    return tls_server_new(&(struct tls_server_settings){.policy = "intercepted", .http2 = http2});
}

static void intercept_join(struct transaction_host *host, void *state) {
    struct intercept_host *own = xcalloc(1, sizeof *own);
    *own = (struct intercept_host){state, inside_new(true), inside_new(false)};
    host->parts[PART_INTERCEPT] = own;
}

static void intercept_leave(struct transaction_host *host) {
    struct intercept_host *own = host->parts[PART_INTERCEPT];
    host->parts[PART_INTERCEPT] = NULL;
    if (own == NULL)
        return;
    tls_server_release(&own->inside);
    tls_server_release(&own->inside_http1);
    free(own);
}

static const struct step_row *const steps[] = {&intercept_step, &bump_step, NULL};

const struct part part_intercept = {
    .settings = &intercept_part_settings,
    .process = {.open = intercept_open, .change = intercept_change, .close = intercept_close},
    .worker = {.join = intercept_join, .leave = intercept_leave, .answer_internal = ca_page_answer},
    .steps = steps,
};
