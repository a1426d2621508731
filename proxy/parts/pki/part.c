#include "part.h"

#include "base/assert.h"
#include "net/context.h"
#include "pki/fetches.h"
#include "pki/intermediates.h"
#include "pki/staple.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "tls/certificate_text.h"
#include "tls/verify.h"
#include "transaction/transaction.h"

#include <openssl/ssl.h>
#include <string.h>
#include <time.h>

/* The part pki: OCSP responses, stapled to our certificates and checked with those of servers, and certificates of issuers that
 * servers did not send. */

/* Missing intermediates. */

/* The certificate of the issuer of `last` is missing. `url`: where it would be; NULL: not known. `reason`: why it can't be
 * fetched. */
static void pki_say_missing(struct tls_verification *verification, const X509 *last,
                            const char *url, const char *reason) {
    char fetch[TLS_VERIFY_ERROR];
    snprintf(fetch, sizeof fetch, ", and can't be fetched%s%.150s (%s)",
             url != NULL ? " from " : "", url != NULL ? url : "", reason);
    tls_verify_say_missing(verification, last, fetch);
}

static void pki_add_fetched(struct tls_verification *verification, char *url,
                            struct intermediates_found *found) {
    verification->hops += found->hops;
    free(verification->last_used);
    verification->last_used = url;
    if (verification->fetched == NULL) {
        verification->fetched = found->certificates;
        return;
    }
    for (X509 *each; (each = sk_X509_shift(found->certificates)) != NULL;)
        if (sk_X509_push(verification->fetched, each) <= 0)
            X509_free(each);
    sk_X509_free(found->certificates);
}

/* Looks for the issuer of the last certificate of the chain. Returns true when the handshake is to
 * be suspended: to fetch the issuer, or only to verify once more. Takes `url`. */
static bool pki_seek(struct tls_verification *verification, char *url, X509 *last) {
    struct intermediates_found found = {.certificates = NULL};
    const char *failure = "";
    switch (intermediates_find(url, &found)) {
    case INTERMEDIATES_UNKNOWN:
        if (verification->hops < TLS_VERIFY_HOPS) {
            verification->wanted = url;
            return true;
        }
        failure = "too many certificates are missing";
        break;
    case INTERMEDIATES_KNOWN:
        if (verification->hops + found.hops <= TLS_VERIFY_HOPS) {
            pki_add_fetched(verification, url, &found);
            return true;
        }
        sk_X509_pop_free(found.certificates, X509_free);
        failure = "too many requests and redirects are needed";
        break;
    case INTERMEDIATES_FAILED: failure = found.error; break;
    }
    pki_say_missing(verification, last, url, failure);
    free(url);
    return false;
}

static bool pki_complete(struct tls_verification *verification, X509 *last) {
    char *url = aia_issuer_url(last);
    if (url == NULL)
        pki_say_missing(verification, last, NULL, "the certificate names no http URL for it");
    else if (verification->last_used != NULL && strcmp(url, verification->last_used) == 0)
        pki_say_missing(verification, last, url, "it is not what is there");
    else
        return pki_seek(verification, url, last);
    free(url);
    return false;
}

static bool pki_offer(struct tls_verification *verification, X509_STORE_CTX *context) {
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(context);
    STACK_OF(X509) *offered = sent != NULL ? sk_X509_dup(sent) : sk_X509_new_null();
    sk_X509_free(verification->offered);
    verification->offered = offered;
    for (int i = 0; offered != NULL && i < sk_X509_num(verification->fetched); i++)
        if (sk_X509_push(offered, sk_X509_value(verification->fetched, i)) <= 0)
            return false;
    X509_STORE_CTX_set0_untrusted(context, offered);
    return offered != NULL;
}

static void pki_fetch(struct net_context *net, const char *url, struct waiter **waiter,
                      struct task *task) {
    if (intermediates_await(url, waiter, net->mailbox, task))
        pki_fetch_certificate(net, url);
}

/* Stapled OCSP responses of servers. */

/* `finding` NULL: the certificate demands a response, and there is none. */
static void pki_say_unstapled(char error[TLS_VERIFY_ERROR], const struct ocsp_finding *finding) {
    char date[TLS_VERIFY_DATE];
    if (finding == NULL)
        snprintf(error, TLS_VERIFY_ERROR,
                 "its certificate demands a stapled OCSP response (must-staple), and it sent none: "
                 "switch on OCSP stapling on that host");
    else if (finding->verdict == OCSP_REVOKED)
        snprintf(error, TLS_VERIFY_ERROR,
                 "its certificate was revoked on %s, says the OCSP response that it sent: get a "
                 "new certificate for that host",
                 tls_verify_date(date, finding->revoked_at));
    else
        snprintf(error, TLS_VERIFY_ERROR,
                 "the stapled OCSP response of its certificate is of no use (%s): correct OCSP "
                 "stapling on that host",
                 finding->reason);
}

static bool pki_judge_staple(struct tls_verification *verification, SSL *ssl, X509 *leaf,
                             const unsigned char *bytes, long length) {
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    X509 *issuer = sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : leaf;
    struct ocsp_finding finding =
        ocsp_judge(bytes, (size_t)length, leaf, issuer, chain, time(NULL));
    if (finding.verdict == OCSP_GOOD)
        return true;
    if (finding.verdict != OCSP_REVOKED && verification->policy->staple != TLS_STAPLE_STRICT &&
        !ocsp_is_demanded(leaf))
        return true;
    pki_say_unstapled(verification->error, &finding);
    return false;
}

/* OpenSSL calls this when the first flight of the server is complete, also without a response. */
static int pki_on_staple(SSL *ssl, void *owner) {
    struct tls_verification *verification = tls_verification_of(ssl);
    const unsigned char *bytes = NULL;
    (void)owner;
    X509 *leaf = SSL_get0_peer_certificate(ssl);
    if (SSL_session_reused(ssl) || leaf == NULL)
        return 1;
    long length = SSL_get_tlsext_status_ocsp_resp(ssl, &bytes);
    if (bytes != NULL && length > 0)
        return pki_judge_staple(verification, ssl, leaf, bytes, length);
    if (!ocsp_is_demanded(leaf))
        return 1;
    pki_say_unstapled(verification->error, NULL);
    return 0;
}

static void pki_ask_for_staple(SSL_CTX *context) {
    SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
    SSL_CTX_set_tlsext_status_cb(context, pki_on_staple);
}

static const struct tls_pki pki_class = {
    .staple = staple_install,
    .check_staple = pki_ask_for_staple,
    .complete = pki_complete,
    .offer = pki_offer,
    .fetch = pki_fetch,
    .forget = intermediates_forget,
    .describe = staple_describe,
};

/* Settings: whether, and what certificates of listeners have in files. */

/* enum tls_staple_check. */
static const char *const staple_words[] = {"off", "on", "strict", NULL};
static const char *const listen_ocsp_words[] = {"off", "file", "fetch", NULL};

#define ORIGINS(member) ONE("origins", struct origins_settings, member)
#define ORIGIN(member)  ONE("origin", struct settings, origin.member)

#define FETCH_DOC(servers)                                                                         \
    DOC "Fetches a certificate that " servers " should have sent but have not: the issuer of "     \
        "their own certificate. Its URL stands in the certificate (AIA). It is fetched by http, "  \
        "with at most four requests and 64 KB each, and never from private networks or this "      \
        "machine. What was fetched is remembered for a day, and is trusted only as far as a "      \
        "trusted authority has signed it. retort_intermediates_failed_total counts failures.",     \
        .example = "off"
#define CHECK_DOC(servers)                                                                         \
    DOC "Checks the OCSP response that " servers " send with their certificate. A revoked "        \
        "certificate is refused, and so is a certificate that demands such a response "            \
        "(must-staple) when no good one comes. strict: a certificate with a response that is not " \
        "good for another reason, such as its age, is refused as well.",                           \
        .example = "strict"

static const struct option core_rows[] = {
    {ONE("listen", struct listen_settings, tls.ocsp), .name = "ocsp", .after = "session_tickets",
     AT_RUN_TIME, WORD(listen_ocsp_words), DEFAULT("file"),
     DOC "Sets whether OCSP responses are stapled to the certificates, so that browsers need not "
         "ask the authority whether a certificate is revoked. off: never. file: the response in "
         "the file beside the certificate is stapled, www.pem.ocsp for www.pem, in DER; a file "
         "that is missing is no error. A reload reads the file again. fetch: one worker fetches "
         "the responses from the responder that the certificate names, renews them after half "
         "their time, and keeps them over reloads; the file serves until the first one comes. A "
         "response is verified before it is used, and stapled until it expires. "
         "retort_staples_failed_total counts failures. The certificate's file must contain the "
         "certificate of its issuer.",
     .example = "fetch"},
    {ORIGINS(trust.fetch_intermediates), .name = "fetch_intermediates", .after = "min_version",
     BOOL, .fallback_note = "that of the section origin", FETCH_DOC("the servers of the group")},
    {ORIGINS(trust.check_staple), .name = "check_staple", .after = "fetch_intermediates",
     WORD(staple_words), .fallback_note = "that of the section origin",
     CHECK_DOC("the servers of the group")},
    {ORIGIN(trust.fetch_intermediates), .name = "fetch_intermediates", .after = "min_version", BOOL,
     DEFAULT("true"), FETCH_DOC("origins")},
    {ORIGIN(trust.check_staple), .name = "check_staple", .after = "fetch_intermediates",
     WORD(staple_words), DEFAULT("on"), CHECK_DOC("origins")},
    {.name = NULL},
};

/* Gives the certificates their OCSP responses, as far as they are in files. */
static void load_staples(const struct load *load, const struct listen_tls_settings *tls) {
    for (size_t i = 0; tls->ocsp != LISTEN_OCSP_OFF && i < certificate_set_count(tls->set); i++) {
        const struct certificate *certificate = certificate_set_at(tls->set, i);
        char error[STAPLE_ERROR], *path;
        int length = asprintf(&path, "%s.ocsp", certificate->file);
        ASSERT(length > 0);
        staple_attach(certificate->leaf, certificate->chain);
        if (!staple_load(staple_of(certificate->leaf), path, error))
            load_warn(load, 0, "%s is not used: %s; replace the file or remove it (listen.ocsp)",
                      path, error);
        free(path);
    }
}

static bool pki_load(struct load *load, void *mine) {
    (void)mine;
    for (size_t i = 0; i < load->settings->listen_count; i++)
        if (load->settings->listens[i].tls.set != NULL)
            load_staples(load, &load->settings->listens[i].tls);
    return true;
}

static const struct part_settings pki_part_settings = {.core_options = core_rows, .load = pki_load};

/* The process and its workers. */

static void pki_close(struct server *server) {
    (void)server;
    intermediates_drop_all();
}

static void pki_cut(struct transaction_host *host) {
    struct pki_fetches *fetches = host->parts[PART_PKI];
    host->parts[PART_PKI] = NULL;
    pki_fetches_free(&fetches);
}

static void pki_fetch_staples(struct pki_fetches *fetches, const struct listen_tls_settings *tls) {
    bool fetched = tls->ocsp == LISTEN_OCSP_FETCH && tls->set != NULL;
    for (size_t i = 0; fetched && i < certificate_set_count(tls->set); i++) {
        const struct certificate *certificate = certificate_set_at(tls->set, i);
        pki_fetch_staple(fetches, certificate->leaf, certificate_name(certificate));
    }
}

/* One worker fetches the OCSP responses for all. */
static void pki_change(struct transaction_host *host) {
    const struct settings *settings = host->net->settings;
    struct pki_fetches *fetches = host->parts[PART_PKI];
    pki_fetches_forget_staples(fetches);
    for (size_t i = 0; host->index == 0 && i < settings->listen_count; i++)
        pki_fetch_staples(fetches, &settings->listens[i].tls);
}

static void pki_drain(struct transaction_host *host) {
    pki_fetches_forget_staples(host->parts[PART_PKI]);
}

static void pki_join(struct transaction_host *host, void *state) {
    (void)state;
    host->parts[PART_PKI] = pki_fetches_new(host->net, host->origins);
    pki_change(host);
}

const struct part part_pki = {
    .pki = &pki_class,
    .settings = &pki_part_settings,
    .process = {.close = pki_close},
    .worker = {.join = pki_join,
               .change = pki_change,
               .drain = pki_drain,
               .cut = pki_cut,
               .leave = pki_cut},
};
