#include "tools/ca_files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/pem.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ca_files_fail(char error[CA_FILES_ERROR], const char *path, const char *what) {
    snprintf(error, CA_FILES_ERROR, "%.256s %s", path, what);
    return false;
}

/* NULL: `error` says why. */
static FILE *create_new(const char *path, mode_t mode, char error[CA_FILES_ERROR]) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) {
        fchmod(fd, mode); /* whatever the umask is */
        return fdopen(fd, "w");
    }
    char reason[128];
    snprintf(reason, sizeof reason, "can't be made: %s", strerrordesc_np(errno));
    ca_files_fail(error, path,
                  errno == EEXIST ? "exists already, and is left as it is: choose another file, or "
                                    "move it away if no client trusts it any more"
                                  : reason);
    return NULL;
}

/* Makes the new name in the directory survive a crash. */
static bool sync_directory(const char *path) {
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = fsync(fd) == 0;
    close(fd);
    return good;
}

/* Ends a file that create_new began. `written` is whether all of it was. */
static bool finish_new(FILE *file, const char *path, bool written, char error[CA_FILES_ERROR]) {
    bool good = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int reason = errno;
    good = fclose(file) == 0 && good && sync_directory(path);
    if (good)
        return true;
    unlink(path);
    return ca_files_fail(error, path, reason != 0 ? strerrordesc_np(reason) : "can't be written");
}

/* Gives the open file to the user. */
static bool give_to(FILE *file, const char *path, const char *owner, char error[CA_FILES_ERROR]) {
    bool is_wish = owner != NULL;
    if (!is_wish && geteuid() != 0)
        return true;
    const struct passwd *user = getpwnam(is_wish ? owner : "retort");
    if (user == NULL && !is_wish)
        return true;
    if (user == NULL)
        return ca_files_fail(error, owner, "is no user of this machine");
    if (fchown(fileno(file), user->pw_uid, user->pw_gid) != 0)
        return ca_files_fail(error, path, "can't be given to that user: only root can do that");
    return true;
}

static bool write_key(const char *path, const char *owner, EVP_PKEY *key,
                      char error[CA_FILES_ERROR]) {
    FILE *file = create_new(path, S_IRUSR | S_IWUSR, error);
    if (file == NULL)
        return false;
    if (!give_to(file, path, owner, error)) {
        fclose(file);
        unlink(path);
        return false;
    }
    errno = 0;
    return finish_new(file, path, PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1,
                      error);
}

static bool write_certificate_to(FILE *file, X509 *certificate, bool der) {
    return der ? i2d_X509_fp(file, certificate) == 1 : PEM_write_X509(file, certificate) == 1;
}

bool ca_files_export(const char *path, X509 *certificate, bool der, char error[CA_FILES_ERROR]) {
    if (path == NULL)
        return (write_certificate_to(stdout, certificate, der) && fflush(stdout) == 0) ||
               ca_files_fail(error, "stdout", "can't be written");
    FILE *file = create_new(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, error);
    errno = 0;
    return file != NULL &&
           finish_new(file, path, write_certificate_to(file, certificate, der), error);
}

bool ca_files_write(const char *certificate_path, const char *key_path, const char *owner,
                    const struct authority *authority, char error[CA_FILES_ERROR]) {
    if (!write_key(key_path, owner, authority->key, error))
        return false;
    if (ca_files_export(certificate_path, authority->certificate, false, error))
        return true;
    unlink(key_path);
    return false;
}
