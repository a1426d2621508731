/*
 * retortctl: look into and steer a running retort, and the helper pools of retort-helperd. Exit
 * status: 0 for success, 1 for a failure (stderr says why), 2 for wrong usage.
 */
#include "base/assert.h"
#include "base/version.h"
#include "tools/admin_page.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/http_call.h"
#include "tools/icap_command.h"
#include "tools/transfer.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Commands that other programs carry out: what needs the code of services, of the ICAP client or of
 * logs, and no proxy. The program gets the options and arguments as they were checked, and no word of
 * the command.
 */

static const struct other_program {
    const char *command;      /* its name, or the first word */
    const char *name, *built; /* in the folder of retortctl, in a build tree */
    const char *with;         /* what it is installed with */
} programs[] = {
    {"adlist", "retort-adlist", "../icap-services/retort-adlist", "Retort's services"},
    {"icap replay", "retort-icap-replay", "retort-icap-replay", "retortctl"},
    {"logs top", "retort-logs", "retort-logs", "retortctl"},
};

static const struct other_program *program_of(const struct command_line *line) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].command, line->command->name) == 0 ||
            strcmp(programs[i].command, line->argv[0]) == 0)
            return &programs[i];
    return NULL;
}

static bool other_program_has(const struct command_line *line) {
    return program_of(line) != NULL;
}

/* The words for the program, which gets --json as an option. The caller frees the list. */
static char **program_words(const struct other_program *program, const struct command_line *line) {
    static char json[] = "--json", end_of_options[] = "--";
    char **words = xcalloc((size_t)line->argc + 4, sizeof *words), **to = words;
    *to++ = (char *)(uintptr_t)program->name;
    if (line->json)
        *to++ = json;
    for (char **word = line->argv + 1 + (strchr(program->command, ' ') != NULL); *word != NULL;
         word++) {
        if (word == line->words)
            *to++ = end_of_options;
        *to++ = *word;
    }
    return words;
}

/* Its exit status after a failure. */
static int other_program_run(const struct command_line *line) {
    const struct other_program *program = program_of(line);
    char path[PATH_MAX], **words = program_words(program, line);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (slash != NULL) {
        snprintf(slash + 1, (size_t)(path + sizeof path - slash - 1), "%s", program->built);
        execv(path, words);
    }
    snprintf(path, sizeof path, HELPER_DIR "/%s", program->name);
    execv(path, words);
    free(words);
    fprintf(stderr, "retortctl: %s: %s; it is installed with %s\n", path, strerror(errno),
            program->with);
    return EXIT_FAILURE;
}

enum { EXIT_USAGE = 2 };

struct choices {
    const char *admin, *helperd;
    bool json;
};

static int icap_record_command(const char *admin, const struct command_line *line) {
    return icap_command(admin, line, icap_record);
}

static int icap_show_command(const char *admin, const struct command_line *line) {
    return icap_command(admin, line, icap_show);
}

static int run_completion(const char *shell) {
    if (command_completion(stdout, shell))
        return EXIT_SUCCESS;
    fprintf(stderr, "retortctl: there is no completion for \"%s\": write bash, zsh or fish\n",
            shell);
    return EXIT_USAGE;
}

/* Commands of retortctl's own, and those that do more than to ask for their page. The whole name says which, or its first word. */
static const struct room {
    const char *name;
    int (*run)(const char *admin, const struct command_line *line);
} rooms[] = {
    {"access test", words_command_access_test},
    {"cache", cache_command},
    {"config schema", words_command_config_schema},
    {"config show", words_command_config_show},
    {"dns clear", words_command_dns_clear},
    {"icap record", icap_record_command},
    {"icap show", icap_show_command},
    {"intercept clear", words_command_intercept_clear},
    {"services record", icap_record_command},
    {"set", words_command_set},
    {"tail", tail_command},
    {"top", top_command},
    {"unset", words_command_unset},
};

static int retortctl_run(const struct choices *choices, const struct command_line *line) {
    char **argv = line->argv;
    const char *name = line->command->name;
    if (other_program_has(line))
        return other_program_run(line);
    if (strcmp(argv[0], "ca") == 0)
        return ca_command(line);
    if (strcmp(name, "completion") == 0)
        return run_completion(line->words[0]);
    if (strcmp(argv[0], "helpers") == 0)
        return helperd_client_command(choices->helperd, line);
    if (strcmp(argv[0], "page") == 0)
        return page_command(choices->admin, line->json);
    if (strcmp(name, "metrics") == 0 && line->json)
        return metrics_json_command(choices->admin);
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (strcmp(name, rooms[i].name) == 0 || strcmp(argv[0], rooms[i].name) == 0)
            return rooms[i].run(choices->admin, line);
    ASSERT(line->command->path != NULL);
    return admin_page_command(choices->admin, line);
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
        case 'c': setenv(TRANSFER_CA, optarg, 1); break;
        case 'C': setenv(TRANSFER_CERTIFICATE, optarg, 1); break;
        case 'k': setenv(TRANSFER_KEY, optarg, 1); break;
        case 'j': choices.json = true; break;
        case 'h': command_help(stdout, NULL); return EXIT_SUCCESS;
        case 'M': command_manual(stdout); return EXIT_SUCCESS;
        case 'V': version_print("retortctl", NULL); return EXIT_SUCCESS;
        default: fputs("see retortctl --help\n", stderr); return EXIT_USAGE;
        }
    }
    return run_words(&choices, argc - optind, argv + optind);
}
