/*
 * Which text is for which client: a file of lines "CIDR<TAB>TEXT", of which the first that contains
 * the client's address counts, and "default<TAB>TEXT" for all others. "#" begins a comment line.
 * "%{ip}" in a text stands for the client's address. Nothing is escaped: the text is the operator's
 * HTML.
 *
 *     10.1.0.0/16<TAB><script src="/branch.js"></script>
 *     2001:db8::/32<TAB><!-- six %{ip} -->
 *     default<TAB><!-- %{ip} -->
 *
 *     struct text_table *table = text_table_read(path, error, sizeof error);    NULL: error says
 * why size_t n = text_table_answer(table, SLICE("10.1.2.3"), out, sizeof out);  0: no text
 *     text_table_free(&table);
 *
 * A table without a file (text_table_builtin) answers with an HTML comment that holds the address.
 * Threads: read-only once read.
 */
#ifndef RETORT_INJECT_TEXT_TABLE_H
#define RETORT_INJECT_TEXT_TABLE_H

#include "base/slice.h"

struct text_table;

struct text_table *text_table_read(const char *path, char *error, size_t error_size);
struct text_table *text_table_builtin(void);
void text_table_free(struct text_table **tablep);
/* An address that is not one counts as "unknown" and gets the default. Returns the length; 0 when
 * there is no text or it does not fit. */
size_t text_table_answer(const struct text_table *table, struct slice address, char *out,
                         size_t capacity);

#endif
