#include "inside/module.h"

#include "base/assert.h"

#include <dlfcn.h>
#include <stdio.h>

enum { MODULE_NAME = 64 };

/* "gray" of "/usr/lib/retort/services/gray.so". */
static bool module_name(const char *path, char name[MODULE_NAME]) {
    const char *file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    size_t length = strcspn(file, ".");
    if (length == 0 || length >= MODULE_NAME ||
        strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789") != length ||
        strcmp(file + length, ".so") != 0)
        return false;
    memcpy(name, file, length);
    name[length] = '\0';
    return true;
}

static const struct service_ops *module_find(void *loaded, const char *path, const char *name,
                                             char error[INSIDE_ERROR]) {
    char symbol[sizeof SERVICE_SYMBOL_PREFIX + MODULE_NAME];
    snprintf(symbol, sizeof symbol, "%s%s", SERVICE_SYMBOL_PREFIX, name);
    const struct service_ops *ops = dlsym(loaded, symbol);
    if (ops == NULL)
        snprintf(error, INSIDE_ERROR,
                 "%s defines no service %s (%s): a module NAME.so has SERVICE_DEFINE(NAME)", path,
                 name, symbol);
    else if (ops->version != SERVICE_VERSION)
        snprintf(error, INSIDE_ERROR,
                 "%s was built for version %u of the interface of services, and this is version "
                 "%d: build it again with the headers of this Retort",
                 path, ops->version, SERVICE_VERSION);
    else
        return ops;
    return NULL;
}

const struct service_ops *inside_module_load(const char *path, char error[INSIDE_ERROR]) {
    char name[MODULE_NAME];
    if (!module_name(path, name)) {
        snprintf(error, INSIDE_ERROR,
                 "\"%s\" is no name of a module: write NAME.so, with letters in lower case and "
                 "digits",
                 path);
        return NULL;
    }
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (loaded == NULL) {
        snprintf(error, INSIDE_ERROR, "the module can't be loaded: %s", dlerror());
        return NULL;
    }
    return module_find(loaded, path, name, error);
}
