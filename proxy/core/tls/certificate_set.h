/*
 * The certificates of one listener, and which of them a client gets that asks for a name (SNI, RFC
 * 6066 §3).
 *
 *     char error[PEM_FILE_ERROR];
 *     char *const paths[] = {"/etc/retort/www.pem", "/etc/letsencrypt/live", NULL};
 *     struct certificate_set *set = certificate_set_load(paths, error);
 *     const struct certificate_choice *choice = certificate_set_find(set, SLICE("www.example.com"));
 *     if (choice == NULL)
 *         choice = certificate_set_default(set);
 *     choice->of[CERTIFICATE_ECDSA]          NULL: this name has no certificate of that kind
 *     certificate_set_release(&set);
 *
 * Certificates of several kinds of key for one name stand side by side, and the client's signature
 * algorithms decide. A name that is written out goes before a wildcard, and a wildcard stands for
 * exactly one label. When two certificates of one kind have the same name, the first one counts,
 * and a warning says so. The first certificate of all is the default one.
 *
 * In a folder, a certificate that has expired is left out with a warning, unless nothing else is
 * there: one customer's certificate must not keep the changes of all others away. A file named in
 * the configuration is refused then.
 *
 * Threads: read-only after certificate_set_load; the reference count is atomic.
 */
#ifndef RETORT_TLS_CERTIFICATE_SET_H
#define RETORT_TLS_CERTIFICATE_SET_H

#include "base/slice.h"
#include "tls/certificate.h"

struct certificate_set;

struct certificate_choice {
    const struct certificate *of[CERTIFICATE_KINDS]; /* at least one */
};

/* `paths` ends with NULL. NULL: `error` says which file can't be used, and why. */
struct certificate_set *certificate_set_load(char *const *paths, char error[PEM_FILE_ERROR]);
struct certificate_set *certificate_set_reference(struct certificate_set *set);
void certificate_set_release(struct certificate_set **setp);

/* The name is in lower case. NULL: no certificate is for it. */
const struct certificate_choice *certificate_set_find(const struct certificate_set *set,
                                                      struct slice name);
const struct certificate_choice *certificate_set_default(const struct certificate_set *set);

/* All certificates, in the order of the configuration. */
size_t certificate_set_count(const struct certificate_set *set);
const struct certificate *certificate_set_at(const struct certificate_set *set, size_t index);
/* Logs a warning for each certificate that expires within 30 days, or whose key few clients take. */
void certificate_set_warn(const struct certificate_set *set);

#endif
