/*
 * A certificate authority for unit tests, in files of the tests' directory.
 *
 *     struct settings *settings = settings_from(authority_lab_settings("intercept all { ... }\n"));
 *     authority_lab_write("ca.pem", "ca.key", authority);
 *
 * Threads: one.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_AUTHORITY_LAB_H
#define RETORT_TESTS_UNIT_PROXY_AUTHORITY_LAB_H

#include "tls/authority.h"

/* The text with an authority section in front of it. It lives until the next call. */
const char *authority_lab_settings(const char *text);
/* Writes the certificate and the key, which gets mode 0600, into these files. */
void authority_lab_write(const char *certificate, const char *key,
                         const struct authority *authority);

#endif
