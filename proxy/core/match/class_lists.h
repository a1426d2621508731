/*
 * The files that classes of one snapshot of the settings name: each is read once, however many
 * classes use it.
 *
 *     struct class_lists *lists = class_lists_new(false);
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

enum class_list_kind {
    CLASS_LIST_HOSTS,   /* names, and "*.example.com" for those below */
    CLASS_LIST_DOMAINS, /* names with all below them */
    CLASS_LIST_NETWORKS,
    CLASS_LIST_URLS,
};

/* What the part lists does with them. */
struct class_lists_class {
    struct class_lists *(*make)(bool skips_files);
    void (*release)(struct class_lists **listsp);
    const struct class_list *(*open)(struct class_lists *lists, enum class_list_kind kind,
                                     const char *path, char *error, size_t error_size);
    bool (*has_host)(const struct class_list *list, struct slice host);
    bool (*has_address)(const struct class_list *list, const struct address *address);
    bool (*has_url)(const struct class_list *list, struct slice url);
};

/* What is seen of them here. */
struct class_list {
    const struct class_lists_class *class;
};
struct class_lists {
    const struct class_lists_class *class;
};

/* NULL: there is no such part, and so no class names a list. `skips_files`: all lists are empty without a look at the
 * files, which are those of another machine. */
struct class_lists *class_lists_new(bool skips_files);

static inline void class_lists_free(struct class_lists **listsp) {
    if (*listsp != NULL)
        (*listsp)->class->release(listsp);
}

/* NULL with the reason, which names the file and the line. */
static inline const struct class_list *class_lists_open(struct class_lists *lists,
                                                        enum class_list_kind kind, const char *path,
                                                        char *error, size_t error_size) {
    return lists->class->open(lists, kind, path, error, error_size);
}

static inline bool class_list_has_host(const struct class_list *list, struct slice host) {
    return list->class->has_host(list, host);
}

static inline bool class_list_has_address(const struct class_list *list,
                                          const struct address *address) {
    return list->class->has_address(list, address);
}

static inline bool class_list_has_url(const struct class_list *list, struct slice url) {
    return list->class->has_url(list, url);
}

#endif
