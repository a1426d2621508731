#include "service-test/options.h"

#include "base/assert.h"
#include "base/slice.h"
#include "base/version.h"

#include <getopt.h>
#include <string.h>

struct tester_option {
    const char *name, *value, *text;
    char letter;
};

#define TESTER_OPTION(name, letter, value, text) {name, value, text, letter},
static const struct tester_option tester_option_table[] = {
#include "service-test/options.def"
    {NULL, NULL, NULL, 0}};
#undef TESTER_OPTION

enum { TESTER_OPTIONS = 17, COMPLETION = 1000, WORKER, TEXT_COLUMN = 30 };
_Static_assert(sizeof tester_option_table / sizeof *tester_option_table == TESTER_OPTIONS + 1,
               "TESTER_OPTIONS is the number of rows in options.def");

static void put_option(FILE *out, const struct tester_option *option) {
    int used = option->letter != 0 ? fprintf(out, "  -%c, --%s", option->letter, option->name)
                                   : fprintf(out, "      --%s", option->name);
    if (option->value != NULL)
        used += fprintf(out, " %s", option->value);
    fprintf(out, "%*s%s\n", used < TEXT_COLUMN ? TEXT_COLUMN - used : 1, "", option->text);
}

static _Noreturn void tester_usage(FILE *out, int status) {
    fprintf(
        out,
        "usage: retort-service-test [OPTIONS] MODULE [FILE...]\n"
        "Runs a module of a service against messages, each in many ways, and says where results\n"
        "differ and which promises of the service interface are broken.\n"
        "  MODULE   NAME.so or srv_NAME.so\n"
        "  FILE     a recording (retortctl icap record), or a text with an HTTP request, a\n"
        "           response or both; without files some messages of its own are used\n");
    for (const struct tester_option *option = tester_option_table; option->name != NULL; option++)
        put_option(out, option);
    fprintf(out, "Exit status: 0 all promises were kept, 1 some were not, 2 nothing could be "
                 "tested.\n");
    exit(status);
}

static _Noreturn void tester_complain(const char *option, const char *what) {
    fprintf(stderr, "retort-service-test: --%s: %s; see --help\n", option, what);
    exit(TESTER_NOT_RUN);
}

static uint64_t number_in(const char *option, uint64_t low, uint64_t high) {
    uint64_t value;
    char text[100];
    if (slice_to_uint64(slice_from(optarg), &value) && value >= low && value <= high)
        return value;
    snprintf(text, sizeof text, "give it a number from %llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    tester_complain(option, text);
}

static void append_text(char ***list, unsigned *count, char *text) {
    *list = xrealloc(*list, (*count + 1) * sizeof **list);
    (*list)[(*count)++] = text;
}

static bool takes_file(const struct tester_option *option) {
    return option->value != NULL && strcmp(option->value, "PROGRAM") == 0;
}

static bool takes_word(const struct tester_option *option) {
    return option->value != NULL && strchr(option->value, '|') != NULL;
}

static void put_value_words(FILE *out, const char *value) {
    for (; *value != '\0'; value++)
        fputc(*value == '|' ? ' ' : *value, out);
}

#define EACH_OPTION(option)                                                                        \
    const struct tester_option *option = tester_option_table;                                      \
    option->name != NULL;                                                                          \
    option++

static void complete_bash(FILE *out) {
    fprintf(
        out,
        "# bash completion of retort-service-test. Printed by \"retort-service-test --completion "
        "bash\".\n"
        "_retort_service_test() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    case $before in\n");
    for (EACH_OPTION(option)) {
        if (option->value == NULL || takes_file(option))
            continue;
        fprintf(out, "    --%s", option->name);
        if (option->letter != 0)
            fprintf(out, "|-%c", option->letter);
        fprintf(out, ") COMPREPLY=(");
        if (takes_word(option)) {
            fprintf(out, "$(compgen -W \"");
            put_value_words(out, option->value);
            fprintf(out, "\" -- \"$word\")");
        }
        fprintf(out, "); return ;;\n");
    }
    fprintf(out, "    esac\n"
                 "    if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"");
    for (EACH_OPTION(option))
        fprintf(out, "--%s ", option->name);
    fprintf(out, "\" -- \"$word\"))\n"
                 "    else COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
                 "}\n"
                 "complete -o filenames -F _retort_service_test retort-service-test\n");
}

/* In zsh's quotes, where a bracket and a colon mean something. */
static void put_zsh_text(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("[]:\\", *text) != NULL)
            fputc('\\', out);
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    }
}

static void complete_zsh(FILE *out) {
    fprintf(out, "#compdef retort-service-test\n"
                 "# zsh completion. Printed by \"retort-service-test --completion zsh\".\n"
                 "_arguments -s \\\n");
    for (EACH_OPTION(option)) {
        bool many = strcmp(option->name, "set") == 0 || strcmp(option->name, "helper") == 0;
        fprintf(out, "    '%s--%s[", many ? "*" : "", option->name);
        put_zsh_text(out, option->text);
        fputc(']', out);
        if (takes_file(option))
            fprintf(out, ":program:_files");
        else if (takes_word(option)) {
            fprintf(out, ":shell:(");
            put_value_words(out, option->value);
            fputc(')', out);
        } else if (option->value != NULL)
            fprintf(out, ":value: ");
        fprintf(out, "' \\\n");
    }
    fprintf(out, "    ':module:_files -g \"*.so\"' '*:file:_files'\n");
}

static void complete_fish(FILE *out) {
    fprintf(out, "# fish completion. Printed by \"retort-service-test --completion fish\".\n");
    for (EACH_OPTION(option)) {
        fprintf(out, "complete -c retort-service-test -l %s", option->name);
        if (option->letter != 0)
            fprintf(out, " -s %c", option->letter);
        if (takes_word(option)) {
            fprintf(out, " -x -a '");
            put_value_words(out, option->value);
            fputc('\'', out);
        } else if (option->value != NULL)
            fprintf(out, takes_file(option) ? " -r" : " -x");
        fprintf(out, " -d '");
        for (const char *at = option->text; *at != '\0'; at++)
            fputs(*at == '\'' ? "\\'" : (char[]){*at, '\0'}, out);
        fprintf(out, "'\n");
    }
}

/* False: there is no completion for that shell. */
static bool tester_completion_print(FILE *out, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        complete_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(out);
    else
        return false;
    return true;
}

static void tester_take(struct tester_options *options, int letter) {
    switch (letter) {
    case 's':
        if (strchr(optarg, '=') == NULL)
            tester_complain("set", "give it NAME=VALUE");
        append_text(&options->settings, &options->setting_count, optarg);
        break;
    case 'H':
        if (strchr(optarg, '=') == NULL || optarg[0] == '=')
            tester_complain("helper",
                            "give it POOL=COMMAND, such as gray=/usr/libexec/retort/gray-helper");
        append_text(&options->helpers, &options->helper_count, optarg);
        break;
    case 'a': options->arguments = optarg; break;
    case 'c': options->client = optarg; break;
    case 'u': options->user = optarg; break;
    case 'p': options->plan = optarg; break;
    case 'D': options->helperd = optarg; break;
    case 'n': options->cuts = number_in("cuts", 1, 1 << 20); break;
    case 'm': options->messages = number_in("messages", 1, 1 << 20); break;
    case 'd': options->deadline = 1000 * number_in("deadline", 1, 3600); break;
    case 'f': options->may_fail = true; break;
    case 'g': options->valgrind = true; break;
    case 'j': options->json = true; break;
    case 'v': options->verbose = true; break;
    case 'h': tester_usage(stdout, 0);
    case 'V': version_print("retort-service-test", NULL); exit(0);
    case WORKER: options->worker = (int)number_in("worker", 0, 1 << 20); break;
    case COMPLETION:
        if (!tester_completion_print(stdout, optarg))
            tester_complain("completion", "there are those for bash, zsh and fish");
        exit(0);
    default: tester_usage(stderr, TESTER_NOT_RUN);
    }
}

/* In the form of getopt_long. --worker is for the program itself: it begins a process of its own
 * with it. */
static void make_options(struct option *options, char *letters) {
    for (int i = 0; i < TESTER_OPTIONS; i++) {
        const struct tester_option *row = &tester_option_table[i];
        int kind = row->value != NULL ? required_argument : no_argument;
        *options++ =
            (struct option){row->name, kind, NULL, row->letter != 0 ? row->letter : COMPLETION};
        if (row->letter != 0)
            *letters++ = row->letter;
        if (row->letter != 0 && row->value != NULL)
            *letters++ = ':';
    }
    *options++ = (struct option){"worker", required_argument, NULL, WORKER};
    *options = (struct option){NULL, 0, NULL, 0};
    *letters = '\0';
}

void tester_options_read(struct tester_options *options, int argc, char **argv) {
    struct option list[TESTER_OPTIONS + 2];
    char letters[2 * TESTER_OPTIONS + 1];
    make_options(list, letters);
    *options = (struct tester_options){.helperd = HELPERD,
                                       .arguments = "",
                                       .client = "192.0.2.1",
                                       .user = "",
                                       .cuts = 512,
                                       .messages = 200,
                                       .deadline = 10000,
                                       .worker = -1};
    for (int letter; (letter = getopt_long(argc, argv, letters, list, NULL)) != -1;)
        tester_take(options, letter);
    if (optind == argc)
        tester_usage(stderr, TESTER_NOT_RUN);
    options->module = argv[optind];
    options->files = argv + optind + 1;
}

void tester_options_release(struct tester_options *options) {
    free(options->settings);
    free(options->helpers);
    *options = (struct tester_options){.worker = -1};
}

/*
 * Completion of the options for shells, printed from their table.
 */
