#include "tls/certificate_files.h"

#include "base/assert.h"
#include "base/slice.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_path(struct certificate_files *files, const char *path) {
    if (files->count == files->capacity) {
        files->capacity = files->capacity * 2 + 4;
        files->paths = xrealloc(files->paths, files->capacity * sizeof *files->paths);
    }
    files->paths[files->count++] = xstrdup(path);
}

static bool ends_with_one_of(const char *name, const char *const *endings) {
    for (; *endings != NULL; endings++)
        if (slice_ends_with_nocase(slice_from(name), slice_from(*endings)))
            return true;
    return false;
}

static bool is_named_as_certificate(const char *name) {
    static const char *const endings[] = {".pem", ".crt", ".cer", ".ecdsa", ".rsa", NULL};
    static const char *const others[] = {".issuer.crt", ".issuer.pem", "-key.pem", NULL};
    return ends_with_one_of(name, endings) && !ends_with_one_of(name, others) &&
           strcmp(name, "chain.pem") != 0 && strcmp(name, "privkey.pem") != 0;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static char *path_in(const char *folder, const char *name) {
    char *path = NULL;
    int length = asprintf(&path, "%s/%s", folder, name);
    ASSERT(length >= 0);
    return path;
}

static bool add_chain_of_folder(struct certificate_files *files, const char *folder) {
    char *chain = path_in(folder, "fullchain.pem");
    bool found = access(chain, F_OK) == 0;
    if (found)
        add_path(files, chain);
    free(chain);
    return found;
}

static bool holds_certificate(const char *path) {
    char error[PEM_FILE_ERROR];
    struct pem_file file;
    if (!pem_file_read(&file, path, error))
        return true; /* loading it says why it can't be read */
    bool holds = pem_file_has_certificate(&file);
    pem_file_release(&file);
    return holds;
}

static void add_entry(struct certificate_files *files, const char *folder, const char *name) {
    char *path = path_in(folder, name);
    if (is_folder(path))
        add_chain_of_folder(files, path);
    else if (is_named_as_certificate(name) && holds_certificate(path))
        add_path(files, path);
    free(path);
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static bool add_folder(struct certificate_files *files, const char *folder,
                       char error[PEM_FILE_ERROR]) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    if (count < 0) {
        snprintf(error, PEM_FILE_ERROR, "%.256s can't be read: %s", folder, strerrordesc_np(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        add_entry(files, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (files->count == 0)
        snprintf(error, PEM_FILE_ERROR,
                 "%.256s holds no certificate: put files NAME.pem with the certificate, its chain "
                 "and its private key there",
                 folder);
    return files->count > 0;
}

bool certificate_files_find(struct certificate_files *files, const char *path,
                            char error[PEM_FILE_ERROR]) {
    *files = (struct certificate_files){.folder = is_folder(path)};
    if (!files->folder)
        add_path(files, path);
    else if (!add_chain_of_folder(files, path) && !add_folder(files, path, error))
        return false;
    return true;
}

void certificate_files_release(struct certificate_files *files) {
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct certificate_files){0};
}
