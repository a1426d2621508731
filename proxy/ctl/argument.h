/*
 * Arguments in the query of a page of the admin plane, percent-encoded.
 *
 *     fputs("/cache/object?", out);
 *     argument_put(out, "url", "http://a.org/?b");           url=http://a.org/%3Fb&
 *
 * Threads: values.
 */
#ifndef RETORT_CTL_ARGUMENT_H
#define RETORT_CTL_ARGUMENT_H

#include <stdio.h>

/* Writes nothing when value is NULL. */
void argument_put(FILE *out, const char *name, const char *value);

#endif
