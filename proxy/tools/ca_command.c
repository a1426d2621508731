#include "tools/commands.h"

#include "base/assert.h"
#include "tls/authority.h"
#include "tls/certificate_text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <openssl/pem.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * The files of an authority. A file that exists is never overwritten. The key's file has mode 0600 from
 * the beginning. It belongs to `owner`, or, when root makes it and a user "retort" exists, to that user,
 * so that the proxy can read it. When a function returns true, the files are on disk; after false, a
 * file that it had begun is gone again.
 */

#define CA_FILES_CERTIFICATE "/etc/retort/ca.pem"
#define CA_FILES_KEY         "/etc/retort/ca.key"

enum { CA_FILES_ERROR = 700 };

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

/* Writes the certificate in PEM or DER. Path NULL: to stdout. */
static bool ca_files_export(const char *path, X509 *certificate, bool der,
                            char error[CA_FILES_ERROR]) {
    if (path == NULL)
        return (write_certificate_to(stdout, certificate, der) && fflush(stdout) == 0) ||
               ca_files_fail(error, "stdout", "can't be written");
    FILE *file = create_new(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, error);
    errno = 0;
    return file != NULL &&
           finish_new(file, path, write_certificate_to(file, certificate, der), error);
}

/* Owner NULL: as above. */
static bool ca_files_write(const char *certificate_path, const char *key_path, const char *owner,
                           const struct authority *authority, char error[CA_FILES_ERROR]) {
    if (!write_key(key_path, owner, authority->key, error))
        return false;
    if (ca_files_export(certificate_path, authority->certificate, false, error))
        return true;
    unlink(key_path);
    return false;
}

enum { EXIT_WRONG_USAGE = 2 };
enum { DAY = 24 * 3600, YEARS_DEFAULT = 10, YEARS_MOST = 30, NAME_MOST = 64 };

/* What the options say. */
struct ca_choices {
    const char *certificate, *key, *name, *owner;
    long years;
    bool der, hints, json;
};

static int ca_command_fail(const char *message) {
    fprintf(stderr, "retortctl: %s\n", message);
    return EXIT_FAILURE;
}

/* For programs. */
static void print_certificate_json(const struct ca_choices *choices, const X509 *certificate,
                                   const char *trouble) {
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT];
    char from[CERTIFICATE_TEXT_DATE], until[CERTIFICATE_TEXT_DATE];
    char *subject = certificate_text_name(X509_get_subject_name(certificate));
    certificate_text_fingerprint(certificate, fingerprint);
    certificate_text_date(certificate_text_beginning(certificate), from);
    certificate_text_date(certificate_text_expiry(certificate), until);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "certificate", choices->certificate, "key",
                  choices->key, "subject", subject, "from", from, "until", until, "sha256",
                  fingerprint, "usable", trouble == NULL);
    if (trouble != NULL)
        json_object_set_new(json, "error", json_string(trouble));
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
    free(subject);
}

static void print_certificate(const X509 *certificate) {
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT];
    char from[CERTIFICATE_TEXT_DATE], until[CERTIFICATE_TEXT_DATE];
    char *subject = certificate_text_name(X509_get_subject_name(certificate));
    char *issuer = certificate_text_name(X509_get_issuer_name(certificate));
    certificate_text_fingerprint(certificate, fingerprint);
    certificate_text_date(certificate_text_beginning(certificate), from);
    certificate_text_date(certificate_text_expiry(certificate), until);
    printf("subject      %s\n", subject);
    if (strcmp(subject, issuer) != 0)
        printf("issuer       %s\n", issuer);
    printf("valid        from %s to %s\n", from, until);
    printf("SHA-256      %s\n", fingerprint);
    free(subject);
    free(issuer);
}

/* "Retort CA of HOST 2026-11-22": people see it in lists of authorities. */
static void default_name(char name[NAME_MOST + 1], int64_t now) {
    char host[NAME_MOST + 1] = "", day[CERTIFICATE_TEXT_DATE];
    gethostname(host, sizeof host - 1);
    certificate_text_date(now, day);
    snprintf(name, NAME_MOST + 1, "Retort CA of %.35s %.10s", host[0] != '\0' ? host : "?", day);
}

static int create_authority(const struct ca_choices *choices) {
    char name[NAME_MOST + 1], error[CA_FILES_ERROR];
    int64_t now = time(NULL);
    default_name(name, now);
    struct authority *authority =
        authority_make(choices->name != NULL ? choices->name : name, "Retort", now - DAY,
                       now + choices->years * 365 * DAY);
    if (!ca_files_write(choices->certificate, choices->key, choices->owner, authority, error)) {
        authority_release(&authority);
        return ca_command_fail(error);
    }
    if (choices->json) {
        print_certificate_json(choices, authority->certificate, NULL);
        authority_release(&authority);
        return EXIT_SUCCESS;
    }
    printf("certificate  %s\nkey          %s\n", choices->certificate, choices->key);
    print_certificate(authority->certificate);
    printf("\nWrite this into retort.conf, and give the certificate to the clients (\"retortctl ca "
           "export --hints\"):\n\n"
           "authority { certificate = \"%s\"  key = \"%s\" }\n\n"
           "Whoever has the key can impersonate every server to these clients: give it to "
           "nobody.\n",
           choices->certificate, choices->key);
    authority_release(&authority);
    return EXIT_SUCCESS;
}

/* The first certificate of the file; NULL: after a message. */
static X509 *read_own_certificate(const struct ca_choices *choices) {
    char error[PEM_FILE_ERROR];
    struct pem_file file;
    if (!pem_file_read(&file, choices->certificate, error)) {
        ca_command_fail(error);
        return NULL;
    }
    struct stack_st_X509 *all = pem_file_certificates(&file, error);
    pem_file_release(&file);
    if (all == NULL) {
        ca_command_fail(error);
        return NULL;
    }
    X509 *first = sk_X509_shift(all);
    sk_X509_pop_free(all, X509_free);
    return first;
}

static int show_authority(const struct ca_choices *choices) {
    char error[PEM_FILE_ERROR];
    X509 *certificate = read_own_certificate(choices);
    if (certificate == NULL)
        return EXIT_FAILURE;
    struct authority *authority = authority_load(choices->certificate, choices->key, error);
    if (choices->json) {
        print_certificate_json(choices, certificate, authority == NULL ? error : NULL);
    } else {
        printf("certificate  %s\nkey          %s\n", choices->certificate, choices->key);
        print_certificate(certificate);
    }
    X509_free(certificate);
    fflush(stdout);
    if (authority == NULL)
        return ca_command_fail(error);
    if (!choices->json)
        puts("The two belong together, and Retort can use them.");
    authority_release(&authority);
    return EXIT_SUCCESS;
}

static void print_hints_json(void) {
    json_t *list = json_array();
    for (const struct authority_hint *hint = authority_hints; hint->system != NULL; hint++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "system", hint->system, "steps", hint->steps));
    json_dumpf(list, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(list);
}

static void print_hints(const char *file) {
    printf("Give the certificate to the clients as a file in PEM, here called retort-ca.crt%s%s. "
           "They\nneed no key.\n",
           file != NULL ? ". You have written it to " : "", file != NULL ? file : "");
    for (const struct authority_hint *hint = authority_hints; hint->system != NULL; hint++)
        printf("\n%s\n%s", hint->system, hint->steps);
}

/* {"certificate": "/etc/retort/ca.pem", "pem": "-----BEGIN..."}, or "der" in base64. */
static void print_export_json(const struct ca_choices *choices, X509 *certificate) {
    unsigned char *der = NULL;
    char *text;
    BIO *bio = BIO_new(BIO_s_mem());
    ASSERT(bio != NULL);
    if (choices->der) {
        int length = i2d_X509(certificate, &der);
        ASSERT(length > 0);
        unsigned char *base64 = xcalloc((size_t)length * 2 + 8, 1);
        EVP_EncodeBlock(base64, der, length);
        BIO_puts(bio, (char *)base64);
        free(base64);
        OPENSSL_free(der);
    } else {
        PEM_write_bio_X509(bio, certificate);
    }
    long length = BIO_get_mem_data(bio, &text);
    json_t *json = json_pack("{s:s, s:s%}", "certificate", choices->certificate,
                             choices->der ? "der" : "pem", text, (size_t)length);
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
    BIO_free(bio);
}

static int export_certificate(const struct ca_choices *choices, const char *path) {
    char error[CA_FILES_ERROR];
    X509 *certificate = read_own_certificate(choices);
    if (certificate == NULL)
        return EXIT_FAILURE;
    bool as_json = path == NULL && choices->json, good = true;
    if (as_json)
        print_export_json(choices, certificate);
    else
        good = ca_files_export(path, certificate, choices->der, error);
    X509_free(certificate);
    if (!good)
        return ca_command_fail(error);
    if (path != NULL && choices->json)
        print_hints_json();
    else if (path != NULL)
        print_hints(path);
    return EXIT_SUCCESS;
}

static bool years_are_good(struct ca_choices *choices, const char *text) {
    char *end;
    choices->years = strtol(text, &end, 10);
    return *end == '\0' && end != text && choices->years >= 1 && choices->years <= YEARS_MOST;
}

static bool name_is_good(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length <= NAME_MOST;
}

/* False: after a message. */
static bool read_choices(struct ca_choices *choices, const struct command_line *line) {
    const char *certificate = command_line_option(line, "certificate");
    const char *key = command_line_option(line, "key"), *years = command_line_option(line, "years");
    *choices = (struct ca_choices){
        .certificate = certificate != NULL ? certificate : CA_FILES_CERTIFICATE,
        .key = key != NULL ? key : CA_FILES_KEY,
        .name = command_line_option(line, "name"),
        .owner = command_line_option(line, "owner"),
        .years = YEARS_DEFAULT,
        .der = command_line_option(line, "der") != NULL,
        .hints = command_line_option(line, "hints") != NULL,
        .json = line->json,
    };
    if (years != NULL && !years_are_good(choices, years)) {
        fprintf(stderr, "retortctl: --years is a number from 1 to %d\n", YEARS_MOST);
        return false;
    }
    if (choices->name == NULL || name_is_good(choices->name))
        return true;
    fprintf(stderr, "retortctl: --name has 1 to %d bytes\n", NAME_MOST);
    return false;
}

static int run_export(const struct ca_choices *choices, const char *path) {
    if (choices->hints && path != NULL) {
        fputs("retortctl: --hints takes no file: write \"ca export FILE\", which prints them too\n",
              stderr);
        return EXIT_WRONG_USAGE;
    }
    if (!choices->hints)
        return export_certificate(choices, path);
    choices->json ? print_hints_json() : print_hints(NULL);
    return EXIT_SUCCESS;
}

int ca_command(const struct command_line *line) {
    struct ca_choices choices;
    const char *name = line->command->name;
    if (!read_choices(&choices, line))
        return EXIT_WRONG_USAGE;
    if (strcmp(name, "ca create") == 0)
        return create_authority(&choices);
    if (strcmp(name, "ca show") == 0)
        return show_authority(&choices);
    ASSERT(strcmp(name, "ca export") == 0);
    return run_export(&choices, line->words[0]);
}
