#include "tls/certificate_set.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/slice.h"
#include "tls/certificate_text.h"
#include "tls/pem_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * The certificate files that a path of the configuration stands for.
 *
 * A path is one file, or a folder:
 * - a folder with fullchain.pem, as certbot makes one for each certificate: that file;
 * - any other folder: its files *.pem, *.crt, *.cer, *.ecdsa and *.rsa that hold a certificate, and
 *   the folders of the first kind in it (certbot's live/). Files that tools put beside them are
 *   left out: lego's *.issuer.crt, certbot's chain.pem and privkey.pem, keys and hidden files.
 *
 * The files of a folder come in the order of their names.
 */

struct certificate_files {
    char **paths; /* owned */
    size_t count, capacity;
    bool folder; /* the path is a folder */
};

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
    if (count < 0)
        return failure(error, PEM_FILE_ERROR, "%.256s can't be read: %s", folder,
                       strerrordesc_np(errno));
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

/* False: `error` says why. A folder without a certificate is an error. */
static bool certificate_files_find(struct certificate_files *files, const char *path,
                                   char error[PEM_FILE_ERROR]) {
    *files = (struct certificate_files){.folder = is_folder(path)};
    if (!files->folder)
        add_path(files, path);
    else if (!add_chain_of_folder(files, path) && !add_folder(files, path, error))
        return false;
    return true;
}

static void certificate_files_release(struct certificate_files *files) {
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct certificate_files){0};
}

/* In seconds. */
enum { DAY = 86400, WARN_BEFORE = 30 * DAY };

struct served_name {
    const char *name; /* of a certificate */
    struct certificate_choice choice;
};

struct certificate_set {
    unsigned magic;
#define CERTIFICATE_SET_MAGIC 0xce475e70u
    _Atomic unsigned references;
    struct certificate **certificates;
    size_t count, capacity;
    struct served_name *names; /* in order, each once */
    size_t name_count;
    struct certificate_choice fallback; /* for names that no certificate is for */
};

static void set_add(struct certificate_set *set, struct certificate *certificate) {
    if (set->count == set->capacity) {
        set->capacity = set->capacity * 2 + 4;
        set->certificates = xrealloc(set->certificates, set->capacity * sizeof *set->certificates);
    }
    set->certificates[set->count++] = certificate;
}

/* Some tools write one certificate into several files. */
static bool has_already(const struct certificate_set *set, const struct certificate *certificate) {
    for (size_t i = 0; i < set->count; i++)
        if (X509_cmp(set->certificates[i]->leaf, certificate->leaf) == 0)
            return true;
    return false;
}

/* In a folder, a certificate that has expired is left out. Returns false for one that was named. */
static bool set_take(struct certificate_set *set, struct certificate **certificatep, bool folder,
                     char error[PEM_FILE_ERROR]) {
    struct certificate *certificate = *certificatep;
    char date[CERTIFICATE_TEXT_DATE];
    if (certificate->expires > (int64_t)time(NULL)) {
        if (has_already(set, certificate))
            certificate_free(certificatep);
        else
            set_add(set, certificate);
        return true;
    }
    certificate_text_date(certificate->expires, date);
    snprintf(error, PEM_FILE_ERROR, "%.256s expired on %s: renew the certificate",
             certificate->file, date);
    if (folder)
        log_warn("%s; until then it is left out", error);
    certificate_free(certificatep);
    return folder;
}

static bool set_load_path(struct certificate_set *set, const char *path,
                          char error[PEM_FILE_ERROR]) {
    struct certificate_files files;
    bool good = certificate_files_find(&files, path, error);
    for (size_t i = 0; good && i < files.count; i++) {
        struct certificate *certificate = certificate_load(files.paths[i], error);
        good = certificate != NULL && set_take(set, &certificate, files.folder, error);
    }
    certificate_files_release(&files);
    return good;
}

/* A name of a certificate, by the certificate's place in the set. */
struct name_entry {
    const char *name;
    size_t place;
};

static int set_compare_entries(const void *a, const void *b) {
    const struct name_entry *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order != 0 ? order : one->place < other->place ? -1 : one->place > other->place;
}

static struct name_entry *sorted_entries(const struct certificate_set *set, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < set->count; i++)
        *count += set->certificates[i]->name_count;
    struct name_entry *entries = xcalloc(*count + 1, sizeof *entries);
    struct name_entry *entry = entries;
    for (size_t i = 0; i < set->count; i++)
        for (size_t j = 0; j < set->certificates[i]->name_count; j++)
            *entry++ = (struct name_entry){set->certificates[i]->names[j], i};
    qsort(entries, *count, sizeof *entries, set_compare_entries);
    return entries;
}

/* The first certificate of a kind stays. */
static bool choice_add(struct certificate_choice *choice, const struct certificate *certificate) {
    const struct certificate **place = &choice->of[certificate->kind];
    if (*place != NULL)
        return *place == certificate; /* a name may stand twice in one certificate */
    *place = certificate;
    return true;
}

static void set_index_names(struct certificate_set *set) {
    size_t count;
    struct name_entry *entries = sorted_entries(set, &count);
    const struct certificate *warned = NULL; /* one warning for a certificate is enough */
    set->names = xcalloc(count + 1, sizeof *set->names);
    for (size_t i = 0; i < count; i++) {
        const struct certificate *certificate = set->certificates[entries[i].place];
        if (i == 0 || strcmp(entries[i - 1].name, entries[i].name) != 0)
            set->names[set->name_count++].name = entries[i].name;
        struct certificate_choice *choice = &set->names[set->name_count - 1].choice;
        if (choice_add(choice, certificate) || warned == certificate)
            continue;
        warned = certificate;
        log_warn("%s and %s are both %s certificates for %s: the first one is used",
                 choice->of[certificate->kind]->file, certificate->file,
                 certificate_kind_name(certificate->kind), entries[i].name);
    }
    free(entries);
}

/* The first certificate, with those of other kinds for its first name. */
static void set_choose_default(struct certificate_set *set) {
    const struct certificate *first = set->certificates[0];
    const struct certificate_choice *others =
        first->name_count > 0 ? certificate_set_find(set, slice_from(first->names[0])) : NULL;
    if (others != NULL)
        set->fallback = *others;
    set->fallback.of[first->kind] = first;
}

static bool set_load(struct certificate_set *set, char *const *paths, char error[PEM_FILE_ERROR]) {
    for (; *paths != NULL; paths++)
        if (!set_load_path(set, *paths, error))
            return false;
    if (set->count == 0) /* all have expired: `error` names the last one */
        return false;
    set_index_names(set);
    set_choose_default(set);
    return true;
}

struct certificate_set *certificate_set_load(char *const *paths, char error[PEM_FILE_ERROR]) {
    struct certificate_set *set;
    ASSERT(paths[0] != NULL);
    ALLOC_OBJ(set, CERTIFICATE_SET_MAGIC);
    set->references = 1;
    if (!set_load(set, paths, error))
        certificate_set_release(&set);
    return set;
}

struct certificate_set *certificate_set_reference(struct certificate_set *set) {
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
    return set;
}

void certificate_set_release(struct certificate_set **setp) {
    struct certificate_set *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    if (atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < set->count; i++)
        certificate_free(&set->certificates[i]);
    free(set->certificates);
    free(set->names);
    FREE_OBJ(set);
}

static int compare_name(const void *key, const void *element) {
    const struct slice *name = key;
    const struct served_name *served = element;
    /* A client's name may hold a NUL, so that strncmp would stop too early. */
    size_t length = strlen(served->name);
    int order = memcmp(name->base, served->name, name->length < length ? name->length : length);
    return order != 0 ? order : (name->length > length) - (name->length < length);
}

static const struct certificate_choice *find_exactly(const struct certificate_set *set,
                                                     struct slice name) {
    const struct served_name *found =
        bsearch(&name, set->names, set->name_count, sizeof *set->names, compare_name);
    return found != NULL ? &found->choice : NULL;
}

/* The wildcard that stands for the first label of the name. */
static const struct certificate_choice *find_wildcard(const struct certificate_set *set,
                                                      struct slice name) {
    char wildcard[CERTIFICATE_NAME_MAX + 1];
    const char *dot = memchr(name.base, '.', name.length);
    if (dot == NULL || dot == name.base || name.length > CERTIFICATE_NAME_MAX)
        return NULL;
    size_t rest = name.length - (size_t)(dot - name.base);
    wildcard[0] = '*';
    memcpy(wildcard + 1, dot, rest);
    return find_exactly(set, slice_make(wildcard, rest + 1));
}

const struct certificate_choice *certificate_set_find(const struct certificate_set *set,
                                                      struct slice name) {
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    if (name.length == 0 || name.base[0] == '*')
        return NULL;
    const struct certificate_choice *choice = find_exactly(set, name);
    return choice != NULL ? choice : find_wildcard(set, name);
}

const struct certificate_choice *certificate_set_default(const struct certificate_set *set) {
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    return &set->fallback;
}

size_t certificate_set_count(const struct certificate_set *set) {
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    return set->count;
}

const struct certificate *certificate_set_at(const struct certificate_set *set, size_t index) {
    ASSERT(index < certificate_set_count(set));
    return set->certificates[index];
}

/* RFC 8422 §5.3: "the public key in the server's certificate MUST respect the client's choice of
 * elliptic curves", which clients make for TLS 1.2. */
static void warn_of_curve(const struct certificate *certificate) {
    char name[32];
    size_t length;
    if (certificate->kind != CERTIFICATE_ECDSA ||
        EVP_PKEY_get_group_name(certificate->key, name, sizeof name, &length) != 1)
        return;
    int curve = OBJ_sn2nid(name);
    if (curve != NID_X9_62_prime256v1 && curve != NID_secp384r1)
        log_warn(
            "%s (%s) has a key of the curve %s, which few clients take: browsers refuse it, and "
            "so do others with TLS 1.2; get a certificate for a key of P-256 or P-384",
            certificate->file, certificate_name(certificate), name);
}

void certificate_set_warn(const struct certificate_set *set) {
    int64_t now = (int64_t)time(NULL);
    CHECK_OBJ(set, CERTIFICATE_SET_MAGIC);
    for (size_t i = 0; i < set->count; i++) {
        const struct certificate *certificate = set->certificates[i];
        int64_t days = (certificate->expires - now) / DAY;
        warn_of_curve(certificate);
        if (certificate->expires <= now)
            log_warn("%s (%s) has expired: clients refuse it; renew it and reload",
                     certificate->file, certificate_name(certificate));
        else if (certificate->expires - now < WARN_BEFORE)
            log_warn("%s (%s) expires in %" PRId64 " days: renew it and reload", certificate->file,
                     certificate_name(certificate), days);
    }
}
