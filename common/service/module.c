#include "service/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define C_ICAP_PREFIX "srv_"

bool service_module_name(const char *path, char name[SERVICE_MODULE_NAME]) {
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    if (strncmp(file, C_ICAP_PREFIX, strlen(C_ICAP_PREFIX)) == 0)
        file += strlen(C_ICAP_PREFIX);
    size_t length = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (length == 0 || length >= SERVICE_MODULE_NAME || strcmp(file + length, ".so") != 0)
        return false;
    memcpy(name, file, length);
    name[length] = '\0';
    return true;
}

/* The first function that a host needs and that is not there. */
static const char *missing_function(const struct service_ops *ops) {
    if (ops->begin == NULL)
        return "begin";
    if (ops->preview == NULL)
        return "preview";
    return ops->end == NULL ? "end" : NULL;
}

/* What could never be called. */
static const char *useless_function(const struct service_ops *ops) {
    if (ops->timer != NULL)
        return NULL;
    if (ops->timer_period != 0)
        return "has a .timer_period and no .timer";
    return ops->descriptor != NULL ? "has a .descriptor and no .timer, which is the first function "
                                     "that can watch a descriptor"
                                   : NULL;
}

static unsigned count_counters(const struct service_ops *ops) {
    unsigned count = 0;
    while (ops->counters != NULL && ops->counters[count] != NULL)
        count++;
    return count;
}

static unsigned count_options(const struct service_ops *ops) {
    unsigned count = 0;
    while (ops->options != NULL && ops->options[count].name != NULL)
        count++;
    return count;
}

bool service_module_check(const struct service_ops *ops, const char *path, const char *name,
                          char error[SERVICE_MODULE_ERROR]) {
    const unsigned points = SERVICE_REQUEST | SERVICE_RESPONSE;
    if (ops->version != SERVICE_VERSION)
        snprintf(error, SERVICE_MODULE_ERROR,
                 "%s was built for version %u of the service interface, and this program has "
                 "version %d: build the module again with the headers of this Retort",
                 path, ops->version, SERVICE_VERSION);
    else if (ops->name == NULL || strcmp(ops->name, name) != 0)
        snprintf(error, SERVICE_MODULE_ERROR,
                 "%s defines the service %s with .name = \"%s\": both names have to be the same",
                 path, name, ops->name == NULL ? "" : ops->name);
    else if (ops->description == NULL)
        snprintf(error, SERVICE_MODULE_ERROR, "%s: the service has no .description", path);
    else if (ops->points == 0 || (ops->points & ~points) != 0)
        snprintf(error, SERVICE_MODULE_ERROR,
                 "%s: .points of the service has to be SERVICE_REQUEST, SERVICE_RESPONSE or both",
                 path);
    else if (missing_function(ops) != NULL)
        snprintf(error, SERVICE_MODULE_ERROR,
                 "%s: the service has no function .%s, which every host calls", path,
                 missing_function(ops));
    else if (useless_function(ops) != NULL)
        snprintf(error, SERVICE_MODULE_ERROR, "%s: the service %s", path, useless_function(ops));
    else if (count_counters(ops) > SERVICE_MODULE_COUNTERS)
        snprintf(error, SERVICE_MODULE_ERROR, "%s: the service has %u counters, and %d are allowed",
                 path, count_counters(ops), SERVICE_MODULE_COUNTERS);
    else if (count_options(ops) > SERVICE_MODULE_OPTIONS)
        snprintf(error, SERVICE_MODULE_ERROR, "%s: the service has %u options, and %d are allowed",
                 path, count_options(ops), SERVICE_MODULE_OPTIONS);
    else
        return true;
    return false;
}

bool service_module_readable(const char *path, struct stat *status,
                             char error[SERVICE_MODULE_ERROR]) {
    if (stat(path, status) != 0)
        snprintf(
            error, SERVICE_MODULE_ERROR,
            "the module can't be loaded: %s: %s; correct the path, or install the module there",
            path, strerror(errno));
    else if (!S_ISREG(status->st_mode))
        snprintf(error, SERVICE_MODULE_ERROR,
                 "the module can't be loaded: %s is no file; write the path of the module", path);
    else if (access(path, R_OK) != 0)
        snprintf(
            error, SERVICE_MODULE_ERROR,
            "the module can't be loaded: %s: %s; let the user that this program runs as read it",
            path, strerror(errno));
    else
        return true;
    return false;
}

/* What to do about a file that the dynamic linker does not take. */
static const char *loading_advice(const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    return strncmp(file, C_ICAP_PREFIX, strlen(C_ICAP_PREFIX)) == 0
               ? "srv_NAME.so is for c-icap; take NAME.so of the same service"
               : "build it again with the headers and the library of this Retort";
}

const struct service_ops *service_module_load(const char *path, char error[SERVICE_MODULE_ERROR]) {
    char name[SERVICE_MODULE_NAME], symbol[sizeof SERVICE_SYMBOL_PREFIX + SERVICE_MODULE_NAME];
    char file[4096];
    if (!service_module_name(path, name)) {
        snprintf(error, SERVICE_MODULE_ERROR,
                 "\"%.300s\" is no name of a module: call the file NAME.so or srv_NAME.so, where "
                 "NAME is the name of the service, in small letters and digits",
                 path);
        return NULL;
    }
    /* dlopen looks for a name without a slash in the system's folders of libraries. */
    if (snprintf(file, sizeof file, "%s%s", strchr(path, '/') != NULL ? "" : "./", path) >=
        (int)sizeof file) {
        snprintf(error, SERVICE_MODULE_ERROR, "the path of the module %s is too long", name);
        return NULL;
    }
    struct stat status;
    if (!service_module_readable(path, &status, error))
        return NULL;
    void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == NULL) {
        snprintf(error, SERVICE_MODULE_ERROR, "the module can't be loaded: %s; %s", dlerror(),
                 loading_advice(path));
        return NULL;
    }
    snprintf(symbol, sizeof symbol, "%s%s", SERVICE_SYMBOL_PREFIX, name);
    const struct service_ops *ops = dlsym(module, symbol);
    if (ops == NULL) {
        snprintf(
            error, SERVICE_MODULE_ERROR,
            "%s has no symbol %s: the service is defined with SERVICE_DEFINE(%s), and the file "
            "is called %s.so or srv_%s.so",
            path, symbol, name, name, name);
        return NULL;
    }
    return service_module_check(ops, path, name, error) ? ops : NULL;
}

/* What is looked for among the files that the process has loaded. */
struct module_build {
    uintptr_t inside; /* an address in the file */
    uint64_t *fingerprint;
};

static bool holds_address(const struct dl_phdr_info *file, uintptr_t address) {
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        uintptr_t begin = file->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= begin && address < begin + part->p_memsz)
            return true;
    }
    return false;
}

static size_t note_padded(uint64_t length) {
    return (size_t)((length + 3) & ~UINT64_C(3));
}

/* The build ID in the notes; empty: there is none. */
static struct slice build_id_in(const char *at, size_t length) {
    while (length >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t name = sizeof note, text = name + note_padded(note.n_namesz);
        size_t next = text + note_padded(note.n_descsz);
        if (next > length)
            break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
            return slice_make(at + text, note.n_descsz);
        at += next;
        length -= next;
    }
    return SLICE("");
}

static bool mix_build_id(const struct dl_phdr_info *file, uint64_t *fingerprint) {
    struct slice id = SLICE("");
    for (unsigned i = 0; id.length == 0 && i < file->dlpi_phnum; i++)
        if (file->dlpi_phdr[i].p_type == PT_NOTE)
            id = build_id_in((const char *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr),
                             file->dlpi_phdr[i].p_memsz);
    *fingerprint = service_fingerprint(*fingerprint, id.base, id.length);
    return id.length > 0;
}

static void mix_code(const struct dl_phdr_info *file, uint64_t *fingerprint) {
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && (part->p_flags & PF_R))
            *fingerprint = service_fingerprint(
                *fingerprint, (const void *)(file->dlpi_addr + part->p_vaddr), part->p_memsz);
    }
}

static int mix_file(struct dl_phdr_info *file, size_t size, void *arg) {
    const struct module_build *build = arg;
    (void)size;
    if (!holds_address(file, build->inside))
        return 0;
    if (!mix_build_id(file, build->fingerprint))
        mix_code(file, build->fingerprint);
    return 1;
}

void service_module_mix_build(uint64_t *fingerprint, const struct service_ops *ops) {
    struct module_build build = {(uintptr_t)ops, fingerprint};
    if (ops->build != NULL && ops->build[0] != '\0')
        *fingerprint = service_fingerprint(*fingerprint, ops->build, strlen(ops->build) + 1);
    else
        dl_iterate_phdr(mix_file, &build);
}
