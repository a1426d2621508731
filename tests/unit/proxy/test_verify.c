/* Names of certificates, and what is fetched when an issuer's certificate is missing. */
#include "event/loop.h"
#include "origin/small_fetch.h"
#include "suites.h"
#include "tls/certificate_text.h"
#include "tls/intermediates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>

START_TEST(names_match_by_whole_labels) {
    static const struct {
        const char *pattern, *host;
        bool match;
    } cases[] = {
        {"www.example.com", "www.example.com", true},
        {"WWW.Example.COM", "www.eXample.com", true},
        {"www.example.com", "www.example.com.", true},
        {"www.example.com", "example.com", false},
        {"example.com", "www.example.com", false},
        {"*.example.com", "www.example.com", true},
        {"*.example.com", "under_score.example.com", true},
        {"*.example.com", "example.com", false},
        {"*.example.com", "a.b.example.com", false},
        {"*.example.com", ".example.com", false},
        {"*.com", "example.com", false},
        {"*.", "example.", false},
        {"*", "localhost", false},
        {"*", "example.com", false},
        {"w*.example.com", "www.example.com", false},
        {"*w.example.com", "www.example.com", false},
        {"www.*.com", "www.example.com", false},
        {"*.*.com", "www.example.com", false},
        {"xn--*.example.com", "xn--bcher-kva.example.com", false},
        {".example.com", "www.example.com", false},
        {"", "", false},
        {"example.com ", "example.com", false},
        {"192.0.2.1", "192.0.2.1", false},
        {"127.1", "127.1", false},
        {"*.0.2.1", "192.0.2.1", false},
        {"::1", "::1", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_msg(certificate_names_match(slice_from(cases[i].pattern),
                                              slice_from(cases[i].host)) == cases[i].match,
                      "%s for %s", cases[i].pattern, cases[i].host);
    ck_assert(!certificate_names_match(slice_make("example.com\0.evil", 17), SLICE("example.com")));
}
END_TEST

static EVP_PKEY *a_key(void) {
    static EVP_PKEY *key;
    if (key == NULL)
        key = EVP_EC_gen("P-256");
    return key;
}

/* A certificate with these extensions, in the form of openssl.cnf; NULL: without. */
static X509 *certificate_with(const char *names, const char *access) {
    X509 *certificate = X509_new();
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_set_version(certificate, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)"common.example", -1, -1, 0);
    const struct {
        int id;
        const char *value;
    } extensions[] = {{NID_subject_alt_name, names}, {NID_info_access, access}};
    for (size_t i = 0; i < COUNT_OF(extensions); i++) {
        if (extensions[i].value == NULL)
            continue;
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, &context, extensions[i].id, extensions[i].value);
        ck_assert_ptr_nonnull(extension);
        X509_add_ext(certificate, extension, -1);
        X509_EXTENSION_free(extension);
    }
    X509_set_pubkey(certificate, a_key());
    ck_assert_int_gt(X509_sign(certificate, a_key(), EVP_sha256()), 0);
    return certificate;
}

static void check_host(const char *names, const char *host, bool included, const char *listed) {
    X509 *certificate = certificate_with(names, NULL);
    char text[100];
    ck_assert_msg(certificate_names_include(certificate, host) == included, "%s for %s",
                  names != NULL ? names : "none", host);
    certificate_names_list(certificate, text, sizeof text);
    ck_assert_str_eq(text, listed);
    X509_free(certificate);
}

START_TEST(only_the_right_kind_of_name_counts) {
    check_host("DNS:a.example,DNS:*.b.example", "x.b.example", true, "a.example, *.b.example");
    check_host("IP:192.0.2.1", "192.0.2.1", true, "192.0.2.1");
    check_host("IP:192.0.2.1", "192.0.2.2", false, "192.0.2.1");
    check_host("IP:2001:db8::1", "2001:db8:0:0::1", true, "2001:db8::1");
    check_host("DNS:192.0.2.1", "192.0.2.1", false, "192.0.2.1");
    check_host("URI:http://a.example/,email:x@a.example", "a.example", false, "");
    check_host(NULL, "common.example", false, "");
    check_host("DNS:1.x,DNS:2.x,DNS:3.x,DNS:4.x,DNS:5.x,DNS:6.x,DNS:7.x", "7.x", true,
               "1.x, 2.x, 3.x, 4.x, 5.x and 2 more");
}
END_TEST

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
static void put_one(struct intermediates *list, struct mailbox *mailbox, const char *url,
                    X509 *certificate) {
    struct waiter *waiter = NULL, *second = NULL;
    struct task task;
    task_init(&task, on_known);
    ck_assert(intermediates_await(list, url, &waiter, mailbox, &task));
    ck_assert(!intermediates_await(list, url, &second, mailbox, &task));
    STACK_OF(X509) *found = certificate != NULL ? sk_X509_new_null() : NULL;
    if (found != NULL)
        sk_X509_push(found, certificate);
    intermediates_put(list, url, found, 2, "it failed", mailbox->loop);
    ck_assert(waiter == NULL && second == NULL);
    sk_X509_free(found);
    task_cancel(&task);
}

START_TEST(fetched_certificates_are_remembered_within_bounds) {
    struct loop loop;
    struct mailbox mailbox;
    struct intermediates_found found;
    struct intermediates *list = intermediates_new();
    X509 *certificate = certificate_with("DNS:a.example", NULL);
    ck_assert(loop_init(&loop) && mailbox_init(&mailbox, &loop));
    ck_assert_int_eq(intermediates_find(list, "http://a/", &found), INTERMEDIATES_UNKNOWN);
    put_one(list, &mailbox, "http://bad/", NULL);
    ck_assert_int_eq(intermediates_find(list, "http://bad/", &found), INTERMEDIATES_FAILED);
    ck_assert_str_eq(found.error, "it failed");
    put_one(list, &mailbox, "http://a/", certificate);
    for (int i = 0; i < 2 * INTERMEDIATES_KEPT; i++) {
        char url[40];
        snprintf(url, sizeof url, "http://%d/", i);
        put_one(list, &mailbox, url, certificate);
        ck_assert_int_eq(intermediates_find(list, "http://a/", &found), INTERMEDIATES_KNOWN);
        ck_assert_int_eq(sk_X509_num(found.certificates), 1);
        ck_assert_uint_eq(found.hops, 2);
        sk_X509_pop_free(found.certificates, X509_free);
    }
    ck_assert_int_eq(intermediates_find(list, "http://0/", &found), INTERMEDIATES_UNKNOWN);
    ck_assert_int_eq(intermediates_find(list, "http://bad/", &found), INTERMEDIATES_UNKNOWN);
    X509_free(certificate);
    intermediates_free(&list);
    mailbox_release(&mailbox);
    loop_release(&loop);
}
END_TEST

Suite *verify_suite(void) {
    const TTest *const tests[] = {
        names_match_by_whole_labels,        only_the_right_kind_of_name_counts,
        only_http_urls_of_issuers_are_used, answers_are_read_in_all_forms,
        redirects_stay_with_http,           fetched_certificates_are_remembered_within_bounds,
    };
    return suite_of("verify", tests, COUNT_OF(tests));
}
