/*
 * Lists in files, one entry a line: names, networks, URLs. A list that is half written is refused
 * as a whole, with its line, so that a reload never works with a part of it.
 *
 *     # comment                          also behind an entry, after a blank
 *     ads.example.com
 *
 *     static bool take(void *arg, struct slice line, char *error, size_t error_size);
 *     if (!list_file_read(path, take, set, error, sizeof error))
 *         ... error is "/etc/retort/ads.txt:17: \"-\" is not a host" ...
 *
 * `take` gets each line without its comment and the white space around it, and no empty lines. It
 * returns false with what is wrong in `error`. A list that does not end with a line break, is
 * empty, contains a control character (a NUL, as files have after a crash), or is changed while it
 * is read, is refused.
 *
 * Threads: any.
 */
#ifndef RETORT_LISTS_LIST_FILE_H
#define RETORT_LISTS_LIST_FILE_H

#include "match/class_lists.h"

enum { LIST_FILE_LINE_MAX = 16384 };

typedef bool list_file_take(void *arg, struct slice line, char *error, size_t error_size);

/* The same for a text in memory; `line` is that of the error. */
bool list_file_parse(struct slice text, list_file_take *take, void *arg, size_t *line, char *error,
                     size_t error_size);

/* One line of a list, as class_lists_open takes it. For tests. */
bool class_list_check_line(enum class_list_kind kind, struct slice line, char *error,
                           size_t error_size);

#endif
