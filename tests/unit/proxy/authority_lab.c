#include "authority_lab.h"

#include "suites.h"

#include <openssl/pem.h>
#include <sys/stat.h>
#include <time.h>

enum { YEAR = 365 * 24 * 3600 };

static FILE *open_scratch(const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", scratch(), name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    return file;
}

void authority_lab_write(const char *certificate, const char *key,
                         const struct authority *authority) {
    FILE *file = open_scratch(certificate);
    ck_assert_int_eq(PEM_write_X509(file, authority->certificate), 1);
    fclose(file);
    file = open_scratch(key);
    ck_assert_int_eq(PEM_write_PrivateKey(file, authority->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

const char *authority_lab_settings(const char *text) {
    static char *whole;
    int64_t now = time(NULL);
    struct authority *authority = authority_make("Test CA", "Tests", now - YEAR, now + YEAR);
    authority_lab_write("lab-ca.pem", "lab-ca.key", authority);
    authority_release(&authority);
    free(whole);
    ck_assert(asprintf(&whole,
                       "authority { certificate = \"%s/lab-ca.pem\" key = \"%s/lab-ca.key\" }\n%s",
                       scratch(), scratch(), text) > 0);
    return whole;
}
