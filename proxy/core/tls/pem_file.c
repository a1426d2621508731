#include "tls/pem_file.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST = 1024 * 1024 };

bool pem_file_fail(const char *path, char error[PEM_FILE_ERROR], const char *format, ...) {
    va_list arguments;
    int length = snprintf(error, PEM_FILE_ERROR, "%.256s ", path);
    va_start(arguments, format);
    vsnprintf(error + length, PEM_FILE_ERROR - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

static const char *openssl_reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "malformed";
}

static bool pem_file_read_all(int fd, struct pem_file *file, size_t size) {
    file->text = xcalloc(1, size + 1);
    while (file->length < size) {
        ssize_t count = read(fd, file->text + file->length, size - file->length);
        if (count == 0)
            return true;
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0)
            file->length += (size_t)count;
    }
    return true;
}

bool pem_file_read(struct pem_file *file, const char *path, char error[PEM_FILE_ERROR]) {
    struct stat status;
    *file = (struct pem_file){.path = path};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0) {
        pem_file_fail(path, error, "can't be read: %s%s", strerrordesc_np(errno),
                      errno == EACCES ? "; give retort's user the right to read it" : "");
        if (fd >= 0)
            close(fd);
        return false;
    }
    file->mode = status.st_mode;
    file->owner = status.st_uid;
    bool good = false;
    if (!S_ISREG(status.st_mode))
        pem_file_fail(path, error, "is not a file");
    else if (status.st_size > FILE_MOST)
        pem_file_fail(path, error, "is larger than 1 MB, so it is not a PEM file");
    else if (!(good = pem_file_read_all(fd, file, (size_t)status.st_size)))
        pem_file_fail(path, error, "can't be read: %s", strerrordesc_np(errno));
    close(fd);
    if (!good)
        pem_file_release(file);
    return good;
}

void pem_file_release(struct pem_file *file) {
    OPENSSL_cleanse(file->text, file->length);
    free(file->text);
    file->text = NULL;
    file->length = 0;
}

bool pem_file_has_certificate(const struct pem_file *file) {
    return strstr(file->text, "-----BEGIN CERTIFICATE-----") != NULL ||
           strstr(file->text, "-----BEGIN TRUSTED CERTIFICATE-----") != NULL ||
           strstr(file->text, "-----BEGIN X509 CERTIFICATE-----") != NULL;
}

bool pem_file_has_key(const struct pem_file *file) {
    return strstr(file->text, "PRIVATE KEY-----") != NULL;
}

static void certificates_free(struct stack_st_X509 *certificates) {
    sk_X509_pop_free(certificates, X509_free);
}

/* Reads until no certificate is left. False: a block of PEM is malformed. */
static bool read_certificates(BIO *bio, struct stack_st_X509 *certificates) {
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL)
        if (sk_X509_push(certificates, certificate) == 0)
            X509_free(certificate);
    return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

struct stack_st_X509 *pem_file_certificates(const struct pem_file *file,
                                            char error[PEM_FILE_ERROR]) {
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(file->text, (int)file->length);
    struct stack_st_X509 *certificates = sk_X509_new_null();
    ASSERT(bio != NULL && certificates != NULL);
    bool whole = read_certificates(bio, certificates);
    BIO_free(bio);
    if (whole && sk_X509_num(certificates) > 0) {
        ERR_clear_error();
        return certificates;
    }
    if (!whole)
        pem_file_fail(file->path, error,
                      "holds a certificate that can't be read (%s): copy it anew",
                      openssl_reason());
    else
        pem_file_fail(file->path, error,
                      "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)");
    certificates_free(certificates);
    ERR_clear_error();
    return NULL;
}

/* A group may read a key that root has given to it, as Debian does with the group ssl-cert. */
static bool is_private(const struct pem_file *file, char error[PEM_FILE_ERROR]) {
    if ((file->mode & S_IRWXO) != 0)
        return pem_file_fail(
            file->path, error,
            "holds a private key, and every user of this machine can open it (mode "
            "%03o): run chmod 600 %.128s, and make a new key if others may have "
            "read it",
            (unsigned)file->mode & 0777, file->path);
    if ((file->mode & S_IRWXG) != 0 && (file->owner != 0 || (file->mode & S_IWGRP) != 0))
        log_warn("%s holds a private key, and its group can open it (mode %03o): run chmod 600 %s "
                 "unless the group needs it",
                 file->path, (unsigned)file->mode & 0777, file->path);
    return true;
}

/* Makes OpenSSL ask nobody: there is no terminal when the settings are loaded again. */
static int no_password(char *buffer, int size, int writing, void *arg) {
    (void)buffer;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

EVP_PKEY *pem_file_key(const struct pem_file *file, char error[PEM_FILE_ERROR]) {
    if (!pem_file_has_key(file)) {
        pem_file_fail(file->path, error, "holds no private key in PEM");
        return NULL;
    }
    if (!is_private(file, error))
        return NULL;
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(file->text, (int)file->length);
    ASSERT(bio != NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    if (key == NULL && strstr(file->text, "ENCRYPTED") != NULL)
        pem_file_fail(file->path, error,
                      "holds a private key with a password, which nobody can type in when retort "
                      "starts: write the key without it (openssl pkey -in OLD -out NEW)");
    else if (key == NULL)
        pem_file_fail(file->path, error, "holds a private key that can't be read (%s)",
                      openssl_reason());
    ERR_clear_error();
    return key;
}
