/*
 * The name of a TLS server, as clients send it and certificates have it.
 *
 *     char name[SERVER_NAME_MAX];
 *     size_t length = server_name_put(name, SLICE("WWW.Example.com."));      "www.example.com"
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_SERVER_NAME_H
#define RETORT_TLS_SERVER_NAME_H

#include "base/slice.h"

/* The longest valid name (RFC 1035 §2.3.4). */
enum { SERVER_NAME_MAX = 253 };

/* May the name be used as a host name, and stand in a certificate? It consists of labels of 1 to 63
 * letters, digits, '-' and '_', and has at most 253 bytes. One dot may stand at the end. An IP
 * address is no name, in whatever spelling: the last label is not a number (WHATWG URL §3.5).
 * Internationalized names are valid in the form of A-labels ("xn--...") only. */
bool server_name_is_valid(struct slice name);
/* Writes a valid name in lower case and without a dot at its end. Returns the length, and 0 for a
 * name that is not valid. */
size_t server_name_put(char out[SERVER_NAME_MAX], struct slice name);

#endif
