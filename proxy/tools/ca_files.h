/*
 * The files of a certificate authority, as `retortctl ca` writes them.
 *
 *     char error[CA_FILES_ERROR];
 *     if (!ca_files_write("/etc/retort/ca.pem", "/etc/retort/ca.key", NULL, authority, error)) ...
 *     if (!ca_files_export("retort-ca.crt", certificate, false, error)) ...
 *
 * A file that exists is never overwritten. The key's file has mode 0600 from the beginning. It
 * belongs to `owner`, or, when root makes it and a user "retort" exists, to that user, so that the
 * proxy can read it. When a function returns true, the files are on disk; after false, a file that
 * it had begun is gone again.
 *
 * Threads: one.
 */
#ifndef RETORT_TOOLS_CA_FILES_H
#define RETORT_TOOLS_CA_FILES_H

#include "tls/authority.h"

#define CA_FILES_CERTIFICATE "/etc/retort/ca.pem"
#define CA_FILES_KEY         "/etc/retort/ca.key"

enum { CA_FILES_ERROR = 700 };

/* Owner NULL: as above. */
bool ca_files_write(const char *certificate_path, const char *key_path, const char *owner,
                    const struct authority *authority, char error[CA_FILES_ERROR]);
/* Writes the certificate in PEM or DER. Path NULL: to stdout. */
bool ca_files_export(const char *path, X509 *certificate, bool der, char error[CA_FILES_ERROR]);

#endif
