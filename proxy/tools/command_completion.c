/*
 * Completion of retortctl's commands for shells. What each shell needs to know is printed from the
 * table; the frames around it stand here.
 */
#include "tools/command.h"

#include <string.h>

static void put_option_names(FILE *out, const struct call_option *list) {
    COMMAND_OPTION_FOR_EACH (option, list)
        fprintf(out, "--%s ", option->name);
}

/* Is this something that a file's name stands for? */
static bool is_file(const char *value) {
    return strstr(value, "FILE") != NULL || strstr(value, "LIST") != NULL ||
           strstr(value, "PATH") != NULL || strcmp(value, "WHERE") == 0;
}

/* "bash|zsh|fish" as words with `between` between them. */
static void put_words(FILE *out, const char *value, char between) {
    for (; *value != '\0'; value++)
        fputc(*value == '|' ? between : *value, out);
}

/* Words that can be completed, not names of what is to be written: they are in small letters. */
static bool has_words(const char *value) {
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyz_|")] == '\0';
}

static void put_below(FILE *out, const char *first) {
    COMMAND_FOR_EACH (command)
        if (first != NULL ? command_is_below(command, first) : !command_has_two_words(command))
            fprintf(out, "%s ", command_last_word(command));
}

/* The options of the whole program that have a value, as a pattern: "--socket|-s|--helperd|-H". */
static void put_valued_options(FILE *out) {
    const char *between = "";
    COMMAND_OPTION_FOR_EACH (option, command_common) {
        if (option->value == NULL)
            continue;
        fprintf(out, "%s--%s", between, option->name);
        if (option->letter != 0)
            fprintf(out, "|-%c", option->letter);
        between = "|";
    }
}

/* bash */

static const char bash_begin[] =
    "# bash completion of retortctl. Printed by \"retortctl completion bash\".\n"
    "_retortctl() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local first= second= options= words= files= values= i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n        ";

static const char bash_words[] =
    ") ((i++)) ;;\n"
    "        -*) ;;\n"
    "        *) if [[ -z $first ]]; then first=${COMP_WORDS[i]}\n"
    "           elif [[ -z $second ]]; then second=${COMP_WORDS[i]}; fi ;;\n"
    "        esac\n"
    "    done\n";

static const char bash_end[] =
    "    if [[ $values == - ]]; then COMPREPLY=()\n"
    "    elif [[ $values == FILE ]]; then COMPREPLY=($(compgen -f -- \"$word\"))\n"
    "    elif [[ -n $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
    "    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
    "    else\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "        if [[ -n $files ]]; then COMPREPLY+=($(compgen -f -- \"$word\")); fi\n"
    "    fi\n"
    "}\n"
    "complete -o filenames -F _retortctl retortctl\n";

/* What may stand behind an option: FILE, words, or - for what can't be completed. */
static void bash_values(FILE *out, const struct call_option *list, const char *indent) {
    COMMAND_OPTION_FOR_EACH (option, list) {
        if (option->value == NULL)
            continue;
        fprintf(out, "%s--%s", indent, option->name);
        if (option->letter != 0)
            fprintf(out, "|-%c", option->letter);
        fputs(") values='", out);
        if (is_file(option->value))
            fputs("FILE", out);
        else if (has_words(option->value))
            put_words(out, option->value, ' ');
        else
            fputc('-', out);
        fputs("' ;;\n", out);
    }
}

static void bash_command(FILE *out, const struct call *command) {
    const char *arguments = command->arguments != NULL ? command->arguments : "";
    fprintf(out, "    '%s%s')\n        options='", command->name,
            command_has_two_words(command) ? "" : " ");
    put_option_names(out, command->options);
    fputs("--json --help'\n        words='", out);
    if (!command_has_two_words(command))
        put_below(out, command->name);
    if (has_words(arguments))
        put_words(out, arguments, ' ');
    fprintf(out, "'\n        files=%s\n", is_file(arguments) ? "yes" : "");
    if (command->options != NULL) {
        fputs("        case $before in\n", out);
        bash_values(out, command->options, "        ");
        fputs("        esac\n", out);
    }
    fputs("        ;;\n", out);
}

static void completion_bash(FILE *out) {
    fputs(bash_begin, out);
    put_valued_options(out);
    fputs(bash_words, out);
    /* What is no command of two words is one, with an argument. */
    fputs("    case \"$first $second\" in\n    ", out);
    const char *between = "";
    COMMAND_FOR_EACH (command)
        if (command_has_two_words(command)) {
            fprintf(out, "%s'%s'", between, command->name);
            between = "|";
        }
    fputs(") ;;\n    *) second= ;;\n    esac\n", out);
    fputs("    case \"$first $second\" in\n    ' ')\n        options='", out);
    put_option_names(out, command_common);
    fputs("'\n        words='", out);
    put_below(out, NULL);
    fputs("'\n        case $before in\n", out);
    bash_values(out, command_common, "        ");
    fputs("        esac\n        ;;\n", out);
    COMMAND_FOR_EACH (command)
        bash_command(out, command);
    fputs("    esac\n", out);
    fputs(bash_end, out);
}

/* Quoted for zsh and fish. */
static void completion_put_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    fputc('\'', out);
}

/* zsh: _describe takes NAME:HELP. */

static const char zsh_begin[] =
    "#compdef retortctl\n"
    "# zsh completion of retortctl. Printed by \"retortctl completion zsh\".\n"
    "local first second values files word\n"
    "local -a names options i\n"
    "for ((i = 2; i < CURRENT; i++)); do\n"
    "    case $words[i] in\n    ";

static const char zsh_words[] = ") ((i++)) ;;\n"
                                "    -*) ;;\n"
                                "    *) if [[ -z $first ]]; then first=$words[i]\n"
                                "       elif [[ -z $second ]]; then second=$words[i]; fi ;;\n"
                                "    esac\n"
                                "done\n";

static const char zsh_end[] = "if [[ $values == - ]]; then _message value\n"
                              "elif [[ $values == FILE ]]; then _files\n"
                              "elif [[ -n $values ]]; then compadd -- ${=values}\n"
                              "elif [[ $words[CURRENT] == -* ]]; then _describe -o option options\n"
                              "else\n"
                              "    (( $#names )) && _describe command names\n"
                              "    [[ -n $files ]] && _files\n"
                              "fi\n";

static void zsh_item(FILE *out, const char *dashes, const char *name, const char *help) {
    char item[400];
    snprintf(item, sizeof item, "%s%s:%s", dashes, name, help);
    fputs(" ", out);
    completion_put_quoted(out, item);
}

static void zsh_options(FILE *out, const struct call_option *list) {
    COMMAND_OPTION_FOR_EACH (option, list)
        zsh_item(out, "--", option->name, option->help);
}

static void zsh_below(FILE *out, const char *first) {
    COMMAND_FOR_EACH (command)
        if (first != NULL ? command_is_below(command, first) : !command_has_two_words(command))
            zsh_item(out, "", command_last_word(command), command->line);
}

static void zsh_command(FILE *out, const struct call *command) {
    const char *arguments = command->arguments != NULL ? command->arguments : "";
    fprintf(out, "'%s%s')\n    options=(", command->name,
            command_has_two_words(command) ? "" : " ");
    zsh_options(out, command->options);
    fputs(" --json --help)\n    names=(", out);
    if (!command_has_two_words(command))
        zsh_below(out, command->name);
    if (has_words(arguments))
        put_words(out, arguments, ' ');
    fprintf(out, ")\n    files=%s\n", is_file(arguments) ? "yes" : "");
    if (command->options != NULL) {
        fputs("    case $words[CURRENT-1] in\n", out);
        bash_values(out, command->options, "    ");
        fputs("    esac\n", out);
    }
    fputs("    ;;\n", out);
}

static void completion_zsh(FILE *out) {
    const char *between = "";
    fputs(zsh_begin, out);
    put_valued_options(out);
    fputs(zsh_words, out);
    fputs("case \"$first $second\" in\n", out);
    COMMAND_FOR_EACH (command)
        if (command_has_two_words(command)) {
            fprintf(out, "%s'%s'", between, command->name);
            between = "|";
        }
    fputs(") ;;\n*) second= ;;\nesac\n", out);
    fputs("case \"$first $second\" in\n' ')\n    options=(", out);
    zsh_options(out, command_common);
    fputs(")\n    names=(", out);
    zsh_below(out, NULL);
    fputs(")\n    case $words[CURRENT-1] in\n", out);
    bash_values(out, command_common, "    ");
    fputs("    esac\n    ;;\n", out);
    COMMAND_FOR_EACH (command)
        zsh_command(out, command);
    fputs("esac\n", out);
    fputs(zsh_end, out);
}

/* fish: a line for each word and option, with the condition under which it is offered. */

/* The condition that the command line has this command; for a first word, and none below it. */
static void fish_condition(FILE *out, const struct call *command) {
    char first[40];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "), command->name);
    fprintf(out, "complete -c retortctl -n '__fish_seen_subcommand_from %s", first);
    if (command_has_two_words(command)) {
        fprintf(out, "; and __fish_seen_subcommand_from %s' ", command_last_word(command));
        return;
    }
    if (command_has_below(command)) {
        fputs("; and not __fish_seen_subcommand_from ", out);
        put_below(out, command->name);
    }
    fputs("' ", out);
}

static void fish_option(FILE *out, const struct call_option *option) {
    fprintf(out, "-l %s ", option->name);
    if (option->letter != 0)
        fprintf(out, "-s %c ", option->letter);
    if (option->value != NULL && is_file(option->value))
        fputs("-r -F ", out);
    else if (option->value != NULL)
        fputs("-x ", out);
    if (option->value != NULL && has_words(option->value)) {
        fputs("-a '", out);
        put_words(out, option->value, ' ');
        fputs("' ", out);
    }
    fputs("-d ", out);
    completion_put_quoted(out, option->help);
    fputc('\n', out);
}

static void fish_command(FILE *out, const struct call *command) {
    COMMAND_FOR_EACH (below)
        if (!command_has_two_words(command) && command_is_below(below, command->name)) {
            fish_condition(out, command);
            fprintf(out, "-a %s -d ", command_last_word(below));
            completion_put_quoted(out, below->line);
            fputc('\n', out);
        }
    COMMAND_OPTION_FOR_EACH (option, command->options) {
        fish_condition(out, command);
        fish_option(out, option);
    }
    if (command->arguments != NULL && is_file(command->arguments)) {
        fish_condition(out, command);
        fputs("-F\n", out);
    } else if (command->arguments != NULL && has_words(command->arguments)) {
        fish_condition(out, command);
        fputs("-a '", out);
        put_words(out, command->arguments, ' ');
        fputs("'\n", out);
    }
}

static void completion_fish(FILE *out) {
    fputs("# fish completion of retortctl. Printed by \"retortctl completion fish\".\n"
          "complete -c retortctl -f\n",
          out);
    COMMAND_OPTION_FOR_EACH (option, command_common) {
        fputs("complete -c retortctl ", out);
        fish_option(out, option);
    }
    COMMAND_FOR_EACH (command)
        if (!command_has_two_words(command)) {
            fprintf(out, "complete -c retortctl -n __fish_use_subcommand -a %s -d ", command->name);
            completion_put_quoted(out, command->line);
            fputc('\n', out);
        }
    COMMAND_FOR_EACH (command)
        fish_command(out, command);
}

bool command_completion(FILE *out, const char *shell) {
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print(out);
            return true;
        }
    return false;
}
