/* Names of certificates. */
#include "suites.h"
#include "tls/certificate_text.h"

#include <openssl/x509v3.h>

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

X509 *certificate_with(const char *names, const char *access) {
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

Suite *verify_suite(void) {
    const TTest *const tests[] = {
        names_match_by_whole_labels,
        only_the_right_kind_of_name_counts,
    };
    return suite_of("verify", tests, COUNT_OF(tests));
}
