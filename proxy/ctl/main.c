/*
 * retortctl: look into and steer a running retort, and the helper pools of retort-helperd. Exit
 * status: 0 for success, 1 for a failure (stderr says why), 2 for wrong usage.
 */
#include "base/assert.h"
#include "base/version.h"
#include "ctl/access_command.h"
#include "ctl/adlist_command.h"
#include "ctl/answer.h"
#include "ctl/ca_command.h"
#include "ctl/cache_command.h"
#include "ctl/command.h"
#include "ctl/dns_command.h"
#include "ctl/helperd_client.h"
#include "ctl/http_call.h"
#include "ctl/icap_command.h"
#include "ctl/intercept_command.h"
#include "ctl/limits_command.h"
#include "ctl/metrics_json.h"
#include "ctl/show.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

struct choices {
    const char *admin, *helperd;
    bool json;
};

/* A command that is one request to the admin plane. */
struct simple {
    const char *name, *method, *path;
    int (*show)(const struct choices *choices, const struct http_answer *answer);
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

static int metrics_answer(const struct choices *choices, const struct http_answer *answer) {
    if (!choices->json)
        return retortctl_show_raw(choices, answer);
    json_t *json = metrics_json(answer->body);
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
    return EXIT_SUCCESS;
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

static const struct simple simples[] = {
    {"status", "GET", "/status", status_answer},
    {"metrics", "GET", "/metrics", metrics_answer},
    {"origins", "GET", "/origins", origins_answer},
    {"services", "GET", "/services", services_answer},
    {"settings", "GET", "/settings", settings_answer},
    {"reload", "POST", "/reload", reload_answer},
    {"drain", "POST", "/drain", drain_answer},
};

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

static int run_simple(const struct choices *choices, const struct simple *simple) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call(&answer, choices->admin, simple->method, simple->path, error))
        return retortctl_complain(error);
    int status = answer.status == 200 ? simple->show(choices, &answer) : retortctl_refused(&answer);
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
static int run_bump(const struct choices *choices, char **argv) {
    enum { NAME_MAX_LENGTH = 200 };
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    char path[NAME_MAX_LENGTH + 32];
    if (strlen(argv[2]) > NAME_MAX_LENGTH || argv[2][strspn(argv[2], known)] != '\0')
        return retortctl_complain(
            "there is no icap_service with this name; see \"retortctl services\"");
    snprintf(path, sizeof path, "/services/bump?name=%s", argv[2]);
    const struct simple simple = {"services", "POST", path, bump_answer};
    return run_simple(choices, &simple);
}

static int run_completion(const char *shell) {
    if (command_completion(stdout, shell))
        return EXIT_SUCCESS;
    fprintf(stderr, "retortctl: there is no completion for \"%s\": write bash, zsh or fish\n",
            shell);
    return EXIT_USAGE;
}

static int retortctl_run(const struct choices *choices, int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(const char *admin, bool json, int argc, char **argv);
    } rooms[] = {
        {"access", access_command}, {"cache", cache_command},   {"dns", dns_command},
        {"icap", icap_command},     {"limits", limits_command}, {"intercept", intercept_command},
    };
    if (strcmp(argv[0], "adlist") == 0)
        return adlist_command(argv);
    if (strcmp(argv[0], "ca") == 0)
        return ca_command(choices->json, argc, argv);
    if (strcmp(argv[0], "completion") == 0)
        return run_completion(argv[1]);
    if (strcmp(argv[0], "helpers") == 0)
        return helperd_client_command(choices->helperd, choices->json, argc, argv);
    if (strcmp(argv[0], "services") == 0 && argc == 3)
        return run_bump(choices, argv);
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (strcmp(argv[0], rooms[i].name) == 0)
            return rooms[i].run(choices->admin, choices->json, argc, argv);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        if (strcmp(argv[0], simples[i].name) == 0)
            return run_simple(choices, &simples[i]);
    ASSERT(!"a command of the table has no function");
    return EXIT_FAILURE;
}

/* What stands behind the options of the whole program. */
static int run_words(struct choices *choices, int argc, char **argv) {
    struct command_line line;
    int status = EXIT_USAGE;
    if (!command_line_read(&line, argc, argv)) {
        command_line_release(&line);
        return EXIT_USAGE;
    }
    choices->json = choices->json || line.json;
    if (line.help)
        status = EXIT_SUCCESS;
    if (line.help || line.command == NULL)
        command_help(line.help ? stdout : stderr, line.command);
    else
        status = retortctl_run(choices, line.argc, line.argv);
    command_line_release(&line);
    return status;
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
        {"socket", required_argument, NULL, 's'}, {"helperd", required_argument, NULL, 'H'},
        {"json", no_argument, NULL, 'j'},         {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},      {"token-file", required_argument, NULL, 't'},
        {"print-manual", no_argument, NULL, 'M'}, {NULL, 0, NULL, 0},
    };
    struct choices choices = {
        .admin = from_environment("RETORT_ADMIN", COMMAND_ADMIN),
        .helperd = from_environment("RETORT_HELPERD", COMMAND_HELPERD),
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
        case 'h': command_help(stdout, NULL); return EXIT_SUCCESS;
        case 'M': command_manual(stdout); return EXIT_SUCCESS;
        case 'V': version_print("retortctl", NULL); return EXIT_SUCCESS;
        default: fputs("see retortctl --help\n", stderr); return EXIT_USAGE;
        }
    }
    return run_words(&choices, argc - optind, argv + optind);
}
