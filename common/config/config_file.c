#include "config/config_file.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_FILE_PIECE = 64 << 10 };

/* Opens without waiting, since a pattern may match a pipe that nobody writes to. */
static FILE *open_regular(const char *path, struct config_file_id *id, const char **why) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *why = strerror(errno);
    if (fd < 0)
        return NULL;
    *why = "it is no regular file";
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        *id = (struct config_file_id){.device = status.st_dev, .inode = status.st_ino};
        return fdopen(fd, "r");
    }
    close(fd);
    return NULL;
}

static char *config_file_read_whole(FILE *file, size_t limit, size_t *length) {
    char *text = NULL;
    size_t capacity = 0, got;
    *length = 0;
    do {
        capacity += CONFIG_FILE_PIECE + capacity / 2;
        text = xrealloc(text, capacity + 2);
        got = fread(text + *length, 1, capacity - *length, file);
        *length += got;
    } while (got > 0 && *length == capacity && *length <= limit);
    return text;
}

char *config_file_read(const char *path, size_t limit, size_t *length, struct config_file_id *id,
                       char reason[CONFIG_FILE_ERROR]) {
    const char *why = NULL;
    FILE *file = id != NULL ? open_regular(path, id, &why) : fopen(path, "re");
    if (file == NULL) {
        snprintf(reason, CONFIG_FILE_ERROR, "the file can not be opened: %s",
                 why != NULL ? why : strerror(errno));
        return NULL;
    }
    char *text = config_file_read_whole(file, limit, length);
    if (ferror(file))
        snprintf(reason, CONFIG_FILE_ERROR, "the file can not be read: %s", strerror(errno));
    else if (*length > limit)
        snprintf(reason, CONFIG_FILE_ERROR, "the file is too long for a configuration file");
    else
        reason[0] = '\0';
    fclose(file);
    if (reason[0] != '\0') {
        free(text);
        return NULL;
    }
    if (*length == 0 || text[*length - 1] != '\n')
        text[(*length)++] = '\n';
    text[*length] = '\0';
    return text;
}

/* The pattern behind the directory of the file, whose own name is no pattern. */
static char *absolute_pattern(const char *from, const char *pattern, bool is_pattern) {
    const char *slash = pattern[0] == '/' ? NULL : strrchr(from, '/');
    size_t directory = slash == NULL ? 0 : (size_t)(slash - from) + 1;
    char *joined = xmalloc(2 * directory + strlen(pattern) + 1), *at = joined;
    for (size_t i = 0; i < directory; i++) {
        if (is_pattern && strchr("*?[\\", from[i]) != NULL)
            *at++ = '\\';
        *at++ = from[i];
    }
    strcpy(at, pattern);
    return joined;
}

char *config_file_beside(const char *from, const char *path) {
    return absolute_pattern(from, path, false);
}

/* A directory that is not there has no files in it; one that can not be read may have some. */
static int on_glob_error(const char *path, int error) {
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

static char **list_of(char **paths, size_t count) {
    char **list = xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = xstrdup(paths[i]);
    return list;
}

char **config_file_glob(const char *from, const char *pattern, char reason[CONFIG_FILE_ERROR]) {
    bool is_pattern = strpbrk(pattern, "*?[") != NULL;
    char *joined = absolute_pattern(from, pattern, is_pattern);
    char **list = NULL;
    glob_t found = {0};
    int status = is_pattern ? glob(joined, 0, on_glob_error, &found) : 0;
    if (!is_pattern)
        list = list_of(&joined, 1);
    else if (status == 0)
        list = list_of(found.gl_pathv, found.gl_pathc);
    else if (status == GLOB_NOMATCH)
        list = list_of(NULL, 0);
    else
        snprintf(reason, CONFIG_FILE_ERROR, "a directory can not be read: %s", strerror(errno));
    globfree(&found);
    free(joined);
    return list;
}

void config_file_free_paths(char ***pathsp) {
    char **paths = *pathsp;
    *pathsp = NULL;
    for (char **path = paths; path != NULL && *path != NULL; path++)
        free(*path);
    free(paths);
}
