/*
 * retortctl: look into and steer a running retort, and the helper pools of retort-helperd. Exit
 * status: 0 for success, 1 for a failure (stderr says why), 2 for wrong usage.
 */
#include "base/assert.h"
#include "base/version.h"
#include "ctl/access_command.h"
#include "ctl/adlist_command.h"
#include "ctl/admin_page.h"
#include "ctl/ca_command.h"
#include "ctl/cache_command.h"
#include "ctl/call_wire.h"
#include "ctl/command.h"
#include "ctl/dns_command.h"
#include "ctl/helperd_client.h"
#include "ctl/http_call.h"
#include "ctl/icap_command.h"
#include "ctl/intercept_command.h"
#include "ctl/limits_command.h"
#include "ctl/metrics_json.h"
#include "ctl/page_command.h"
#include "ctl/services_command.h"
#include "ctl/settings_command.h"
#include "ctl/show.h"
#include "ctl/tail_command.h"
#include "ctl/top_command.h"

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

static int with_show(void (*show)(FILE *out, json_t *json), const json_t *answer) {
    show(stdout, (json_t *)answer);
    return EXIT_SUCCESS;
}

static int status_answer(const json_t *answer) {
    return with_show(show_status, answer);
}

static int settings_answer(const json_t *answer) {
    return with_show(show_settings, answer);
}

static int origins_answer(const json_t *answer) {
    return with_show(show_origins, answer);
}

static int services_answer(const json_t *answer) {
    return with_show(show_services, answer);
}

static int drain_answer(const json_t *answer) {
    (void)answer;
    puts("retort accepts no more connections and exits when the open transactions have finished");
    return EXIT_SUCCESS;
}

static int bump_answer(const json_t *answer) {
    (void)answer;
    puts("all earlier results of the service are outdated and are made again when they are needed");
    return EXIT_SUCCESS;
}

/* A command that is one request without arguments. */
static const struct simple {
    const char *name;
    struct admin_page page;
} simples[] = {
    {"status", {.method = "GET", .path = "/status", .show = status_answer}},
    {"origins", {.method = "GET", .path = "/origins", .show = origins_answer}},
    {"services", {.method = "GET", .path = "/services", .show = services_answer}},
    {"settings", {.method = "GET", .path = "/settings", .show = settings_answer}},
    {"drain", {.method = "POST", .path = "/drain", .show = drain_answer}},
};

/* services bump NAME */
static int run_bump(const struct choices *choices, const struct command_line *line) {
    char *path = admin_page_path("/services/bump?", "name", line->words[0], NULL);
    const struct admin_page page = {.method = "POST", .path = path, .show = bump_answer};
    int status = admin_page_ask(choices->admin, line->json, &page);
    free(path);
    return status;
}

static void print_metrics_json(const struct http_answer *answer) {
    json_t *json = metrics_json(answer->body);
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}

/* The only page that is no JSON. */
static int run_metrics(const struct choices *choices, const struct command_line *line) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    int status = EXIT_SUCCESS;
    if (!http_call(&answer, choices->admin, "GET", "/metrics", error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    if (answer.status != 200)
        status = admin_page_refused(&answer);
    else if (line->json)
        print_metrics_json(&answer);
    else
        admin_page_print(&answer);
    http_answer_release(&answer);
    return status;
}

static int run_completion(const char *shell) {
    if (command_completion(stdout, shell))
        return EXIT_SUCCESS;
    fprintf(stderr, "retortctl: there is no completion for \"%s\": write bash, zsh or fish\n",
            shell);
    return EXIT_USAGE;
}

/* The commands that take what the user wrote. The first word says which. */
static const struct room {
    const char *name;
    int (*run)(const char *admin, const struct command_line *line);
} rooms[] = {
    {"access", access_command}, {"cache", cache_command},
    {"icap", icap_command},     {"config", settings_command},
    {"diff", settings_command}, {"dns", dns_command},
    {"get", settings_command},  {"intercept", intercept_command},
    {"limits", limits_command}, {"reload", settings_command},
    {"set", settings_command},  {"unset", settings_command},
    {"tail", tail_command},     {"top", top_command},
};

static int retortctl_run(const struct choices *choices, const struct command_line *line) {
    char **argv = line->argv;
    const char *name = line->command->name;
    if (strcmp(argv[0], "adlist") == 0)
        return adlist_command(line);
    if (strcmp(argv[0], "ca") == 0)
        return ca_command(line);
    if (strcmp(name, "logs top") == 0)
        return logs_top_command(line);
    if (strcmp(name, "completion") == 0)
        return run_completion(line->words[0]);
    if (strcmp(argv[0], "helpers") == 0)
        return helperd_client_command(choices->helperd, line);
    if (strcmp(argv[0], "page") == 0)
        return page_command(choices->admin, line->json);
    if (strcmp(name, "metrics") == 0)
        return run_metrics(choices, line);
    if (strcmp(name, "services bump") == 0)
        return run_bump(choices, line);
    if (strcmp(name, "services record") == 0)
        return icap_command(choices->admin, line);
    if (strncmp(name, "services ", strlen("services ")) == 0)
        return services_command(choices->admin, line);
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (strcmp(argv[0], rooms[i].name) == 0)
            return rooms[i].run(choices->admin, line);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        if (strcmp(name, simples[i].name) == 0)
            return admin_page_ask(choices->admin, line->json, &simples[i].page);
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
    line.json = line.json || choices->json;
    if (line.help)
        status = EXIT_SUCCESS;
    if (line.help || line.command == NULL)
        command_help(line.help ? stdout : stderr, line.command);
    else
        status = retortctl_run(choices, &line);
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
                file == NULL || ferror(file) ? strerror(errno)
                                             : "is empty; its first line must be a token");
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
        {"print-manual", no_argument, NULL, 'M'},
        {"address", required_argument, NULL, 's'},
        {"ca-file", required_argument, NULL, 'c'},
        {"certificate", required_argument, NULL, 'C'},
        {"cert", required_argument, NULL, 'C'},
        {"key", required_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
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
        case 'c': setenv(CALL_WIRE_CA, optarg, 1); break;
        case 'C': setenv(CALL_WIRE_CERTIFICATE, optarg, 1); break;
        case 'k': setenv(CALL_WIRE_KEY, optarg, 1); break;
        case 'j': choices.json = true; break;
        case 'h': command_help(stdout, NULL); return EXIT_SUCCESS;
        case 'M': command_manual(stdout); return EXIT_SUCCESS;
        case 'V': version_print("retortctl", NULL); return EXIT_SUCCESS;
        default: fputs("see retortctl --help\n", stderr); return EXIT_USAGE;
        }
    }
    return run_words(&choices, argc - optind, argv + optind);
}
