/*
 * Certificates for unit tests: self-signed ones, written into the tests' directory.
 *
 *     struct certificate_order order = {.names = "DNS:www.example.com", .days = 90};
 *     char *path = certificate_lab_write("www.pem", "www.pem", &order);      certificate and key
 *     char *path = certificate_lab_write("www.crt", "www.key", &order);      in two files
 *
 * Threads: one.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_CERTIFICATE_LAB_H
#define RETORT_TESTS_UNIT_PROXY_CERTIFICATE_LAB_H

struct certificate_order {
    const char *names; /* of the SAN, as OpenSSL writes them; NULL: no SAN */
    const char *cn;    /* NULL: "test" */
    int rsa;           /* bits of the key; 0: P-256 */
    int days;          /* until it expires */
};

/* Returns the path of the certificate, which the caller frees. The key's file has mode 0600. */
char *certificate_lab_write(const char *certificate, const char *key,
                            const struct certificate_order *order);

#endif
