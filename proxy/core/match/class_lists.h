/*
 * The files that classes of one snapshot of the settings name: each is read once, however many
 * classes use it.
 *
 *     struct class_lists *lists = class_lists_new();
 *     const struct class_list *list = class_lists_open(lists, CLASS_LIST_DOMAINS, path, error, ...);
 *     if (list == NULL) ... error is "/etc/retort/ads.txt:17: ..."
 *     if (class_list_has_host(list, host)) ...
 *     class_lists_free(&lists);                       once the classes are freed
 *
 * Threads: read-only once all files are opened.
 */
#ifndef RETORT_MATCH_CLASS_LISTS_H
#define RETORT_MATCH_CLASS_LISTS_H

#include "base/slice.h"
#include "net/address.h"

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

enum { LIST_FILE_LINE_MAX = 16384 };

typedef bool list_file_take(void *arg, struct slice line, char *error, size_t error_size);

/* The same for a text in memory; `line` is that of the error. */
bool list_file_parse(struct slice text, list_file_take *take, void *arg, size_t *line, char *error,
                     size_t error_size);

enum class_list_kind {
    CLASS_LIST_HOSTS,   /* names, and "*.example.com" for those below */
    CLASS_LIST_DOMAINS, /* names with all below them */
    CLASS_LIST_NETWORKS,
    CLASS_LIST_URLS,
};

struct class_list;
struct class_lists;

struct class_lists *class_lists_new(void);
void class_lists_free(struct class_lists **listsp);
/* Makes all lists empty without a look at the files, which are those of another machine. */
void class_lists_skip_files(struct class_lists *lists);

/* NULL with the reason, which names the file and the line. */
const struct class_list *class_lists_open(struct class_lists *lists, enum class_list_kind kind,
                                          const char *path, char *error, size_t error_size);

bool class_list_has_host(const struct class_list *list, struct slice host);
bool class_list_has_address(const struct class_list *list, const struct address *address);
bool class_list_has_url(const struct class_list *list, struct slice url);

/* One line of a list, as class_lists_open takes it. For tests. */
bool class_list_check_line(enum class_list_kind kind, struct slice line, char *error,
                           size_t error_size);

#endif
