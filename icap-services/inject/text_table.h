/*
 * Tells which text is for which client. It reads a file with lines "CIDR<TAB>TEXT": the first line
 * whose network contains the client's address counts. The line "default<TAB>TEXT" is for all other
 * clients. "#" begins a comment line. In a text "%{ip}" stands for the client's address, "%{url}"
 * for the page's URL, "%{user}" for the client's name and "%{time}" for the time; all are escaped
 * for HTML and its quoted attributes. The text itself is the operator's HTML and stays as it is.
 *
 *     10.1.0.0/16<TAB><script src="/branch.js"></script>
 *     2001:db8::/32<TAB><!-- six %{ip} -->
 *     default<TAB><!-- %{ip} -->
 *
 *     struct text_table *table = text_table_read(path, error, sizeof error);
 *     if (table == NULL) ...                             `error` says why
 *     size_t n = text_table_answer(table, SLICE("10.1.2.3\nhttp://a/\njo"), out, sizeof out);
 *     if (n == 0) ...                                    no text is for that client
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
/* `about` is the client's address and, if known, on the next lines the URL and the user's name.
 * If the first line is no valid address, the client is "unknown" and gets the default text. Returns
 * the length of the text; 0 when there is no text or it does not fit. */
size_t text_table_answer(const struct text_table *table, struct slice about, char *out,
                         size_t capacity);

#endif
