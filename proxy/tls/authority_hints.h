/*
 * How people install the certificate of the proxy's authority: one text for each system, which
 * `retortctl ca export` and the page of the proxy (`ca_page`) show.
 *
 *     for (const struct authority_hint *hint = authority_hints; hint->system != NULL; hint++)
 *         printf("%s\n%s\n", hint->system, hint->steps);
 *
 * In the steps, the file is called retort-ca.crt, in PEM.
 *
 * Threads: constants.
 */
#ifndef RETORT_TLS_AUTHORITY_HINTS_H
#define RETORT_TLS_AUTHORITY_HINTS_H

struct authority_hint {
    const char *system;
    const char *steps; /* lines */
};

extern const struct authority_hint authority_hints[]; /* ends with a system that is NULL */

#endif
