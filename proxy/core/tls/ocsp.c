#include "tls/ocsp.h"

#include "base/assert.h"
#include "base/slice.h"
#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>
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
