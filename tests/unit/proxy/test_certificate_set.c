/* Which certificate a listener shows for a name, and which files it takes. */
#include "suites.h"

#include "certificate_lab.h"
#include "tls/certificate_set.h"

#include <sys/stat.h>

static char error[PEM_FILE_ERROR];

static char *write_pem(const char *name, const char *names, int rsa) {
    return certificate_lab_write(name, name, &(struct certificate_order){names, NULL, rsa, 90});
}

static struct certificate_set *set_of(char *const *paths) {
    struct certificate_set *set = certificate_set_load(paths, error);
    ck_assert_msg(set != NULL, "%s", error);
    return set;
}

/* The file of the certificate of that kind for the name; "": none. */
static const char *file_for(struct certificate_set *set, const char *name,
                            enum certificate_kind kind) {
    const struct certificate_choice *choice =
        certificate_set_find(set, guard_keep(slice_from(name)));
    if (choice == NULL || choice->of[kind] == NULL)
        return "";
    return strrchr(choice->of[kind]->file, '/') + 1;
}

START_TEST(names_are_those_of_the_san_and_a_wildcard_spans_one_label) {
    char *paths[] = {write_pem("a.pem", "DNS:a.test,DNS:*.A.test,DNS:www.a.test", 0),
                     write_pem("b.pem", "DNS:b.test,DNS:www.b.test,IP:192.0.2.1", 0),
                     write_pem("c.pem", "DNS:*.www.a.test,DNS:x*.c.test,DNS:*,DNS:*.*.d.test", 0),
                     NULL};
    struct certificate_set *set = set_of(paths);
    static const char *const expected[][2] = {
        {"a.test", "a.pem"},
        {"www.a.test", "a.pem"},
        {"other.a.test", "a.pem"},
        {"x.www.a.test", "c.pem"},
        {"b.test", "b.pem"},
        {"www.b.test", "b.pem"},
        {"c.b.test", ""},
        {"x.other.a.test", ""},
        {"test", ""},
        {"", ""},
        {".a.test", ""},
        {"*.a.test", ""},
        {"a.test.", ""},
        {"xy.c.test", ""},
        {"x.y.d.test", ""},
        {"192.0.2.1", ""},
        {"CN", ""},
        {"a.tes", ""},
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        ck_assert_str_eq(file_for(set, expected[i][0], CERTIFICATE_ECDSA), expected[i][1]);
    /* What a client sends may hold a NUL. */
    ck_assert_ptr_null(certificate_set_find(set, guard_keep(SLICE("a.test\0.b.test"))));
    ck_assert_ptr_null(certificate_set_find(set, guard_keep(SLICE("a.test\0"))));
    ck_assert_ptr_null(certificate_set_find(set, guard_keep(SLICE("\0"))));
    ck_assert_ptr_eq(certificate_set_default(set)->of[CERTIFICATE_ECDSA],
                     certificate_set_at(set, 0));
    certificate_set_release(&set);
    for (char **path = paths; *path != NULL; path++)
        free(*path);
}
END_TEST

START_TEST(kinds_of_keys_stand_side_by_side) {
    char *paths[] = {write_pem("ec.pem", "DNS:k.test", 0), write_pem("rsa.pem", "DNS:k.test", 2048),
                     write_pem("again.pem", "DNS:k.test,DNS:only.test", 0),
                     write_pem("wild.pem", "DNS:*.only.test", 2048), NULL};
    struct certificate_set *set = set_of(paths);
    ck_assert_str_eq(file_for(set, "k.test", CERTIFICATE_ECDSA), "ec.pem");
    ck_assert_str_eq(file_for(set, "k.test", CERTIFICATE_RSA), "rsa.pem");
    ck_assert_str_eq(file_for(set, "only.test", CERTIFICATE_ECDSA), "again.pem");
    ck_assert_str_eq(file_for(set, "only.test", CERTIFICATE_RSA), "");
    ck_assert_ptr_eq(certificate_set_default(set)->of[CERTIFICATE_RSA], certificate_set_at(set, 1));
    certificate_set_release(&set);
    for (char **path = paths; *path != NULL; path++)
        free(*path);
}
END_TEST

static char *make_folder(const char *name) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    return path;
}

static void order(const char *certificate, const char *key, const char *names, int days) {
    free(
        certificate_lab_write(certificate, key, &(struct certificate_order){names, NULL, 0, days}));
}

START_TEST(folders_of_acme_clients_are_taken_as_they_lie) {
    free(make_folder("lego"));
    order("lego/a.test.crt", "lego/a.test.key", "DNS:a.test", 90);
    order("lego/a.test.issuer.crt", "lego/elsewhere", "DNS:issuer.test", 90);
    free(scratch_file("lego/a.test.json", "{}"));
    order("lego/old.test.crt", "lego/old.test.key", "DNS:old.test", -3);
    free(make_folder("live"));
    free(make_folder("live/b.test"));
    order("live/b.test/fullchain.pem", "live/b.test/privkey.pem", "DNS:b.test", 90);
    order("live/b.test/cert.pem", "live/b.test/privkey.pem", "DNS:wrong.test", 90);
    free(scratch_file("live/README", "This directory contains your keys and certificates."));
    char *paths[3] = {0};
    ck_assert(asprintf(&paths[0], "%s/lego", scratch()) > 0);
    ck_assert(asprintf(&paths[1], "%s/live", scratch()) > 0);
    struct certificate_set *set = set_of(paths);
    ck_assert_uint_eq(certificate_set_count(set), 2);
    ck_assert_str_eq(file_for(set, "a.test", CERTIFICATE_ECDSA), "a.test.crt");
    ck_assert_str_eq(file_for(set, "b.test", CERTIFICATE_ECDSA), "fullchain.pem");
    certificate_set_release(&set);
    free(paths[0]);
    free(paths[1]);
}
END_TEST

static void assert_refused(const char *name, const char *why) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    char *paths[] = {path, NULL};
    ck_assert_ptr_null(certificate_set_load(paths, error));
    size_t stem = strlen(path) - strlen(".pem"); /* the message may be about NAME.key */
    ck_assert_msg(strstr(error, why) != NULL && strncmp(error, path, stem) == 0, "%s: %s", name,
                  error);
    free(path);
}

static void set_mode(const char *name, mode_t mode) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    free(path);
}

START_TEST(files_that_can_not_be_used_are_refused_with_a_reason) {
    order("open.crt", "open.key", "DNS:open.test", 90);
    set_mode("open.key", 0644);
    order("alone.crt", "alone.secret", "DNS:alone.test", 90);
    order("wrong.crt", "wrong.key", "DNS:wrong.test", 90);
    order("wrong.crt", "unused.key", "DNS:wrong.test", 90);
    order("expired.pem", "expired.pem", "DNS:expired.test", -2);
    free(write_pem("short.pem", "DNS:short.test", 1024));
    free(scratch_file("broken.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n"
                                    "-----END CERTIFICATE-----\n"));
    free(scratch_file("text.pem", "hello\n"));
    free(make_folder("empty"));
    assert_refused("open.crt", "chmod 600");
    assert_refused("alone.crt", "without its private key");
    assert_refused("wrong.crt", "do not belong together");
    assert_refused("expired.pem", "expired on 20");
    assert_refused("short.pem", "2048 bits");
    assert_refused("broken.pem", "can't be read");
    assert_refused("text.pem", "holds no certificate");
    assert_refused("empty", "holds no certificate");
    assert_refused("missing.pem", "No such file");
}
END_TEST

Suite *certificate_set_suite(void) {
    const TTest *const tests[] = {
        names_are_those_of_the_san_and_a_wildcard_spans_one_label,
        kinds_of_keys_stand_side_by_side,
        folders_of_acme_clients_are_taken_as_they_lie,
        files_that_can_not_be_used_are_refused_with_a_reason,
    };
    return suite_of("certificate_set", tests, COUNT_OF(tests));
}
