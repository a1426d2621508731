#include "pki/staple.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/failure.h"
#include "base/list.h"
#include "base/slice.h"
#include "tls/certificate_text.h"
#include "tls/context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OCSP_TOLERANCE = 300, OCSP_DAY = 86400, STATUS_REQUEST = 5 };

static int64_t ocsp_seconds(const ASN1_GENERALIZEDTIME *time) {
    struct tm broken;
    return time != NULL && ASN1_TIME_to_tm(time, &broken) == 1 ? timegm(&broken) : 0;
}

/* The certificate's issuer alone is trusted, so OpenSSL accepts no signer of another authority. */
static bool ocsp_is_signed(OCSP_BASICRESP *basic, X509 *issuer, STACK_OF(X509) * more) {
    X509_STORE *store = X509_STORE_new();
    bool good = store != NULL && X509_STORE_add_cert(store, issuer) == 1;
    if (good) {
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_get0_param(store), TLS_SECURITY_LEVEL);
        STACK_OF(X509) *others = more != NULL ? sk_X509_dup(more) : sk_X509_new_null();
        good = others != NULL && sk_X509_push(others, issuer) > 0 &&
               OCSP_basic_verify(basic, others, store, OCSP_PARTIAL_CHAIN) == 1;
        sk_X509_free(others);
    }
    X509_STORE_free(store);
    return good;
}

/* A response may name the certificate by digests of SHA-1 or of SHA-256. */
static bool ocsp_find(OCSP_BASICRESP *basic, X509 *certificate, X509 *issuer, int *status,
                      ASN1_GENERALIZEDTIME **revoked, ASN1_GENERALIZEDTIME **this_update,
                      ASN1_GENERALIZEDTIME **next_update) {
    const EVP_MD *const digests[] = {EVP_sha1(), EVP_sha256()};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof digests / sizeof *digests; i++) {
        OCSP_CERTID *id = OCSP_cert_to_id(digests[i], certificate, issuer);
        found = id != NULL && OCSP_resp_find_status(basic, id, status, NULL, revoked, this_update,
                                                    next_update) == 1;
        OCSP_CERTID_free(id);
    }
    return found;
}

static bool ocsp_is_timely(const struct ocsp_finding *finding, int64_t now) {
    int64_t until =
        finding->next_update > 0 ? finding->next_update : finding->this_update + OCSP_DAY;
    return finding->this_update > 0 && finding->this_update <= now + OCSP_TOLERANCE &&
           now <= until + OCSP_TOLERANCE;
}

static void ocsp_judge_basic(struct ocsp_finding *finding, OCSP_BASICRESP *basic, X509 *certificate,
                             X509 *issuer, STACK_OF(X509) * more, int64_t now) {
    ASN1_GENERALIZEDTIME *revoked = NULL, *this_update = NULL, *next_update = NULL;
    int status = V_OCSP_CERTSTATUS_UNKNOWN;
    if (!ocsp_is_signed(basic, issuer, more)) {
        finding->reason = "it is not signed by the issuer of the certificate";
        return;
    }
    if (!ocsp_find(basic, certificate, issuer, &status, &revoked, &this_update, &next_update)) {
        finding->reason = "it is about another certificate";
        return;
    }
    finding->this_update = ocsp_seconds(this_update);
    finding->next_update = ocsp_seconds(next_update);
    finding->revoked_at = ocsp_seconds(revoked);
    if (status == V_OCSP_CERTSTATUS_REVOKED) {
        finding->verdict = OCSP_REVOKED;
        finding->reason = "the certificate is revoked";
    } else if (!ocsp_is_timely(finding, now)) {
        finding->verdict = OCSP_OUTDATED;
        finding->reason = finding->this_update > now ? "it is from the future" : "it has expired";
    } else if (status == V_OCSP_CERTSTATUS_GOOD) {
        finding->verdict = OCSP_GOOD;
        finding->reason = "";
    } else {
        finding->verdict = OCSP_UNKNOWN;
        finding->reason = "the responder does not know the certificate";
    }
}

struct ocsp_finding ocsp_judge(const unsigned char *bytes, size_t length, X509 *certificate,
                               X509 *issuer, STACK_OF(X509) * more, int64_t now) {
    struct ocsp_finding finding = {.verdict = OCSP_WORTHLESS,
                                   .reason = "it is not a well-formed OCSP response"};
    const unsigned char *at = bytes;
    ERR_set_mark();
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)length);
    if (response != NULL && OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
        finding.reason = "the responder reports an error";
    else if (response != NULL) {
        OCSP_BASICRESP *basic = OCSP_response_get1_basic(response);
        if (basic != NULL)
            ocsp_judge_basic(&finding, basic, certificate, issuer, more, now);
        OCSP_BASICRESP_free(basic);
    }
    OCSP_RESPONSE_free(response);
    ERR_pop_to_mark();
    return finding;
}

unsigned char *ocsp_write_request(const X509 *certificate, const X509 *issuer, size_t *length) {
    OCSP_REQUEST *request = OCSP_REQUEST_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), certificate, issuer);
    unsigned char *bytes = NULL, *copy = NULL;
    int made = -1;
    if (request != NULL && id != NULL && OCSP_request_add0_id(request, id) != NULL) {
        id = NULL; /* the request owns it now */
        made = i2d_OCSP_REQUEST(request, &bytes);
    }
    if (made > 0) {
        *length = (size_t)made;
        copy = (unsigned char *)slice_dup(slice_make((char *)bytes, *length));
    }
    OPENSSL_free(bytes);
    OCSP_CERTID_free(id);
    OCSP_REQUEST_free(request);
    return copy;
}

char *ocsp_responder(const X509 *certificate) {
    STACK_OF(OPENSSL_STRING) *urls = X509_get1_ocsp((X509 *)certificate);
    char *found = NULL;
    for (int i = 0; found == NULL && i < sk_OPENSSL_STRING_num(urls); i++)
        if (strncasecmp(sk_OPENSSL_STRING_value(urls, i), "http://", strlen("http://")) == 0)
            found = xstrdup(sk_OPENSSL_STRING_value(urls, i));
    X509_email_free(urls);
    return found;
}

bool ocsp_is_demanded(const X509 *certificate) {
    TLS_FEATURE *features = X509_get_ext_d2i(certificate, NID_tlsfeature, NULL, NULL);
    bool demanded = false;
    for (int i = 0; !demanded && i < sk_ASN1_INTEGER_num(features); i++)
        demanded = ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == STATUS_REQUEST;
    TLS_FEATURE_free(features);
    return demanded;
}

/* In seconds: between two fetches after a success, after the first failure, and at most. */
enum { PAUSE_GOOD = 300, PAUSE_FIRST = 1, PAUSE_MOST = 3600, WITHOUT_END = 3600 };

struct staple {
    unsigned magic;
#define STAPLE_MAGIC 0x57a91e00u
    struct list_link link; /* of all; protected by all_lock, as `references` */
    unsigned references;
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT];
    X509 *certificate, *issuer; /* counted copies; issuer NULL: not known */
    pthread_mutex_t lock;       /* for all below */
    unsigned char *bytes;       /* the response; NULL: none */
    size_t length;
    struct ocsp_finding finding; /* about it */
    int64_t tried_at;
    unsigned failures; /* in a row */
    char error[STAPLE_ERROR];
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link all = {&all, &all};
static pthread_once_t slot_once = PTHREAD_ONCE_INIT;
static int staple_slot; /* of X509: its staple */

static void staple_free(struct staple *staple) {
    X509_free(staple->certificate);
    X509_free(staple->issuer);
    pthread_mutex_destroy(&staple->lock);
    free(staple->bytes);
    FREE_OBJ(staple);
}

static void staple_release(struct staple *staple) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    pthread_mutex_lock(&all_lock);
    bool last = --staple->references == 0;
    if (last)
        list_remove(&staple->link);
    pthread_mutex_unlock(&all_lock);
    if (last)
        staple_free(staple);
}

/* OpenSSL calls this when a certificate is freed. */
static void staple_on_certificate_freed(void *parent, void *pointer, CRYPTO_EX_DATA *data, int slot,
                                        long argl, void *argp) {
    (void)parent, (void)data, (void)slot, (void)argl, (void)argp;
    if (pointer != NULL)
        staple_release(pointer);
}

static void make_slot(void) {
    staple_slot = X509_get_ex_new_index(0, NULL, NULL, NULL, staple_on_certificate_freed);
    ASSERT(staple_slot >= 0);
}

static X509 *find_issuer(X509 *certificate, const STACK_OF(X509) * chain) {
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (X509_check_issued(sk_X509_value(chain, i), certificate) == X509_V_OK)
            return sk_X509_value(chain, i);
    return NULL;
}

/* A copy has no staple of its own, so it does not keep itself alive. */
static struct staple *staple_new(X509 *certificate, const STACK_OF(X509) * chain) {
    struct staple *staple;
    X509 *issuer = find_issuer(certificate, chain);
    ALLOC_OBJ(staple, STAPLE_MAGIC);
    staple->certificate = X509_dup(certificate);
    staple->issuer = issuer != NULL ? X509_dup(issuer) : NULL;
    ASSERT(staple->certificate != NULL);
    pthread_mutex_init(&staple->lock, NULL);
    certificate_text_fingerprint(certificate, staple->fingerprint);
    return staple;
}

static struct staple *staple_find(const char *fingerprint) {
    for (struct list_link *link = all.next; link != &all; link = link->next) {
        struct staple *staple = CONTAINER_OF(link, struct staple, link);
        if (strcmp(staple->fingerprint, fingerprint) == 0)
            return staple;
    }
    return NULL;
}

void staple_attach(X509 *certificate, const STACK_OF(X509) * chain) {
    struct staple *fresh = staple_new(certificate, chain);
    pthread_once(&slot_once, make_slot);
    pthread_mutex_lock(&all_lock);
    struct staple *staple = staple_find(fresh->fingerprint);
    if (staple == NULL || (staple->issuer == NULL && fresh->issuer != NULL)) {
        staple = fresh;
        fresh = NULL;
        list_prepend(&all, &staple->link);
    }
    staple->references++;
    pthread_mutex_unlock(&all_lock);
    if (fresh != NULL)
        staple_free(fresh);
    int good = X509_set_ex_data(certificate, staple_slot, staple);
    ASSERT(good == 1);
}

struct staple *staple_of(const X509 *certificate) {
    pthread_once(&slot_once, make_slot);
    struct staple *staple = X509_get_ex_data(certificate, staple_slot);
    if (staple != NULL)
        CHECK_OBJ(staple, STAPLE_MAGIC);
    return staple;
}

/* The first time at which the response must not be shown. */
static int64_t staple_end(const struct staple *staple) {
    const struct ocsp_finding *finding = &staple->finding;
    return finding->next_update > 0 ? finding->next_update : finding->this_update + WITHOUT_END;
}

/* Hands a copy of the response to OpenSSL. */
static int staple_on_request(SSL *ssl, void *owner) {
    X509 *certificate = SSL_get_certificate(ssl);
    struct staple *staple = certificate != NULL ? staple_of(certificate) : NULL;
    unsigned char *copy = NULL;
    (void)owner;
    if (staple == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    pthread_mutex_lock(&staple->lock);
    size_t length = staple->length;
    if (staple->bytes != NULL && time(NULL) < staple_end(staple))
        copy = OPENSSL_memdup(staple->bytes, length);
    pthread_mutex_unlock(&staple->lock);
    if (copy == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)length);
    return SSL_TLSEXT_ERR_OK;
}

void staple_install(SSL_CTX *context) {
    SSL_CTX_set_tlsext_status_cb(context, staple_on_request);
}

bool staple_put(struct staple *staple, const unsigned char *bytes, size_t length, int64_t now,
                char error[STAPLE_ERROR]) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    if (staple->issuer == NULL)
        return failure(error, STAPLE_ERROR,
                       "the certificate's file lacks the certificate of its issuer");
    struct ocsp_finding finding =
        ocsp_judge(bytes, length, staple->certificate, staple->issuer, NULL, now);
    if (finding.verdict != OCSP_GOOD && finding.verdict != OCSP_REVOKED)
        return failure(error, STAPLE_ERROR, "%s", finding.reason);
    unsigned char *copy = xcalloc(1, length);
    memcpy(copy, bytes, length);
    pthread_mutex_lock(&staple->lock);
    if (staple->bytes != NULL && staple->finding.this_update > finding.this_update) {
        pthread_mutex_unlock(&staple->lock);
        free(copy);
        return true;
    }
    free(staple->bytes);
    staple->bytes = copy;
    staple->length = length;
    staple->finding = finding;
    staple->tried_at = now;
    staple->failures = 0;
    staple->error[0] = '\0';
    pthread_mutex_unlock(&staple->lock);
    return true;
}

void staple_note_failure(struct staple *staple, const char *error, int64_t now) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    pthread_mutex_lock(&staple->lock);
    staple->tried_at = now;
    staple->failures++;
    snprintf(staple->error, sizeof staple->error, "%s", error);
    pthread_mutex_unlock(&staple->lock);
}

bool staple_load(struct staple *staple, const char *path, char error[STAPLE_ERROR]) {
    unsigned char *bytes = xcalloc(1, STAPLE_MOST);
    FILE *file = fopen(path, "re");
    bool good = file == NULL && errno == ENOENT;
    size_t length = file != NULL ? fread(bytes, 1, STAPLE_MOST, file) : 0;
    if (file != NULL && !ferror(file))
        good = staple_put(staple, bytes, length, time(NULL), error);
    else if (!good)
        failure(error, STAPLE_ERROR, "%s", strerrordesc_np(errno));
    if (file != NULL)
        fclose(file);
    free(bytes);
    return good;
}

static int64_t staple_pause(const struct staple *staple) {
    if (staple->failures == 0)
        return PAUSE_GOOD;
    return (int64_t)backoff_after(PAUSE_FIRST, PAUSE_MOST, staple->failures);
}

static int64_t staple_due_locked(const struct staple *staple, int64_t now) {
    int64_t due = now, earliest = staple->tried_at + staple_pause(staple);
    if (staple->bytes != NULL)
        due = staple->finding.this_update + (staple_end(staple) - staple->finding.this_update) / 2;
    if (staple->tried_at == 0)
        return due;
    return due > earliest ? due : earliest;
}

int64_t staple_due(struct staple *staple, int64_t now) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    pthread_mutex_lock(&staple->lock);
    int64_t due = staple_due_locked(staple, now);
    pthread_mutex_unlock(&staple->lock);
    return due;
}

char *staple_responder(struct staple *staple, unsigned char **request, size_t *length,
                       char error[STAPLE_ERROR]) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    char *url = ocsp_responder(staple->certificate);
    if (url == NULL)
        failure(error, STAPLE_ERROR, "the certificate names no OCSP responder with an http URL");
    else if (staple->issuer == NULL)
        failure(error, STAPLE_ERROR, "the certificate's file lacks the certificate of its issuer");
    else if ((*request = ocsp_write_request(staple->certificate, staple->issuer, length)) != NULL)
        return url;
    free(url);
    return NULL;
}

void staple_describe(const X509 *certificate, char text[TLS_PKI_TEXT]) {
    struct staple *staple = staple_of(certificate);
    struct staple_report report;
    char date[CERTIFICATE_TEXT_DATE];
    if (staple == NULL) {
        strcpy(text, "off");
        return;
    }
    staple_read(staple, &report);
    certificate_text_date(report.next_update, date);
    if (report.state == STAPLE_REVOKED)
        strcpy(text, "revoked");
    else if (report.state == STAPLE_GOOD)
        snprintf(text, TLS_PKI_TEXT, "good until %s", date);
    else
        snprintf(text, TLS_PKI_TEXT, "none%s%s", report.error[0] != '\0' ? ": " : "", report.error);
}

void staple_read(struct staple *staple, struct staple_report *report) {
    CHECK_OBJ(staple, STAPLE_MAGIC);
    int64_t now = time(NULL);
    pthread_mutex_lock(&staple->lock);
    bool shown = staple->bytes != NULL && now < staple_end(staple);
    report->state = !shown                                    ? STAPLE_NONE
                    : staple->finding.verdict == OCSP_REVOKED ? STAPLE_REVOKED
                                                              : STAPLE_GOOD;
    report->next_update = staple->bytes != NULL ? staple_end(staple) : 0;
    report->due = staple_due_locked(staple, now);
    memcpy(report->error, staple->error, sizeof report->error);
    pthread_mutex_unlock(&staple->lock);
}
