/*
 * The manual of a table of options, in Markdown or for man(7).
 *
 *     manual_print(stdout, &manual_man, &table, "Options of the whole proxy");
 *     manual_man.heading(stdout, "See also");
 *
 * Threads: any.
 */
#ifndef RETORT_CONFIG_MANUAL_H
#define RETORT_CONFIG_MANUAL_H

#include "config/option.h"

#include <stdio.h>

/* The form of a manual: Markdown or man(7). Texts are plain; each form escapes its own signs. */
struct manual_form {
    void (*heading)(FILE *out, const char *text);
    void (*paragraph)(FILE *out, const char *text);
    void (*example)(FILE *out, const char *lines);
    void (*option)(FILE *out, const char *name, const char *facts);
};

extern const struct manual_form manual_markdown, manual_man;

/* Prints each section with its options. `top`: the heading of those outside all sections. */
void manual_print(FILE *out, const struct manual_form *form, const struct option_table *table,
                  const char *top);

#endif
