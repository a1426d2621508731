/*
 * The text of one configuration file, and the names of the files that a pattern stands for.
 *
 *     char reason[CONFIG_FILE_ERROR];
 *     size_t length;
 *     char *text = config_file_read("/etc/retort/retort.conf", limit, &length, NULL, reason);
 *     if (text == NULL) ...                     reason: "the file can not be opened: ..."
 *     free(text);
 *
 *     char **paths = config_file_glob("/etc/retort/retort.conf", "conf.d/?*.conf", reason);
 *     for (char **path = paths; path != NULL && *path != NULL; path++) ...
 *     config_file_free_paths(&paths);
 *
 * A text ends with a newline and a zero byte. Paths come in the order of their bytes.
 *
 * Threads: any.
 */
#ifndef RETORT_CONFIG_CONFIG_FILE_H
#define RETORT_CONFIG_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { CONFIG_FILE_ERROR = 400 };

/* Which file it is, whatever the path. */
struct config_file_id {
    dev_t device;
    ino_t inode;
};

/* `id`: NULL, or where to write which file it is; then only a regular file is read. The caller
 * frees the text. NULL: there is none, and `reason` says why. */
char *config_file_read(const char *path, size_t limit, size_t *length, struct config_file_id *id,
                       char reason[CONFIG_FILE_ERROR]);
/* The path that a file `from` names: relative to its directory. The caller frees it. */
char *config_file_beside(const char *from, const char *path);
/* The paths that a pattern stands for in the file `from`: relative to its directory. A list that
 * ends with NULL. A pattern without * ? [ is a path, whether it exists or not; one that matches
 * nothing gives an empty list. NULL: a directory can not be read. */
char **config_file_glob(const char *from, const char *pattern, char reason[CONFIG_FILE_ERROR]);
void config_file_free_paths(char ***pathsp);

#endif
