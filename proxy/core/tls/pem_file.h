/*
 * A file with certificates, a private key, or both, in PEM (RFC 7468).
 *
 *     char error[PEM_FILE_ERROR];
 *     struct pem_file file;
 *     if (!pem_file_read(&file, "/etc/retort/www.pem", error)) ...     "/etc/retort/www.pem: ..."
 *     struct stack_st_X509 *certificates = pem_file_certificates(&file, error);
 *     EVP_PKEY *key = pem_file_has_key(&file) ? pem_file_key(&file, error) : NULL;
 *     pem_file_release(&file);
 *
 * A file with a private key is refused when users of the machine can read it who have no business
 * with it. The bytes of the file are wiped from memory when it is released.
 *
 * Errors: a function that fails writes a sentence, which begins with the path and says what to do.
 *
 * Threads: pure, but for the file system.
 */
#ifndef RETORT_TLS_PEM_FILE_H
#define RETORT_TLS_PEM_FILE_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PEM_FILE_ERROR = 640 };

struct pem_file {
    const char *path; /* the caller's */
    char *text;       /* ends with a NUL */
    size_t length;
    mode_t mode;
    uid_t owner;
};

/* Writes "PATH SENTENCE"; returns false. */
bool pem_file_fail(const char *path, char error[PEM_FILE_ERROR], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads the file, which has at most 1 MB. */
bool pem_file_read(struct pem_file *file, const char *path, char error[PEM_FILE_ERROR]);
void pem_file_release(struct pem_file *file);

/* The file's certificates in their order; NULL: there is none, or one is malformed. */
struct stack_st_X509 *pem_file_certificates(const struct pem_file *file,
                                            char error[PEM_FILE_ERROR]);
bool pem_file_has_certificate(const struct pem_file *file);
bool pem_file_has_key(const struct pem_file *file);
/* The file's first private key; NULL: it can't be used, or others can read it. */
EVP_PKEY *pem_file_key(const struct pem_file *file, char error[PEM_FILE_ERROR]);

#endif
