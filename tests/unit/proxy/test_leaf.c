/* Certificates for intercepted connections: what stands in them, for which names they are made, and
 * which ones the cache finds again. */
#include "authority_lab.h"
#include "suites.h"

#include "base/clocks.h"
#include "intercept/leaf_cache.h"
#include "intercept/leaf_keys.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum { NOW = 1700000000, DAY = 24 * 3600, YEAR = 365 * DAY };

static struct authority *authority;
static EVP_PKEY *key;

static void make_authority(void) {
    authority = authority_make("Test CA", "Tests", NOW - YEAR, NOW + YEAR);
    key = leaf_keys_make_ecdsa();
}

static void release_authority(void) {
    authority_release(&authority);
    EVP_PKEY_free(key);
}

static struct leaf *mint(const char *name) {
    char error[LEAF_ERROR] = "";
    struct leaf_request request = {.name = guard_keep(slice_from(name))};
    struct leaf *leaf = leaf_mint(authority, key, &request, NOW, error);
    ck_assert_msg(leaf != NULL, "%s: %s", name, error);
    return leaf;
}

static int64_t seconds_of(const ASN1_TIME *time) {
    struct tm parts;
    ck_assert_int_eq(ASN1_TIME_to_tm(time, &parts), 1);
    return timegm(&parts);
}

/* The only name of the certificate, and of which kind. */
static struct slice only_name(const struct leaf *leaf, int *kind, bool *critical) {
    int is_critical = 0;
    GENERAL_NAMES *names =
        X509_get_ext_d2i(leaf->certificate, NID_subject_alt_name, &is_critical, NULL);
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(sk_GENERAL_NAME_num(names), 1);
    ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), kind);
    struct slice text = guard_keep(
        slice_make((const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value)));
    GENERAL_NAMES_free(names);
    *critical = is_critical == 1;
    return text;
}

static int verify(X509 *leaf, X509 *root, const char *host) {
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(context, store, leaf, NULL);
    X509_VERIFY_PARAM *parameters = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_time(parameters, NOW);
    X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
    X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set1_host(parameters, host, 0);
    X509_verify_cert(context);
    int error = X509_STORE_CTX_get_error(context);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return error;
}

START_TEST(a_leaf_verifies) {
    struct leaf *leaf = mint("WWW.Example.com."), *other = mint("www.example.com");
    X509 *certificate = leaf->certificate;
    int kind;
    bool critical;
    ck_assert(slice_equal(only_name(leaf, &kind, &critical), SLICE("www.example.com")));
    ck_assert(kind == GEN_DNS && !critical);
    ck_assert_int_eq(verify(certificate, authority->certificate, "www.example.com"), X509_V_OK);
    ck_assert_int_eq(verify(certificate, authority->certificate, "victim.test"),
                     X509_V_ERR_HOSTNAME_MISMATCH);
    ck_assert_int_eq(X509_check_private_key(certificate, key), 1);
    ck_assert_int_eq(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(certificate),
                                           X509_get0_subject_key_id(authority->certificate)),
                     0);
    ck_assert_ptr_nonnull(X509_get0_subject_key_id(certificate));
    ck_assert_uint_eq(X509_get_key_usage(certificate), KU_DIGITAL_SIGNATURE);
    ck_assert_uint_eq(X509_get_extended_key_usage(certificate), XKU_SSL_SERVER);
    ck_assert_int_eq(X509_check_ca(certificate), 0);
    ck_assert_int_eq(X509_get_version(certificate), 2);
    ck_assert_int_eq(sk_X509_num(leaf->chain), 0);
    const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
    ck_assert_int_ne(ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(other->certificate)), 0);
    ck_assert_int_eq(ASN1_STRING_length(serial), 16);
    ck_assert_int_eq(ASN1_STRING_type(serial), V_ASN1_INTEGER); /* and not V_ASN1_NEG_INTEGER */
    leaf_release(&leaf);
    leaf_release(&other);
}
END_TEST

static void check_validity(const struct leaf *leaf, int64_t begins, int64_t expires) {
    ck_assert_int_eq(seconds_of(X509_get0_notBefore(leaf->certificate)), begins);
    ck_assert_int_eq(seconds_of(X509_get0_notAfter(leaf->certificate)), expires);
    ck_assert_int_eq(leaf->expires, expires);
}

START_TEST(a_leaf_lives_no_longer_than_others) {
    char error[LEAF_ERROR];
    struct leaf_request request = {.name = SLICE("a.test")};
    struct leaf *leaf = mint("a.test");
    check_validity(leaf, NOW - 2 * DAY, NOW + 28 * DAY);
    leaf_release(&leaf);
    request.not_after = NOW + DAY;
    leaf = leaf_mint(authority, key, &request, NOW, error);
    check_validity(leaf, NOW - 2 * DAY, NOW + DAY);
    leaf_release(&leaf);
    request.not_after = NOW;
    ck_assert_ptr_null(leaf_mint(authority, key, &request, NOW, error));
    ck_assert_str_eq(error, "the certificate of the server has expired");
    request.not_after = NOW + 3 * YEAR;
    authority_release(&authority);
    authority = authority_make("Young CA", "Tests", NOW - 5, NOW + 5 * DAY);
    leaf = leaf_mint(authority, key, &request, NOW, error);
    check_validity(leaf, NOW - 5, NOW + 5 * DAY);
    leaf_release(&leaf);
    ck_assert_ptr_null(leaf_mint(authority, key, &request, NOW + 5 * DAY, error));
    ck_assert_str_eq(error, "the certificate of the proxy's authority has expired");
}
END_TEST

START_TEST(addresses_have_leaves) {
    static const struct {
        const char *name, *text;
        struct slice bytes;
    } addresses[] = {
        {"127.0.0.1", "127.0.0.1", {"\x7f\0\0\1", 4}},
        {"2001:DB8:0:0::1", "2001:db8::1", {"\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16}},
    };
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        struct leaf *leaf = mint(addresses[i].name);
        int kind;
        bool critical;
        struct slice name = only_name(leaf, &kind, &critical);
        ck_assert_int_eq(kind, GEN_IPADD);
        ck_assert(slice_equal(name, addresses[i].bytes));
        ck_assert_int_eq(X509_check_ip_asc(leaf->certificate, addresses[i].name, 0), 1);
        char room[LEAF_NAME_ROOM];
        ck_assert(leaf_put_name(room, slice_from(addresses[i].name)));
        ck_assert_str_eq(room, addresses[i].text);
        leaf_release(&leaf);
    }
}
END_TEST

START_TEST(other_texts_have_none) {
    static const struct slice bad[] = {
        {"", 0},
        {"a.test,DNS:victim.test", 22},
        {"*", 1},
        {"*.test", 6},
        {"a.test\0.victim.test", 19},
        {"127.0.0.1\0", 10},
        {"127.1", 5},
        {"0x7f.1", 6},
        {"[::1]", 5},
        {"fe80::1%eth0", 12},
        {"a b", 3},
        {"a.test\n", 7},
        {"DNS:a.test", 10},
        {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", 49},
    };
    char error[LEAF_ERROR];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct leaf_request request = {.name = guard_keep(bad[i])};
        ck_assert_msg(leaf_mint(authority, key, &request, NOW, error) == NULL, "%s", bad[i].base);
    }
}
END_TEST

START_TEST(long_names_stand_in_the_extension_alone) {
    char name[254];
    for (size_t length = 63; length <= 253; length += 1) {
        for (size_t i = 0; i < length; i++)
            name[i] = i % 51 == 50 ? '.' : 'a';
        name[length] = '\0';
        if (name[length - 1] == '.')
            continue;
        struct leaf *leaf = mint(name);
        int kind;
        bool critical;
        ck_assert(slice_equal(only_name(leaf, &kind, &critical), slice_from(name)));
        ck_assert_int_eq(critical, length > 64);
        ck_assert_int_eq(X509_NAME_entry_count(X509_get_subject_name(leaf->certificate)),
                         length > 64 ? 0 : 1);
        ck_assert_int_eq(verify(leaf->certificate, authority->certificate, name), X509_V_OK);
        leaf_release(&leaf);
    }
}
END_TEST

/* A CA as other programs make it: without key identifiers, with that key, signed by `issuer` or by
 * itself. */
static X509 *plain_authority(EVP_PKEY *own, const char *name, X509 *issuer, EVP_PKEY *issuer_key) {
    X509 *certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -YEAR);
    X509_gmtime_adj(X509_getm_notAfter(certificate), YEAR);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer != NULL ? issuer : certificate));
    X509_set_pubkey(certificate, own);
    X509_EXTENSION *constraints =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    X509_add_ext(certificate, constraints, -1);
    X509_EXTENSION_free(constraints);
    ck_assert_int_gt(X509_sign(certificate, issuer_key, EVP_sha256()), 0);
    return certificate;
}

static struct authority *load_written(const char *certificate, const char *key_name) {
    char path[400], key_path[400], error[PEM_FILE_ERROR] = "";
    snprintf(path, sizeof path, "%s/%s", scratch(), certificate);
    snprintf(key_path, sizeof key_path, "%s/%s", scratch(), key_name);
    struct authority *loaded = authority_load(path, key_path, error);
    ck_assert_msg(loaded != NULL, "%s", error);
    return loaded;
}

START_TEST(an_authority_without_identifier_gets_one) {
    EVP_PKEY *root_key = EVP_RSA_gen(2048), *middle_key = EVP_EC_gen("P-384");
    X509 *root = plain_authority(root_key, "Old root", NULL, root_key);
    X509 *middle = plain_authority(middle_key, "Middle", root, root_key);
    struct authority given = {.certificate = root, .key = root_key};
    struct leaf_request request = {.name = SLICE("a.test")};
    char error[LEAF_ERROR];
    authority_lab_write("plain.pem", "plain.key", &given);
    struct authority *loaded = load_written("plain.pem", "plain.key");
    ASN1_OCTET_STRING *expected = authority_key_identifier(root);
    ck_assert_int_eq(sk_X509_num(loaded->chain), 0);
    struct leaf *leaf = leaf_mint(loaded, key, &request, time(NULL), error);
    ck_assert_int_eq(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf->certificate), expected),
                     0);
    ck_assert_int_eq(X509_verify(leaf->certificate, root_key), 1);
    leaf_release(&leaf);
    authority_release(&loaded);
    ASN1_OCTET_STRING_free(expected);
    given = (struct authority){.certificate = middle, .key = middle_key};
    authority_lab_write("middle.pem", "middle.key", &given);
    loaded = load_written("middle.pem", "middle.key");
    leaf = leaf_mint(loaded, key, &request, time(NULL), error);
    ck_assert_int_eq(sk_X509_num(leaf->chain), 1); /* clients have only the root */
    ck_assert_int_eq(X509_cmp(sk_X509_value(leaf->chain, 0), middle), 0);
    ck_assert_int_eq(X509_verify(leaf->certificate, middle_key), 1);
    ck_assert_int_eq(X509_get_signature_nid(leaf->certificate), NID_ecdsa_with_SHA384);
    leaf_release(&leaf);
    authority_release(&loaded);
    X509_free(root);
    X509_free(middle);
    EVP_PKEY_free(root_key);
    EVP_PKEY_free(middle_key);
}
END_TEST

/* The goal is 100 microseconds. The bound leaves room for slow machines and for sanitizers;
 * LEAF_TIMES=1 in the environment prints the time. */
START_TEST(minting_is_fast) {
    enum { COUNT = 500 };
    struct leaf_request request = {.name = SLICE("www.example.com")};
    char error[LEAF_ERROR];
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 5; round++) {
        uint64_t begun = clocks_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < COUNT; i++) {
            struct leaf *leaf = leaf_mint(authority, key, &request, NOW, error);
            leaf_release(&leaf);
        }
        uint64_t took = (clocks_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - begun) / COUNT;
        best = took < best ? took : best;
    }
    if (getenv("LEAF_TIMES") != NULL)
        printf("a leaf takes %.1f us\n", (double)best / 1000);
    ck_assert_uint_lt(best, 2000000);
}
END_TEST

static struct leaf *take_from(struct leaf_cache *cache, const struct leaf_request *request,
                              int64_t now) {
    char error[LEAF_ERROR] = "";
    struct leaf *leaf = leaf_cache_take(cache, authority, request, now, error);
    ck_assert_msg(leaf != NULL, "%s", error);
    return leaf;
}

/* Is the leaf for the request the one that is given? */
static bool takes_same(struct leaf_cache *cache, const struct leaf *leaf,
                       const struct leaf_request *request, int64_t now) {
    struct leaf *taken = take_from(cache, request, now);
    bool same = taken == leaf;
    leaf_release(&taken);
    return same;
}

START_TEST(leaves_are_found_again) {
    struct leaf_cache *cache = leaf_cache_new(100);
    struct leaf_request request = {.name = SLICE("a.test")}, other = {.name = SLICE("b.test")};
    struct leaf_cache_statistics statistics;
    struct leaf *leaf = take_from(cache, &request, NOW);
    ck_assert(takes_same(cache, leaf, &request, NOW + 3600));
    ck_assert(!takes_same(cache, leaf, &other, NOW));
    other.name = SLICE("A.Test.");
    ck_assert(takes_same(cache, leaf, &other, NOW));
    request.not_after = NOW + 28 * DAY;
    ck_assert(takes_same(cache, leaf, &request, NOW));
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_eq(statistics.count, 2);
    ck_assert_uint_eq(statistics.minted, 2);
    ck_assert_uint_eq(statistics.found, 3);
    request.not_after = NOW + 28 * DAY - 1; /* the origin's ends before the leaf */
    ck_assert(!takes_same(cache, leaf, &request, NOW));
    leaf_release(&leaf);
    leaf_cache_free(&cache);
}
END_TEST

START_TEST(leaves_are_renewed) {
    struct leaf_cache *cache = leaf_cache_new(100);
    struct leaf_request request = {.name = SLICE("a.test"), .not_after = NOW + 3600};
    struct leaf *leaf = take_from(cache, &request, NOW);
    ck_assert(takes_same(cache, leaf, &request, NOW + 3599)); /* a new one would end as soon */
    request.not_after = NOW + YEAR;
    ck_assert(!takes_same(cache, leaf, &request, NOW + 3599));
    leaf_release(&leaf);
    leaf = take_from(cache, &request, NOW);
    ck_assert(takes_same(cache, leaf, &request, NOW + DAY - 1));
    ck_assert(!takes_same(cache, leaf, &request, NOW + DAY)); /* there is a new key */
    leaf_release(&leaf);
    leaf = take_from(cache, &request, NOW + DAY);
    ck_assert_ptr_ne(leaf->key, key);
    leaf_release(&leaf);
    leaf_cache_free(&cache);
}
END_TEST

START_TEST(another_authority_has_other_leaves) {
    struct leaf_cache *cache = leaf_cache_new(100);
    struct leaf_request request = {.name = SLICE("a.test")};
    struct leaf_cache_statistics statistics;
    struct leaf *leaf = take_from(cache, &request, NOW);
    authority_release(&authority); /* as a reload does; the leaf has a reference of its own */
    authority = authority_make("Test CA", "Tests", NOW - YEAR, NOW + YEAR);
    ck_assert(!takes_same(cache, leaf, &request, NOW));
    ck_assert_int_eq(verify(leaf->certificate, leaf->authority->certificate, "a.test"), X509_V_OK);
    ck_assert_int_ne(verify(leaf->certificate, authority->certificate, "a.test"), X509_V_OK);
    leaf_release(&leaf);
    leaf_cache_keep_authority(cache, authority);
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_eq(statistics.count, 1);
    leaf_cache_keep_authority(cache, NULL);
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_eq(statistics.count, 0);
    leaf_cache_free(&cache);
}
END_TEST

START_TEST(kinds_of_leaves_are_kept_apart) {
    struct leaf_cache *cache = leaf_cache_new(100);
    struct leaf_request request = {.name = SLICE("a.test")};
    struct leaf *leaf = take_from(cache, &request, NOW);
    request.rsa = true;
    struct leaf *rsa = take_from(cache, &request, NOW);
    ck_assert(EVP_PKEY_is_a(rsa->key, "RSA"));
    ck_assert_int_eq(EVP_PKEY_get_bits(rsa->key), 2048);
    ck_assert_int_eq(verify(rsa->certificate, authority->certificate, "a.test"), X509_V_OK);
    ck_assert(takes_same(cache, rsa, &request, NOW));
    request.rsa = false;
    request.refusable = true;
    struct leaf *refusable = take_from(cache, &request, NOW);
    ck_assert_int_ne(verify(refusable->certificate, authority->certificate, "a.test"), X509_V_OK);
    ck_assert(takes_same(cache, refusable, &request, NOW));
    request.refusable = false;
    ck_assert(takes_same(cache, leaf, &request, NOW));
    leaf_release(&leaf);
    leaf_release(&rsa);
    leaf_release(&refusable);
    leaf_cache_free(&cache);
}
END_TEST

START_TEST(the_cache_has_a_limit) {
    struct leaf_cache *cache = leaf_cache_new(32);
    struct leaf_cache_statistics statistics;
    char name[40];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "host-%d.test", i);
        struct leaf_request request = {.name = slice_from(name)};
        struct leaf *leaf = take_from(cache, &request, NOW);
        leaf_release(&leaf);
    }
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_le(statistics.count, 32);
    ck_assert_uint_gt(statistics.count, 16);
    ck_assert_uint_eq(statistics.minted, 300);
    ck_assert_uint_eq(statistics.evicted, 300 - statistics.count);
    leaf_cache_set_limit(cache, 1);
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_le(statistics.count, 16);
    leaf_cache_free(&cache);
}
END_TEST

START_TEST(bad_names_are_counted) {
    struct leaf_cache *cache = leaf_cache_new(32);
    struct leaf_cache_statistics statistics;
    char error[LEAF_ERROR] = "";
    struct leaf_request request = {.name = SLICE("a.test,DNS:victim.test")};
    ck_assert_ptr_null(leaf_cache_take(cache, authority, &request, NOW, error));
    ck_assert_str_ne(error, "");
    leaf_cache_statistics(cache, &statistics);
    ck_assert_uint_eq(statistics.failed, 1);
    ck_assert_uint_eq(statistics.minted, 0);
    leaf_cache_free(&cache);
}
END_TEST

Suite *leaf_suite(void) {
    const TTest *const tests[] = {
        a_leaf_verifies,
        a_leaf_lives_no_longer_than_others,
        addresses_have_leaves,
        other_texts_have_none,
        long_names_stand_in_the_extension_alone,
        an_authority_without_identifier_gets_one,
        minting_is_fast,
        leaves_are_found_again,
        leaves_are_renewed,
        another_authority_has_other_leaves,
        kinds_of_leaves_are_kept_apart,
        the_cache_has_a_limit,
        bad_names_are_counted,
    };
    Suite *suite = suite_create("leaf");
    TCase *cases = tcase_create("leaf");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, make_authority, release_authority);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return suite;
}
