#include "tls/staple.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/failure.h"
#include "base/list.h"
#include "tls/certificate_text.h"
#include "tls/ocsp.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
