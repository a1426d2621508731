/* Who users are: the parsers of credentials, passwords and tokens, and who has to wait. */
#include "suites.h"

#include "identity/attempts.h"
#include "identity/authorization.h"
#include "identity/htpasswd.h"
#include "identity/jwt.h"
#include "identity/password_hash.h"
#include "identity/remembered.h"

#include <stdio.h>
#include <string.h>

#define JOE                                                                                        \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl" \
    "fQ"

enum { JOE_EXPIRES = 1300819380 };

/* The keys of RFC 7515, A.1 to A.3, and of RFC 8037, A.1. */
static const char jwks[] =
    "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a1\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_"
    "T-"
    "1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow\"},"
    "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"
    "4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_"
    "7OMg0LOL-"
    "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-"
    "UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4L"
    "T6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\","
    "\"e\":\"AQAB\"},"
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

static const char signed_hs256[] =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." JOE ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
static const char signed_rs256[] =
    "eyJhbGciOiJSUzI1NiJ9." JOE ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__"
    "dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5ju"
    "jGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
    "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe"
    "7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
    "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8n"
    "p6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
static const char signed_es256[] =
    "eyJhbGciOiJFUzI1NiJ9." JOE
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

static const struct jwt_rules joe_rules = {.user_claim = "iss"};

static struct jwt_keys *read_keys(const char *text, const char *path) {
    char error[400];
    struct jwt_keys *keys = jwt_keys_parse(slice_from(text), path, error, sizeof error);
    ck_assert_msg(keys != NULL, "%s", error);
    return keys;
}

/* NULL: the token is good. */
static const char *refusal(const struct jwt_keys *keys, const char *token,
                           const struct jwt_rules *rules, int64_t now) {
    struct jwt_user user;
    const char *reason;
    enum jwt_status status = jwt_verify(keys, slice_from(token), rules, now, &user, &reason);
    ck_assert((status == JWT_GOOD) == (reason == NULL));
    if (status == JWT_GOOD)
        ck_assert(slice_equal(user.name, SLICE("joe")));
    jwt_user_release(&user);
    return reason;
}

START_TEST(tokens_of_the_rfcs_are_good) {
    struct jwt_keys *keys = read_keys(jwks, "keys.jwks");
    const char *const tokens[] = {signed_hs256, signed_rs256, signed_es256};
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        ck_assert_ptr_null(refusal(keys, tokens[i], &joe_rules, JOE_EXPIRES - 1));
        ck_assert_str_eq(refusal(keys, tokens[i], &joe_rules, JOE_EXPIRES),
                         "the token has expired");
    }
    jwt_keys_free(&keys);
}
END_TEST

START_TEST(a_signature_of_ed25519_is_verified) {
    static const char text[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    static const unsigned char signature[64] = {
        0x86, 0x0c, 0x98, 0xd2, 0x29, 0x7f, 0x30, 0x60, 0xa3, 0x3f, 0x42, 0x73, 0x96,
        0x72, 0xd6, 0x1b, 0x53, 0xcf, 0x3a, 0xde, 0xfe, 0xd3, 0xd3, 0xc6, 0x72, 0xf3,
        0x20, 0xdc, 0x02, 0x1b, 0x41, 0x1e, 0x9d, 0x59, 0xb8, 0x62, 0x8d, 0xc3, 0x51,
        0xe2, 0x48, 0xb8, 0x8b, 0x29, 0x46, 0x8e, 0x0e, 0x41, 0x85, 0x5b, 0x0f, 0xb7,
        0xd8, 0x3b, 0xb1, 0x5b, 0xe9, 0x02, 0xbf, 0xcc, 0xb8, 0xcd, 0x0a, 0x02};
    struct jwt_keys *keys = read_keys(jwks, "keys.jwks");
    const struct jwt_key *key = jwt_keys_next(keys, NULL, JWT_EDDSA, SLICE(""));
    struct slice bytes = slice_make((const char *)signature, sizeof signature);
    ck_assert_ptr_nonnull(key);
    ck_assert(jwt_key_verifies(key, JWT_EDDSA, slice_from(text), bytes));
    ck_assert(!jwt_key_verifies(key, JWT_EDDSA, SLICE("other"), bytes));
    ck_assert(!jwt_key_verifies(key, JWT_HS256, slice_from(text), bytes));
    jwt_keys_free(&keys);
}
END_TEST

START_TEST(forged_tokens_are_refused) {
    struct jwt_keys *keys = read_keys(jwks, "keys.jwks");
    static const char *const forged[] = {
        "eyJhbGciOiJub25lIn0." JOE ".",      /* alg none */
        "eyJhbGciOiJOT05FIn0." JOE ".AAAA",  /* in another spelling */
        "eyJhbGciOiJIUzI1NiJ9." JOE ".AAAA", /* a wrong signature */
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." JOE "."
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl", /* a bit behind its last byte */
        "eyJhbGciOiJFUzI1NiJ9." JOE
        ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "eyJhbGciOiJSUzI1NiJ9." JOE ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "a.b",
        "..",
        "a.b.c.d",
        "",
        "eyJhbGciOiJSUzI1NiJ9.." /* nothing in it */,
    };
    for (size_t i = 0; i < COUNT_OF(forged); i++)
        ck_assert_msg(refusal(keys, forged[i], &joe_rules, 0) != NULL, "%s", forged[i]);
    jwt_keys_free(&keys);
}
END_TEST

/* With a public key alone, nothing verifies that is signed with its bytes as a secret. */
START_TEST(a_key_has_the_algorithms_of_its_kind) {
    struct jwt_keys *keys = read_keys(
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\",\"kid\":\"ec\"}",
        "keys.jwks");
    for (unsigned algorithm = 0; algorithm < JWT_ALGORITHMS; algorithm++)
        ck_assert((jwt_keys_next(keys, NULL, algorithm, SLICE("")) != NULL) ==
                  (algorithm == JWT_ES256));
    ck_assert_ptr_nonnull(jwt_keys_next(keys, NULL, JWT_ES256, SLICE("ec")));
    ck_assert_ptr_null(jwt_keys_next(keys, NULL, JWT_ES256, SLICE("other")));
    ck_assert_ptr_nonnull(refusal(keys, signed_hs256, &joe_rules, 0));
    jwt_keys_free(&keys);
}
END_TEST

START_TEST(claims_are_for_us_now) {
    struct jwt_keys *keys = read_keys(jwks, "keys.jwks");
    const char *const audiences[] = {"proxy", NULL};
    const int64_t now = JOE_EXPIRES - 10;
    struct jwt_rules rules = joe_rules;
    rules.issuer = "joe";
    ck_assert_ptr_null(refusal(keys, signed_hs256, &rules, now));
    rules.issuer = "jane";
    ck_assert_str_eq(refusal(keys, signed_hs256, &rules, now), "the token is of another issuer");
    rules.issuer = NULL;
    rules.audiences = audiences;
    ck_assert_str_eq(refusal(keys, signed_hs256, &rules, now), "the token is for another audience");
    rules.audiences = NULL;
    rules.leeway = 100;
    ck_assert_ptr_null(refusal(keys, signed_hs256, &rules, JOE_EXPIRES + 99));
    ck_assert_ptr_nonnull(refusal(keys, signed_hs256, &rules, JOE_EXPIRES + 100));
    rules.user_claim = "sub";
    ck_assert_str_eq(refusal(keys, signed_hs256, &rules, now),
                     "the token does not say who the user is");
    jwt_keys_free(&keys);
}
END_TEST

START_TEST(keys_that_are_no_use_are_refused) {
    static const struct {
        const char *text, *path;
    } bad[] = {
        {"short", "a.secret"},
        {"{\"kty\":\"oct\",\"k\":\"AAAA\"}", "a.jwks"},
        {"{\"keys\":[]}", "a.jwks"},
        {"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}", "a.jwks"},
        {"{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\",\"y\":\"AQ\"}]}", "a.jwks"},
        {"{\"keys\":[{\"kty\":\"oct\"", "a.jwks"},
        {"-----BEGIN PUBLIC KEY-----\nAAAA\n", "a.pem"},
        {"", "a.pem"},
    };
    char error[400];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct jwt_keys *keys =
            jwt_keys_parse(slice_from(bad[i].text), bad[i].path, error, sizeof error);
        ck_assert_msg(keys == NULL, "%s", bad[i].text);
        ck_assert_uint_gt(strlen(error), 10);
    }
}
END_TEST

static const char *const hashes[] = {
    "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
    "$2y$04$/7Aqa5ixLxbyLDKoXo0XCuP8zygak9wD9fHfH56Eenr.xzP3/sOWu",
    ("$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq."
     "H91p5hVO1"),
    "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
    "$y$j75$abcdefghabcdefghijklm.$NRZZOxtZplHfMzdg8WLLiNO2a3oilXxe//A864U6pk8",
    "$gy$j75$abcdefghabcdefghijklm.$q0kDUZUi1cCp/.HgyGjyp/j59rrdLZNC6ovueM0rHiD",
    "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
};

START_TEST(each_kind_of_hash_has_its_password) {
    char reason[200];
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        ck_assert_msg(password_hash_check(hashes[i], reason, sizeof reason), "%s", hashes[i]);
        ck_assert_msg(password_hash_matches(hashes[i], SLICE("secret")), "%s", hashes[i]);
        ck_assert(!password_hash_matches(hashes[i], SLICE("secreT")));
        ck_assert(!password_hash_matches(hashes[i], SLICE("secret1")));
        ck_assert(!password_hash_matches(hashes[i], SLICE("")));
    }
    ck_assert(password_hash_matches("$apr1$xy$43..WIhbfuznGvwoCyUek/", SLICE("")));
    ck_assert(password_hash_matches("$apr1$rOWPrxuH$kSQvveSfCTf1hXG2Nv2r20",
                                    SLICE("a rather long pass phrase with UTF-8: Gr\xc3\xbc\xc3\x9f"
                                          "e")));
}
END_TEST

START_TEST(weak_and_damaged_hashes_are_refused) {
    static const char *const bad[] = {
        "secret",
        "ab1s0fuQy.6Oo",
        "",
        "*",
        "!",
        "x",
        "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
        "$3$$8846f7eaee8fb117ad06bdd830b7586c",
        "{SSHA}abc",
        "$apr1$abcdefgh$short",
        "$apr1$$x",
        "{SHA}short",
        "$2y$05$",
        "$6$saltsalt",
        "$6$saltsalt$short",
        "$y$j9T$",
        "$2y$99$abc",
        ("$6$rounds=999999999$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wi"
         "OQSpT0Y77vwPZN.Pq.H91p5hVO1"),
        "$2y$31$/7Aqa5ixLxbyLDKoXo0XCuP8zygak9wD9fHfH56Eenr.xzP3/sOWu",
    };
    char reason[200], cut[400];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(!password_hash_check(bad[i], reason, sizeof reason), "%s", bad[i]);
    for (size_t i = 0; i < COUNT_OF(hashes); i++)
        for (size_t length = 0; length < strlen(hashes[i]); length++) {
            snprintf(cut, sizeof cut, "%.*s", (int)length, hashes[i]);
            ck_assert_msg(!password_hash_check(cut, reason, sizeof reason), "%s", cut);
        }
}
END_TEST

START_TEST(a_file_of_users_is_read) {
    char error[400];
    static const char users[] = "# staff\n\nalice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\r\n"
                                "bob smith:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=:0:more\n";
    struct htpasswd *file =
        htpasswd_parse(slice_from(users), SLICE("admins: alice\nstaff: bob alice alice\nstaff:x\n"),
                       error, sizeof error);
    ck_assert_msg(file != NULL, "%s", error);
    const struct htpasswd_user *alice = htpasswd_find(file, SLICE("alice"));
    ck_assert_uint_eq(htpasswd_count(file), 2);
    ck_assert_ptr_nonnull(alice);
    ck_assert_uint_eq(alice->group_count, 2);
    ck_assert(slice_equal(alice->groups[1], SLICE("staff")));
    ck_assert_uint_eq(htpasswd_find(file, SLICE("bob smith"))->group_count, 0);
    ck_assert_ptr_null(htpasswd_find(file, SLICE("Alice")));
    ck_assert_ptr_null(htpasswd_find(file, SLICE("bob")));
    ck_assert_ptr_eq(htpasswd_decoy(file, SLICE("mallory")),
                     htpasswd_decoy(file, SLICE("mallory")));
    htpasswd_free(&file);
    file = htpasswd_parse(SLICE(""), SLICE(""), error, sizeof error);
    ck_assert_ptr_null(htpasswd_decoy(file, SLICE("mallory")));
    htpasswd_free(&file);
}
END_TEST

#define SHA "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"

START_TEST(files_that_are_half_written_are_refused) {
    static const struct {
        const char *users, *groups, *error;
    } bad[] = {
        {"alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "", "the last line has no end"},
        {"a:" SHA "alice\n", "", "line 2: there is no colon"},
        {"alice:secret\n", "", "line 1: user \"alice\": its password is in plain text"},
        {"alice:$2y$05$abc\n", "", "cut off"},
        {"alice:" SHA "alice:" SHA, "", "user \"alice\" has two lines"},
        {":" SHA, "", "line 1: the name is empty"},
        {"a\x01:" SHA, "", "line 1"},
        {"a\xff:" SHA, "", "line 1"},
        {"a:" SHA, "staff", "group_file: the last line has no end"},
        {"a:" SHA, "staff a\n", "group_file: line 1: there is no colon"},
    };
    char error[400];
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct htpasswd *file = htpasswd_parse(slice_from(bad[i].users), slice_from(bad[i].groups),
                                               error, sizeof error);
        ck_assert_msg(file == NULL && strstr(error, bad[i].error) != NULL, "%zu: %s", i, error);
        ck_assert_ptr_null(strstr(error, "secret"));
    }
}
END_TEST

START_TEST(the_grammar_of_credentials) {
    static const struct {
        const char *value;
        bool good;
        const char *scheme, *token68, *parameters;
    } cases[] = {
        {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", true, "Basic", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", ""},
        {"bAsIc   YTpi", true, "bAsIc", "YTpi", ""},
        {"Negotiate", true, "Negotiate", "", ""},
        {"Digest username=\"a, \\\"b\", nc=1", true, "Digest", "", "username=\"a, \\\"b\", nc=1"},
        {"Digest a = \"b\" ,, c=d,", true, "Digest", "", "a = \"b\" ,, c=d,"},
        {"Bearer a.b-c_d~e+/==", true, "Bearer", "a.b-c_d~e+/==", ""},
        {"Basic a b", false, "", "", ""},
        {"Basic\tYTpi", false, "", "", ""},
        {"Basic =", false, "", "", ""},
        {"Basic ==a", false, "", "", ""},
        {"Digest a=\"b", false, "", "", ""},
        {"Digest a=\"b\\", false, "", "", ""},
        {"Digest a=b c=d", false, "", "", ""},
        {"Digest a=, c=d", false, "", "", ""},
        {" Basic YTpi", false, "", "", ""},
        {"Bas:ic YTpi", false, "", "", ""},
        {"", false, "", "", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct authorization found;
        bool good = authorization_parse(slice_from(cases[i].value), &found);
        ck_assert_msg(good == cases[i].good, "%s", cases[i].value);
        if (!good)
            continue;
        ck_assert(slice_equal(found.scheme, slice_from(cases[i].scheme)));
        ck_assert_msg(slice_equal(found.token68, slice_from(cases[i].token68)), "%zu", i);
        ck_assert_msg(slice_equal(found.parameters, slice_from(cases[i].parameters)), "%zu", i);
    }
}
END_TEST

START_TEST(names_and_passwords_of_basic) {
    static const struct {
        const char *token68, *user, *password; /* user NULL: refused */
    } cases[] = {
        {"QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},
        {"dGVzdDoxMjPCow==", "test", "123\xc2\xa3"}, /* RFC 7617 §2.1 */
        {"YTpiOmM=", "a", "b:c"},
        {"OmI=", "", "b"},
        {"YTo=", "a", ""},
        {"YWI=", NULL, NULL}, /* no colon */
        {"YTpi\n", NULL, NULL},
        {"YTpiYw", NULL, NULL},   /* no padding */
        {"YTpiYx==", NULL, NULL}, /* bits behind the last byte */
        {"YQA6Yg==", NULL, NULL}, /* NUL in the name */
        {"YTpiAA==", NULL, NULL}, /* and in the password */
        {"YTpiDQo=", NULL, NULL}, /* a line break */
        {"/zpi", NULL, NULL},     /* no UTF-8 */
        {"YTrCgQ==", NULL, NULL}, /* a control of C1 */
    };
    char text[AUTHORIZATION_BASIC];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice user, password;
        bool good = authorization_basic(slice_from(cases[i].token68), text, &user, &password);
        ck_assert_msg(good == (cases[i].user != NULL), "%s", cases[i].token68);
        if (good)
            ck_assert(slice_equal(user, slice_from(cases[i].user)) &&
                      slice_equal(password, slice_from(cases[i].password)));
    }
}
END_TEST

START_TEST(challenges_are_quoted) {
    struct arena arena;
    arena_init(&arena);
    ck_assert(slice_equal(challenge_basic(SLICE("a \"b\" \\\r\nX: y"), &arena),
                          SLICE("Basic realm=\"a \\\"b\\\" \\\\  X: y\", charset=\"UTF-8\"")));
    ck_assert(slice_equal(challenge_bearer(SLICE("a"), true, &arena),
                          SLICE("Bearer realm=\"a\", error=\"invalid_token\"")));
    arena_release(&arena);
}
END_TEST

/* Who has to wait. */

static const struct authentication_settings limits = {
    .attempt_entries = 1000,
    .attempts = 3,
    .attempts_client = 10,
    .attempts_user = 20,
    .wait_min = 1000,
    .wait_max = 60000,
    .attempts_forget = 600000,
};

static struct attempts *attempts;
static uint64_t now;

static void attempts_set_up(void) {
    attempts = attempts_new(&limits);
    now = 1000000;
}

static void attempts_tear_down(void) {
    attempts_free(&attempts);
}

/* 0: the attempt was made; else how long to wait. */
static uint64_t try(const char *client, const char *user, bool good) {
    struct attempt attempt;
    uint64_t wait = 0;
    if (attempts_begin(attempts, &attempt, slice_from(client), slice_from(user), now, &wait) !=
        ATTEMPT_MAY) {
        attempts_drop(attempts, &attempt);
        return wait;
    }
    if (good)
        attempts_good(attempts, &attempt, now, 300000);
    else
        attempts_bad(attempts, &attempt, now);
    return 0;
}

START_TEST(who_guesses_has_to_wait_longer_each_time) {
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(try("c1", "alice", false), 0);
    ck_assert_uint_eq(try("c1", "alice", true), 1000);
    ck_assert_uint_eq(try("c2", "alice", true), 0); /* from elsewhere */
    ck_assert_uint_eq(try("c1", "bob", true), 0);   /* as somebody else */
    now += 1000;
    ck_assert_uint_eq(try("c1", "alice", false), 0);
    ck_assert_uint_eq(try("c1", "alice", false), 2000);
    now += 2000;
    ck_assert_uint_eq(try("c1", "alice", false), 0);
    ck_assert_uint_eq(try("c1", "alice", false), 4000);
    now += 4000;
    ck_assert_uint_eq(try("c1", "alice", true), 0);
    ck_assert_uint_eq(try("c1", "alice", false), 0);
    now += 4000;
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(try("c1", "alice", false), 0);
    ck_assert_uint_gt(try("c1", "alice", false), 0);
    now += 700000;
    ck_assert_uint_eq(try("c1", "alice", false), 0);
}
END_TEST

START_TEST(many_names_from_one_client_make_it_wait) {
    char name[20];
    ck_assert_uint_eq(try("c1", "known", true), 0);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "u%d", i);
        ck_assert_uint_eq(try("c1", name, false), 0);
    }
    ck_assert_uint_eq(try("c1", "u10", true), 1000);
    ck_assert_uint_eq(try("c2", "u10", true), 0);
    struct attempt attempt;
    uint64_t wait = 0;
    ck_assert_int_eq(attempts_ask(attempts, SLICE("c1"), SLICE("known"), now, &wait), ATTEMPT_MAY);
    ck_assert_int_eq(attempts_ask(attempts, SLICE("c1"), SLICE("u3"), now, &wait), ATTEMPT_WAIT);
    for (int i = 0; i < 3; i++) { /* guesses at the password of a known user count */
        ck_assert_int_eq(
            attempts_begin(attempts, &attempt, SLICE("c1"), SLICE("known"), now, &wait),
            ATTEMPT_CLIENT_WAIT);
        ck_assert_uint_gt(wait, 0);
        attempts_bad(attempts, &attempt, now);
    }
    ck_assert_int_eq(attempts_begin(attempts, &attempt, SLICE("c1"), SLICE("known"), now, &wait),
                     ATTEMPT_WAIT);
    ck_assert_int_eq(attempts_ask(attempts, SLICE("c1"), SLICE("known"), now, &wait), ATTEMPT_WAIT);
    ck_assert_int_eq(attempts_ask(attempts, SLICE("c9"), SLICE("known"), now, &wait), ATTEMPT_MAY);
}
END_TEST

/* Tokens and tickets name no user before they are proved, and nobody guesses them. */
START_TEST(bad_tokens_make_their_sender_wait_alone) {
    struct attempt attempt;
    uint64_t wait;
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(try("c1", "", false), 0);
    ck_assert_int_eq(attempts_begin(attempts, &attempt, SLICE("c1"), SLICE(""), now, &wait),
                     ATTEMPT_CLIENT_WAIT);
    ck_assert_uint_eq(wait, 1000);
    attempts_good(attempts, &attempt, now, 300000);
    ck_assert_int_eq(attempts_ask(attempts, SLICE("c1"), SLICE(""), now, &wait), ATTEMPT_MAY);
    ck_assert_uint_eq(try("c1", "alice", true), 0);
}
END_TEST

START_TEST(who_was_proved_stays_known_while_others_fail) {
    char name[20];
    ck_assert_uint_eq(try("c1", "alice", true), 0);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "name%d", i);
        try("c1", name, false);
    }
    for (int i = 0; i < 2; i++) {
        struct attempt attempt;
        uint64_t wait;
        ck_assert_int_eq(
            attempts_begin(attempts, &attempt, SLICE("c1"), SLICE("alice"), now, &wait),
            ATTEMPT_CLIENT_WAIT);
        attempts_good(attempts, &attempt, now, 300000);
        now += 310000; /* the result is not remembered any more */
        for (int k = 0; k < 20; k++) {
            snprintf(name, sizeof name, "late%d", k);
            try("c1", name, false);
        }
    }
}
END_TEST

START_TEST(spellings_of_a_name_are_one_user) {
    static const char *const spellings[] = {"Jos\u00e9 Carl", "JOS\u00c9 CARL", "jos\u00e9  carl"};
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(try("c1", spellings[i], false), 0);
    ck_assert_uint_eq(try("c1", "jos\u00e9carl", true), 1000);
    ck_assert_uint_eq(try("c1", "jose carl", true), 0);
}
END_TEST

START_TEST(nobody_is_locked_out_by_many_clients) {
    char client[20];
    ck_assert_uint_eq(try("home", "alice", true), 0);
    for (int i = 0; i < 30; i++) {
        snprintf(client, sizeof client, "bot%d", i);
        ck_assert_uint_eq(try(client, "alice", false), 0);
        if (i >= 20) /* alice is attacked now: one guess for each client */
            ck_assert_uint_ge(try(client, "alice", false), 10000);
    }
    ck_assert_uint_eq(try("home", "alice", false), 0); /* known there: may mistype as always */
    ck_assert_uint_eq(try("home", "alice", true), 0);
    ck_assert_uint_eq(try("travel", "alice", true), 0);
}
END_TEST

START_TEST(attempts_at_the_same_moment_count) {
    struct attempt begun[4];
    uint64_t wait;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            attempts_begin(attempts, &begun[i], SLICE("c1"), SLICE("alice"), now, &wait),
            ATTEMPT_MAY);
    ck_assert_int_eq(attempts_begin(attempts, &begun[3], SLICE("c1"), SLICE("alice"), now, &wait),
                     ATTEMPT_WAIT);
    for (int i = 0; i < 3; i++)
        attempts_drop(attempts, &begun[i]);
    ck_assert_uint_eq(try("c1", "alice", true), 0);
}
END_TEST

START_TEST(made_up_names_free_nobody) {
    char name[20];
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(try("c1", "alice", false), 0);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "bot%d", i);
        try(name, name, false);
    }
    ck_assert_uint_gt(try("c1", "alice", true), 0);
}
END_TEST

/* What is remembered. */

static void make_key(unsigned char key[SECRET_DIGEST], const char *user, const char *password) {
    const struct slice pieces[] = {slice_from(user), slice_from(password)};
    secret_digest(pieces, 2, key);
}

START_TEST(results_are_remembered_for_their_time) {
    struct remembered *remembered = remembered_new(1000);
    const struct slice groups[] = {{"staff", 5}, {"admins", 6}};
    struct identity *identity = identity_new(&(struct identity_facts){.name = SLICE("alice"),
                                                                      .groups = groups,
                                                                      .group_count = 2,
                                                                      .method = "basic",
                                                                      .authenticator = SLICE("a")}),
                    *found;
    unsigned char good[SECRET_DIGEST], bad[SECRET_DIGEST];
    make_key(good, "alice", "secret");
    make_key(bad, "alices", "ecret");
    remembered_note_proven(remembered, good, SLICE("c1"), identity, 100, 200, 5000);
    remembered_note_failed(remembered, bad, SLICE("c1"), 100, 150);
    ck_assert_int_eq(remembered_find(remembered, good, 199, 4999, &found), REMEMBERED_PROVEN);
    ck_assert(slice_equal(found->name, SLICE("alice")));
    ck_assert(slice_equal(found->authenticator, SLICE("a")));
    ck_assert_uint_eq(found->group_count, 2);
    ck_assert(slice_equal(found->groups[1], SLICE("admins")));
    identity_release(&found);
    ck_assert_int_eq(remembered_find(remembered, bad, 149, 0, &found), REMEMBERED_FAILED);
    ck_assert_int_eq(remembered_find(remembered, bad, 150, 0, &found), REMEMBERED_NOTHING);
    ck_assert_int_eq(remembered_find(remembered, good, 199, 5000, &found), REMEMBERED_NOTHING);
    remembered_note_proven(remembered, good, SLICE("c1"), identity, 100, 200, 0);
    ck_assert_int_eq(remembered_find(remembered, good, 200, 0, &found), REMEMBERED_NOTHING);
    identity_release(&identity);
    remembered_free(&remembered);
}
END_TEST

START_TEST(one_client_does_not_drive_out_others) {
    struct remembered *remembered = remembered_new(64);
    struct identity *identity = identity_new(&(struct identity_facts){
                        .name = SLICE("alice"), .method = "basic", .authenticator = SLICE("a")}),
                    *found;
    unsigned char key[SECRET_DIGEST];
    char name[20];
    unsigned kept = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "good%d", i);
        make_key(key, name, "");
        remembered_note_proven(remembered, key, slice_from(name), identity, 100, 9000, 0);
    }
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "flood%d", i);
        make_key(key, name, "");
        remembered_note_proven(remembered, key, SLICE("bot"), identity, 200, 9000, 0);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "good%d", i);
        make_key(key, name, "");
        kept += remembered_find(remembered, key, 300, 0, &found) == REMEMBERED_PROVEN;
        identity_release(&found);
    }
    ck_assert_uint_ge(kept, 6);
    identity_release(&identity);
    remembered_free(&remembered);
}
END_TEST

Suite *authentication_suite(void) {
    const TTest *const tests[] = {
        tokens_of_the_rfcs_are_good,
        a_signature_of_ed25519_is_verified,
        forged_tokens_are_refused,
        a_key_has_the_algorithms_of_its_kind,
        claims_are_for_us_now,
        keys_that_are_no_use_are_refused,
        each_kind_of_hash_has_its_password,
        weak_and_damaged_hashes_are_refused,
        a_file_of_users_is_read,
        files_that_are_half_written_are_refused,
        the_grammar_of_credentials,
        names_and_passwords_of_basic,
        challenges_are_quoted,
        who_guesses_has_to_wait_longer_each_time,
        many_names_from_one_client_make_it_wait,
        bad_tokens_make_their_sender_wait_alone,
        who_was_proved_stays_known_while_others_fail,
        spellings_of_a_name_are_one_user,
        nobody_is_locked_out_by_many_clients,
        attempts_at_the_same_moment_count,
        made_up_names_free_nobody,
        results_are_remembered_for_their_time,
        one_client_does_not_drive_out_others,
    };
    Suite *suite = suite_create("authentication");
    TCase *cases = tcase_create("authentication");
    tcase_add_checked_fixture(cases, attempts_set_up, attempts_tear_down);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return suite;
}
