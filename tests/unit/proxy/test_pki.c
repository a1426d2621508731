/* What is fetched when an issuer's certificate is missing. */
#include "event/loop.h"
#include "pki/intermediates.h"
#include "pki/small_fetch.h"
#include "suites.h"

#include <openssl/pem.h>
#include <stdio.h>

static void check_url(const char *access, const char *expected) {
    X509 *certificate = certificate_with(NULL, access);
    char *url = aia_issuer_url(certificate);
    ck_assert_msg((url == NULL) == (expected == NULL), "%s", access != NULL ? access : "none");
    if (expected != NULL)
        ck_assert_str_eq(url, expected);
    free(url);
    X509_free(certificate);
}

START_TEST(only_http_urls_of_issuers_are_used) {
    char access[2 * AIA_URL_MOST] = "caIssuers;URI:http://ca.example/";
    check_url("caIssuers;URI:http://ca.example/x.der", "http://ca.example/x.der");
    check_url("OCSP;URI:http://ocsp.example/,caIssuers;URI:HTTP://ca.example/x",
              "HTTP://ca.example/x");
    check_url("caIssuers;URI:ldap://ca.example/x,caIssuers;URI:http://ca.example/y",
              "http://ca.example/y");
    check_url("caIssuers;URI:https://ca.example/x", NULL);
    check_url("caIssuers;URI:http://", NULL);
    check_url("caIssuers;URI:http://ca.example/a b", NULL);
    check_url("caIssuers;DNS:ca.example", NULL);
    check_url("OCSP;URI:http://ocsp.example/", NULL);
    check_url(NULL, NULL);
    memset(access + strlen(access), 'x', AIA_URL_MOST);
    check_url(access, NULL);
}
END_TEST

static void check_parse(const unsigned char *bytes, size_t length, int expected) {
    STACK_OF(X509) *found = aia_parse(bytes, length);
    ck_assert_int_eq(found != NULL ? sk_X509_num(found) : 0, expected);
    sk_X509_pop_free(found, X509_free);
}

START_TEST(answers_are_read_in_all_forms) {
    X509 *certificate = certificate_with("DNS:a.example", NULL);
    unsigned char *der = NULL, *large = calloc(1, AIA_BYTES_MOST + 1);
    char *pem;
    int length = i2d_X509(certificate, &der);
    BIO *bio = BIO_new(BIO_s_mem());
    check_parse(der, (size_t)length, 1);
    for (int cut = 0; cut < length; cut++)
        check_parse(der, (size_t)cut, 0);
    for (int i = 0; i < AIA_CERTIFICATES_MOST + 2; i++)
        PEM_write_bio_X509(bio, certificate);
    long pem_length = BIO_get_mem_data(bio, &pem);
    check_parse((unsigned char *)pem, (size_t)pem_length, AIA_CERTIFICATES_MOST);
    check_parse((unsigned char *)pem, (size_t)pem_length / (AIA_CERTIFICATES_MOST + 2), 1);
    check_parse((const unsigned char *)"<html>", 6, 0);
    check_parse((const unsigned char *)"", 0, 0);
    memcpy(large, der, (size_t)length);
    check_parse(large, AIA_BYTES_MOST, 1);
    check_parse(large, AIA_BYTES_MOST + 1, 0);
    BIO_free(bio);
    OPENSSL_free(der);
    free(large);
    X509_free(certificate);
}
END_TEST

static void check_redirect(const char *location, const char *expected) {
    struct url base;
    char url[SMALL_FETCH_URL + 1];
    ck_assert(url_parse(&base, SLICE("http://ca.example:81/a/b?c")));
    ck_assert_msg(small_fetch_redirect(&base, slice_from(location), url) == (expected != NULL),
                  "%s", location);
    if (expected != NULL)
        ck_assert_str_eq(url, expected);
}

START_TEST(redirects_stay_with_http) {
    check_redirect("http://other.example/x", "http://other.example/x");
    check_redirect("HTTP://other.example", "http://other.example/");
    check_redirect("/x?y", "http://ca.example:81/x?y");
    check_redirect("https://ca.example/x", NULL);
    check_redirect("ftp://ca.example/x", NULL);
    check_redirect("//other.example/x", NULL);
    check_redirect("x", NULL);
    check_redirect("", NULL);
}
END_TEST

static void on_known(struct task *task) {
    (void)task;
}

/* Fetches a URL: its certificate, or a failure. */
static void put_one(struct mailbox *mailbox, const char *url, X509 *certificate) {
    struct waiter *waiter = NULL, *second = NULL;
    struct task task;
    task_init(&task, on_known);
    ck_assert(intermediates_await(url, &waiter, mailbox, &task));
    ck_assert(!intermediates_await(url, &second, mailbox, &task));
    STACK_OF(X509) *found = certificate != NULL ? sk_X509_new_null() : NULL;
    if (found != NULL)
        sk_X509_push(found, certificate);
    intermediates_put(url, found, 2, "it failed", mailbox->loop);
    ck_assert(waiter == NULL && second == NULL);
    sk_X509_free(found);
    task_cancel(&task);
}

START_TEST(fetched_certificates_are_remembered_within_bounds) {
    struct loop loop;
    struct mailbox mailbox;
    struct intermediates_found found;
    X509 *certificate = certificate_with("DNS:a.example", NULL);
    ck_assert(loop_init(&loop) && mailbox_init(&mailbox, &loop));
    ck_assert_int_eq(intermediates_find("http://a/", &found), INTERMEDIATES_UNKNOWN);
    put_one(&mailbox, "http://bad/", NULL);
    ck_assert_int_eq(intermediates_find("http://bad/", &found), INTERMEDIATES_FAILED);
    ck_assert_str_eq(found.error, "it failed");
    put_one(&mailbox, "http://a/", certificate);
    for (int i = 0; i < 2 * INTERMEDIATES_KEPT; i++) {
        char url[40];
        snprintf(url, sizeof url, "http://%d/", i);
        put_one(&mailbox, url, certificate);
        ck_assert_int_eq(intermediates_find("http://a/", &found), INTERMEDIATES_KNOWN);
        ck_assert_int_eq(sk_X509_num(found.certificates), 1);
        ck_assert_uint_eq(found.hops, 2);
        sk_X509_pop_free(found.certificates, X509_free);
    }
    ck_assert_int_eq(intermediates_find("http://0/", &found), INTERMEDIATES_UNKNOWN);
    ck_assert_int_eq(intermediates_find("http://bad/", &found), INTERMEDIATES_UNKNOWN);
    X509_free(certificate);
    intermediates_drop_all();
    mailbox_release(&mailbox);
    loop_release(&loop);
}
END_TEST

Suite *pki_suite(void) {
    const TTest *const tests[] = {
        only_http_urls_of_issuers_are_used,
        answers_are_read_in_all_forms,
        redirects_stay_with_http,
        fetched_certificates_are_remembered_within_bounds,
    };
    return suite_of("pki", tests, COUNT_OF(tests));
}
