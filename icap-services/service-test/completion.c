/*
 * Completion of the options for shells, printed from their table.
 */
#include "service-test/options.h"

#include <string.h>

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

bool tester_completion_print(FILE *out, const char *shell) {
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
