#include "inside/code.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is loaded. They are never unloaded, and the table of the dynamic linker has them all the
 * same, so these are the process's too. */
struct loaded_file {
    struct loaded_file *next;
    dev_t device;
    ino_t number;
    const struct service_ops *ops;
};

struct loaded_path {
    struct loaded_path *next;
    char *path;
    unsigned spellings; /* that dlopen was given, also of files that it or we refused */
    struct loaded_file *files;
};

static struct loaded_path *loaded_paths;
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;

static struct loaded_path *code_path_of(const char *path) {
    struct loaded_path *loaded = loaded_paths;
    while (loaded != NULL && strcmp(loaded->path, path) != 0)
        loaded = loaded->next;
    if (loaded != NULL)
        return loaded;
    loaded = xcalloc(1, sizeof *loaded);
    loaded->path = xstrdup(path);
    loaded->next = loaded_paths;
    loaded_paths = loaded;
    return loaded;
}

/* NULL: it is not loaded. */
static const struct loaded_file *code_file_of(const struct loaded_path *path,
                                              const struct stat *status) {
    const struct loaded_file *file = path->files;
    while (file != NULL && (file->device != status->st_dev || file->number != status->st_ino))
        file = file->next;
    return file;
}

static void add_file(struct loaded_path *path, const struct stat *status,
                     const struct service_ops *ops) {
    struct loaded_file *file = xcalloc(1, sizeof *file);
    file->device = status->st_dev;
    file->number = status->st_ino;
    file->ops = ops;
    file->next = path->files;
    path->files = file;
}

/* Another spelling of the path for each number: in front of the file's name, a "/" for each bit that is
 * 0 and a "./" for each that is 1. The caller frees it. */
static char *spell_path(const char *path, unsigned number) {
    char dots[2 * 8 * sizeof number + 1] = "", *spelt;
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    for (; number > 0; number /= 2)
        strcat(dots, number % 2 == 1 ? "./" : "/");
    ASSERT(asprintf(&spelt, "%.*s%s%s", (int)folder, path, dots, path + folder) >= 0);
    return spelt;
}

/* False: another file took its place meanwhile. */
static bool load_file(struct loaded_path *path, const struct stat *status,
                      const struct service_ops **ops, char error[SERVICE_MODULE_ERROR]) {
    struct stat after;
    char *spelt = spell_path(path->path, path->spellings++);
    *ops = service_module_load(spelt, error);
    free(spelt);
    if (stat(path->path, &after) != 0 || after.st_dev != status->st_dev ||
        after.st_ino != status->st_ino)
        return false;
    if (*ops != NULL)
        add_file(path, status, *ops);
    return true;
}

static const struct service_ops *load_code(struct loaded_path *path,
                                           char error[SERVICE_MODULE_ERROR]) {
    enum { TRIES = 10 };
    const struct service_ops *ops = NULL;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct stat status;
        if (!service_module_readable(path->path, &status, error))
            return NULL;
        const struct loaded_file *file = code_file_of(path, &status);
        if (file != NULL)
            return file->ops;
        if (load_file(path, &status, &ops, error))
            return ops;
    }
    snprintf(error, SERVICE_MODULE_ERROR,
             "%s is replaced again and again while it is loaded; wait for the end of that",
             path->path);
    return NULL;
}

const struct service_ops *inside_code_load(const char *path, char error[SERVICE_MODULE_ERROR]) {
    pthread_mutex_lock(&loaded_lock);
    const struct service_ops *ops = load_code(code_path_of(path), error);
    pthread_mutex_unlock(&loaded_lock);
    return ops;
}
