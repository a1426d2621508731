#include "ctl/ca_command.h"

#include "ctl/ca_files.h"
#include "tls/authority.h"
#include "tls/authority_hints.h"
#include "tls/certificate_text.h"

#include <getopt.h>
#include <jansson.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static int export_certificate(const struct ca_choices *choices, const char *path) {
    char error[CA_FILES_ERROR];
    X509 *certificate = read_own_certificate(choices);
    if (certificate == NULL)
        return EXIT_FAILURE;
    bool good = ca_files_export(path, certificate, choices->der, error);
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
static bool read_choices(struct ca_choices *choices, int argc, char **argv) {
    static const struct option options[] = {
        {"certificate", required_argument, NULL, 'c'},
        {"key", required_argument, NULL, 'k'},
        {"name", required_argument, NULL, 'n'},
        {"years", required_argument, NULL, 'y'},
        {"owner", required_argument, NULL, 'o'},
        {"der", no_argument, NULL, 'd'},
        {"hints", no_argument, NULL, 'i'},
        {NULL, 0, NULL, 0},
    };
    int letter;
    *choices = (struct ca_choices){
        .certificate = CA_FILES_CERTIFICATE, .key = CA_FILES_KEY, .years = YEARS_DEFAULT};
    optind = 0; /* getopt begins anew */
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (letter) {
        case 'c': choices->certificate = optarg; break;
        case 'k': choices->key = optarg; break;
        case 'n': choices->name = optarg; break;
        case 'o': choices->owner = optarg; break;
        case 'd': choices->der = true; break;
        case 'i': choices->hints = true; break;
        case 'y':
            if (years_are_good(choices, optarg))
                break;
            fprintf(stderr, "retortctl: --years is a number from 1 to %d\n", YEARS_MOST);
            return false;
        default: fputs("see retortctl --help\n", stderr); return false;
        }
    }
    if (choices->name != NULL && !name_is_good(choices->name)) {
        fprintf(stderr, "retortctl: --name has 1 to %d bytes\n", NAME_MOST);
        return false;
    }
    return true;
}

int ca_command(bool json, int argc, char **argv) {
    struct ca_choices choices;
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc > 1 && !read_choices(&choices, argc - 1, argv + 1))
        return EXIT_WRONG_USAGE;
    choices.json = json;
    const char *argument = argc > 1 ? argv[1 + optind] : NULL;
    if (strcmp(verb, "create") == 0 && argument == NULL)
        return create_authority(&choices);
    if (strcmp(verb, "show") == 0 && argument == NULL)
        return show_authority(&choices);
    if (strcmp(verb, "export") == 0 && choices.hints && argument == NULL) {
        choices.json ? print_hints_json() : print_hints(NULL);
        return EXIT_SUCCESS;
    }
    if (strcmp(verb, "export") == 0 && (argument == NULL || argv[2 + optind] == NULL))
        return export_certificate(&choices, argument);
    fputs("retortctl: write \"ca create\", \"ca show\" or \"ca export [FILE]\"; see retortctl "
          "--help\n",
          stderr);
    return EXIT_WRONG_USAGE;
}
