/*
 * The certificate files that a path of the configuration stands for.
 *
 *     struct certificate_files files;
 *     if (!certificate_files_find(&files, "/etc/letsencrypt/live", error)) ...
 *     for (size_t i = 0; i < files.count; i++)
 *         certificate_load(files.paths[i], error);
 *     certificate_files_release(&files);
 *
 * A path is one file, or a folder:
 * - a folder with fullchain.pem, as certbot makes one for each certificate: that file;
 * - any other folder: its files *.pem, *.crt, *.cer, *.ecdsa and *.rsa that hold a certificate, and
 *   the folders of the first kind in it (certbot's live/). Files that tools put beside them are
 *   left out: lego's *.issuer.crt, certbot's chain.pem and privkey.pem, keys and hidden files.
 *
 * The files of a folder come in the order of their names.
 *
 * Threads: pure, but for the file system.
 */
#ifndef RETORT_TLS_CERTIFICATE_FILES_H
#define RETORT_TLS_CERTIFICATE_FILES_H

#include "tls/pem_file.h"

struct certificate_files {
    char **paths; /* owned */
    size_t count, capacity;
    bool folder; /* the path is a folder */
};

/* False: `error` says why. A folder without a certificate is an error. */
bool certificate_files_find(struct certificate_files *files, const char *path,
                            char error[PEM_FILE_ERROR]);
void certificate_files_release(struct certificate_files *files);

#endif
