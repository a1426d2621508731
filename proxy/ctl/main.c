/*
 * retortctl: look into and steer a running retort, and the helper pools of retort-helperd. Exit
 * status: 0 for success, 1 for a failure (stderr says why), 2 for wrong usage.
 */
#include "base/version.h"
#include "ctl/access_command.h"
#include "ctl/adlist_command.h"
#include "ctl/answer.h"
#include "ctl/ca_command.h"
#include "ctl/cache_command.h"
#include "ctl/dns_command.h"
#include "ctl/helperd_client.h"
#include "ctl/http_call.h"
#include "ctl/icap_command.h"
#include "ctl/intercept_command.h"
#include "ctl/limits_command.h"
#include "ctl/show.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ADMIN_DEFAULT   "/run/retort/retort.sock"
#define HELPERD_DEFAULT "/run/retort/helperd.sock"

enum { EXIT_USAGE = 2 };

struct choices {
    const char *admin, *helperd;
    bool json;
};

struct command {
    const char *name, *method, *path;
    int (*show)(const struct choices *choices, const struct http_answer *answer);
    const char *help;
};

static int retortctl_complain(const char *message) {
    fprintf(stderr, "retortctl: %s\n", message);
    return EXIT_FAILURE;
}

static int retortctl_show_raw(const struct choices *choices, const struct http_answer *answer) {
    (void)choices;
    fwrite(answer->body, 1, answer->length, stdout);
    if (answer->length > 0 && answer->body[answer->length - 1] != '\n')
        putchar('\n');
    return EXIT_SUCCESS;
}

static int show_json(const struct http_answer *answer, void (*show)(FILE *out, json_t *json)) {
    json_t *json = answer_load(answer->body, answer->length);
    if (!json_is_object(json)) {
        json_decref(json);
        return retortctl_complain("the answer is not JSON: is this retort's admin.listen?");
    }
    show(stdout, json);
    json_decref(json);
    return EXIT_SUCCESS;
}

static int status_answer(const struct choices *choices, const struct http_answer *answer) {
    return choices->json ? retortctl_show_raw(choices, answer) : show_json(answer, show_status);
}

static int settings_answer(const struct choices *choices, const struct http_answer *answer) {
    return choices->json ? retortctl_show_raw(choices, answer) : show_json(answer, show_settings);
}

static int origins_answer(const struct choices *choices, const struct http_answer *answer) {
    return choices->json ? retortctl_show_raw(choices, answer) : show_json(answer, show_origins);
}

static int services_answer(const struct choices *choices, const struct http_answer *answer) {
    return choices->json ? retortctl_show_raw(choices, answer) : show_json(answer, show_services);
}

/* Prints a line for each change that the proxy could not apply. Returns their number. */
static size_t tell_of_left(const struct http_answer *answer) {
    size_t i;
    json_t *json = json_loadb(answer->body, answer->length, 0, NULL), *reason;
    json_t *left = json_object_get(json, "not_applied");
    json_array_foreach(left, i, reason)
        fprintf(stderr, "retortctl: not applied: %s\n", json_string_value(reason));
    size_t count = json_array_size(left);
    json_decref(json);
    return count;
}

static int reload_answer(const struct choices *choices, const struct http_answer *answer) {
    bool whole = tell_of_left(answer) == 0;
    if (choices->json)
        retortctl_show_raw(choices, answer);
    else
        puts(whole ? "the configuration was read again and is in use"
                   : "the configuration was read again, and its other changes are in use");
    return whole ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int drain_answer(const struct choices *choices, const struct http_answer *answer) {
    if (choices->json)
        return retortctl_show_raw(choices, answer);
    puts("retort accepts no more connections and exits when the open transactions have finished");
    return EXIT_SUCCESS;
}

static const struct command commands[] = {
    {"status", "GET", "/status", status_answer,
     "show the state, the cache, ICAP services and counters"},
    {"metrics", "GET", "/metrics", retortctl_show_raw,
     "print all metrics in the format of Prometheus"},
    {"origins", "GET", "/origins", origins_answer,
     "show groups of origins and the state of their servers"},
    {"services", "GET", "/services", services_answer,
     "show ICAP services with endpoints, counts and times"},
    {"settings", "GET", "/settings", settings_answer, "print the settings in use, with defaults"},
    {"reload", "POST", "/reload", reload_answer, "read the configuration file again"},
    {"drain", "POST", "/drain", drain_answer,
     "accept no more connections, finish open transactions and exit"},
};

static void retortctl_usage(FILE *out) {
    fputs("Usage: retortctl [-s WHERE] [--json] COMMAND\n"
          "       retortctl [-s WHERE] [--json] cache COMMAND [ARGUMENTS]\n"
          "       retortctl [-s WHERE] [--json] icap COMMAND [ARGUMENTS]\n"
          "       retortctl [-s WHERE] [--json] access [test URL ...]\n"
          "       retortctl [-s WHERE] [--json] intercept [clear ...]\n"
          "       retortctl [-s WHERE] [--json] limits [show|clear] [OPTIONS]\n"
          "       retortctl [-s WHERE] [--json] dns [show|clear] [NAME]\n"
          "       retortctl [-H PATH] helpers [ARGUMENTS]\n"
          "       retortctl ca create|show|export [OPTIONS]\n"
          "       retortctl adlist test|check LIST... [OPTIONS]\n\n",
          out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("  services bump NAME  mark all earlier results of a service as outdated\n", out);
    cache_command_help(out);
    icap_command_help(out);
    ca_command_help(out);
    intercept_command_help(out);
    access_command_help(out);
    limits_command_help(out);
    dns_command_help(out);
    fputs("  adlist     what lists of the ad remover do with URLs, and what is in them\n"
          "  helpers    pools of helper processes\n"
          "  helpers top [SECONDS [TIMES]] | helpers renice POOL NICE | helpers resize POOL COUNT "
          "| helpers reload\n\n"
          "  -s, --socket WHERE    retort's admin.listen: a path or ADDRESS:PORT\n"
          "                        (else $RETORT_ADMIN, else " ADMIN_DEFAULT ")\n"
          "  -H, --helperd PATH    the socket of retort-helperd\n"
          "                        (else $RETORT_HELPERD, else " HELPERD_DEFAULT ")\n"
          "  -t, --token-file FILE the file with a token for the admin plane\n"
          "                        (else $RETORT_TOKEN is the token; a Unix socket needs none)\n"
          "  -j, --json            the answer as it came\n"
          "  -h, --help\n"
          "  -V, --version\n",
          out);
}

static int retortctl_refused(const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    size_t i;
    json_t *line, *errors = json_object_get(json, "errors");
    json_array_foreach(errors, i, line) fprintf(stderr, "retortctl: %s\n", json_string_value(line));
    if (json_array_size(errors) == 0 && reason != NULL)
        fprintf(stderr, "retortctl: %s\n", reason);
    if (reason == NULL)
        fprintf(stderr, "retortctl: retort answered with status %u\n", answer->status);
    json_decref(json);
    return EXIT_FAILURE;
}

static int run_command(const struct choices *choices, const struct command *command) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call(&answer, choices->admin, command->method, command->path, error))
        return retortctl_complain(error);
    int status =
        answer.status == 200 ? command->show(choices, &answer) : retortctl_refused(&answer);
    http_answer_release(&answer);
    return status;
}

static int bump_answer(const struct choices *choices, const struct http_answer *answer) {
    if (choices->json)
        return retortctl_show_raw(choices, answer);
    puts("all earlier results of the service are outdated and are made again when they are needed");
    return EXIT_SUCCESS;
}

/* services bump NAME */
static int run_bump(const struct choices *choices, int argc, char **argv) {
    enum { NAME_MAX_LENGTH = 200 };
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    char path[NAME_MAX_LENGTH + 32];
    if (argc != 3) {
        fputs("retortctl: write \"services bump NAME\"\n", stderr);
        return EXIT_USAGE;
    }
    if (strlen(argv[2]) > NAME_MAX_LENGTH || argv[2][strspn(argv[2], known)] != '\0')
        return retortctl_complain(
            "there is no icap_service with this name; see \"retortctl services\"");
    snprintf(path, sizeof path, "/services/bump?name=%s", argv[2]);
    const struct command command = {"services", "POST", path, bump_answer, NULL};
    return run_command(choices, &command);
}

static int run_helpers(const struct choices *choices, int argc, char **argv) {
    static char json[] = "--json";
    char *with_json[] = {argv[0], json, NULL};
    if (choices->json && argc == 1)
        return helperd_client_command(choices->helperd, 2, with_json);
    return helperd_client_command(choices->helperd, argc, argv);
}

static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int retortctl_run(const struct choices *choices, int argc, char **argv) {
    if (argc > 0 && strcmp(argv[0], "adlist") == 0)
        return adlist_command(argv);
    if (asks_for_help(argc, argv)) {
        retortctl_usage(stdout);
        return EXIT_SUCCESS;
    }
    if (argc > 0 && strcmp(argv[0], "ca") == 0)
        return ca_command(argc, argv);
    if (argc > 0 && strcmp(argv[0], "helpers") == 0)
        return run_helpers(choices, argc, argv);
    if (argc > 0 && strcmp(argv[0], "cache") == 0)
        return cache_command(choices->admin, choices->json, argc, argv);
    if (argc > 0 && strcmp(argv[0], "access") == 0)
        return access_command(choices->admin, choices->json, argc, argv);
    if (argc > 0 && strcmp(argv[0], "intercept") == 0)
        return intercept_command(choices->admin, choices->json, argc, argv);
    if (argc > 0 && strcmp(argv[0], "limits") == 0)
        return limits_command(choices->admin, choices->json, argc, argv);
    if (argc > 0 && strcmp(argv[0], "dns") == 0)
        return dns_command(choices->admin, choices->json, argc, argv);
    if (argc > 0 && strcmp(argv[0], "icap") == 0)
        return icap_command(choices->admin, choices->json, argc, argv);
    if (argc > 1 && strcmp(argv[0], "services") == 0 && strcmp(argv[1], "bump") == 0)
        return run_bump(choices, argc, argv);
    for (size_t i = 0; argc > 0 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        struct choices these = *choices;
        for (int j = 1; j < argc; j++) {
            if (strcmp(argv[j], "--json") != 0 && strcmp(argv[j], "-j") != 0) {
                fprintf(stderr, "retortctl: %s takes no argument \"%s\"; see retortctl --help\n",
                        argv[0], argv[j]);
                return EXIT_USAGE;
            }
            these.json = true;
        }
        return run_command(&these, &commands[i]);
    }
    if (argc > 0)
        fprintf(stderr, "retortctl: there is no command \"%s\"; see retortctl --help\n", argv[0]);
    else
        retortctl_usage(stderr);
    return EXIT_USAGE;
}

static const char *from_environment(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* The first line of the file is the token; a token among the arguments could be seen by all users
 * of the machine. */
static bool take_token_file(const char *path) {
    char line[1024] = "";
    FILE *file = fopen(path, "re");
    bool good = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (!good)
        fprintf(stderr, "retortctl: %s: %s\n", path,
                file == NULL ? strerror(errno) : "is empty; its first line must be a token");
    if (file != NULL)
        fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    return good && setenv(HTTP_CALL_TOKEN, line, 1) == 0;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"helperd", required_argument, NULL, 'H'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"token-file", required_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct choices choices = {
        .admin = from_environment("RETORT_ADMIN", ADMIN_DEFAULT),
        .helperd = from_environment("RETORT_HELPERD", HELPERD_DEFAULT),
    };
    int letter;
    /* '+': arguments after the command belong to the command. */
    while ((letter = getopt_long(argc, argv, "+s:H:t:jhV", options, NULL)) != -1) {
        switch (letter) {
        case 's': choices.admin = optarg; break;
        case 'H': choices.helperd = optarg; break;
        case 't':
            if (!take_token_file(optarg))
                return EXIT_FAILURE;
            break;
        case 'j': choices.json = true; break;
        case 'h': retortctl_usage(stdout); return EXIT_SUCCESS;
        case 'V': version_print("retortctl", NULL); return EXIT_SUCCESS;
        default: fputs("see retortctl --help\n", stderr); return EXIT_USAGE;
        }
    }
    return retortctl_run(&choices, argc - optind, argv + optind);
}
