/*
 * The name of one option in a configuration, as retortctl takes and shows it: the sections around
 * it, the title, and the option, with dots between.
 *
 *     log_level                              an option outside all sections
 *     cache.memory                           one of a section without a title
 *     icap_service.gray.timeout              one of the section icap_service "gray"
 *     limit.all#2.concurrent                 of the second section with this title
 *     origins.web.servers[http://10.0.0.1]   the element of a list that begins with this word
 *
 *     struct option_path path;
 *     if (!option_path_parse(&path, "cache.memory", error, sizeof error)) ...  "there is no option ..."
 *     char *name = option_path_name(&path);                                    "cache.memory"
 *     option_path_release(&path);
 *
 * A title may have dots: names of sections and options have none.
 *
 * Threads: values. The caller frees a name.
 */
#ifndef RETORT_ADMIN_OPTION_PATH_H
#define RETORT_ADMIN_OPTION_PATH_H

#include "config/document.h"
#include "settings/options.h"

struct option_path {
    const struct option_section *kind;
    const struct option *option;
    char *title;     /* NULL: the kind has none */
    unsigned number; /* among the sections with this title, from 1; 0: there is one */
    char *key;       /* NULL: the whole option */
};

/* False with a sentence. The caller releases the path, also after false. */
bool option_path_parse(struct option_path *path, const char *name, char *error, size_t error_size);
void option_path_release(struct option_path *path);
char *option_path_name(const struct option_path *path);

/* The number of sections of the kind with the title. */
size_t option_path_count(const struct document *document, const struct option_section *kind,
                         const char *title);
/* The index of the section that the path means; SIZE_MAX: there is none, or there are several. */
size_t option_path_find(const struct option_path *path, const struct document *document);

#endif
