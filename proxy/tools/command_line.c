#include "base/assert.h"
#include "base/slice.h"
#include "base/version.h"
#include "tools/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number such as -5, and - for standard input, are arguments. */
static bool looks_like_option(const char *word) {
    return word[0] == '-' && (word[1] == '-' || (word[1] >= 'A' && word[1] <= 'z'));
}

static bool is_json(const char *word) {
    return strcmp(word, "--json") == 0 || strcmp(word, "-j") == 0;
}

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool refuse_argument(const struct call *command, const char *word) {
    if (command->most == 0)
        fprintf(stderr, "retortctl: %s takes no argument \"%s\"; see retortctl --help\n",
                command->name, word);
    else
        fprintf(stderr, "retortctl: \"%s\" is one argument too many; see retortctl %s --help\n",
                word, command->name);
    return false;
}

static bool refuse_option(const struct call *command, const char *word, const char *why) {
    fprintf(stderr, "retortctl: %s: %s %s; see retortctl %s --help\n", command->name, word, why,
            command->name);
    return false;
}

/* "--limit", "--limit=3", "-l": the value is behind the sign, or NULL. */
static const struct call_option *option_of(const struct call *command, const char *word,
                                           const char **value) {
    const char *name = word + 2, *sign = strchr(name, '=');
    size_t length = sign != NULL ? (size_t)(sign - name) : strlen(name);
    *value = NULL;
    COMMAND_OPTION_FOR_EACH (option, command->options) {
        if (word[1] == '-' && strlen(option->name) == length &&
            strncmp(option->name, name, length) == 0) {
            *value = sign != NULL ? sign + 1 : NULL;
            return option;
        }
        if (word[1] != '-' && word[1] == option->letter && word[2] == '\0')
            return option;
    }
    return NULL;
}

/* What is read on the way. Options stand in front of arguments in what is made. */
struct reading {
    struct command_line *line;
    char **words, **options;
    int word_count, option_count;
};

static char *long_form(const struct call_option *option) {
    size_t size = strlen(option->name) + 3;
    char *text = xcalloc(size, 1);
    snprintf(text, size, "--%s", option->name);
    return text;
}

/* Returns the number of words taken, 0 after a message. */
static int take_option(struct reading *reading, int left, char **argv) {
    const char *value;
    const struct call *command = reading->line->command;
    const struct call_option *option = option_of(command, argv[0], &value);
    if (option == NULL)
        return refuse_option(command, argv[0], "is not an option of this command");
    if (option->value == NULL && value != NULL)
        return refuse_option(command, argv[0], "has no value");
    if (option->value != NULL && value == NULL && left < 2)
        return refuse_option(command, argv[0], "needs a value, which is missing");
    reading->options[reading->option_count++] = long_form(option);
    if (option->value == NULL)
        return 1;
    reading->options[reading->option_count++] = xstrdup(value != NULL ? value : argv[1]);
    return value != NULL ? 1 : 2;
}

static bool check_count(const struct reading *reading) {
    const struct call *command = reading->line->command;
    if (reading->word_count > command->most)
        return refuse_argument(command, reading->words[command->most]);
    if (reading->word_count >= command->least)
        return true;
    fprintf(stderr, "retortctl: write \"retortctl %s %s\"; see retortctl %s --help\n",
            command->name, command->arguments, command->name);
    return false;
}

/* Takes what stands behind the command. */
static bool take_rest(struct reading *reading, int argc, char **argv) {
    struct command_line *line = reading->line;
    bool literal = false, good = true;
    for (int i = 0; i < argc && good;) {
        int taken = 1;
        if (!literal && strcmp(argv[i], "--") == 0)
            literal = true;
        else if (!literal && is_json(argv[i]))
            line->json = true;
        else if (!literal && is_help(argv[i]))
            line->help = true;
        else if (!literal && looks_like_option(argv[i]))
            good = (taken = take_option(reading, argc - i, argv + i)) > 0;
        else
            reading->words[reading->word_count++] = xstrdup(argv[i]);
        i += taken;
    }
    return good && (line->help || check_count(reading));
}

static void command_line_put_name(struct command_line *line) {
    const char *name = line->command->name, *blank = strchr(name, ' ');
    line->argv[line->argc++] = xstrdup(name);
    if (blank == NULL)
        return;
    line->argv[0][blank - name] = '\0';
    line->argv[line->argc++] = xstrdup(blank + 1);
}

static bool wants_help(int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return true;
    return false;
}

static bool read_rest(struct command_line *line, int argc, char **argv) {
    struct reading reading = {.line = line};
    size_t room = (size_t)argc * 2 + 4;
    line->argv = xcalloc(room, sizeof *line->argv);
    reading.words = xcalloc(room, sizeof *reading.words);
    reading.options = xcalloc(room, sizeof *reading.options);
    command_line_put_name(line);
    bool good = take_rest(&reading, argc, argv);
    int option_at = line->argc, word_at = option_at + reading.option_count;
    for (int i = 0; i < reading.option_count; i++)
        line->argv[line->argc++] = reading.options[i];
    for (int i = 0; i < reading.word_count; i++)
        line->argv[line->argc++] = reading.words[i];
    free(reading.words);
    free(reading.options);
    line->options = line->argv + option_at;
    line->words = line->argv + word_at;
    return good;
}

static bool refuse_command(const char *first, const char *second) {
    if (second == NULL)
        fprintf(stderr, "retortctl: there is no command \"%s\"; see retortctl --help\n", first);
    else
        fprintf(stderr, "retortctl: there is no command \"%s %s\"; see retortctl %s --help\n",
                first, second, first);
    return false;
}

static bool refuse_group(const struct call *group) {
    fprintf(stderr, "retortctl: write \"retortctl %s\" with one of:", group->name);
    COMMAND_FOR_EACH (command)
        if (command_is_below(command, group->name))
            fprintf(stderr, " %s", command_last_word(command));
    fprintf(stderr, "; see retortctl %s --help\n", group->name);
    return false;
}

bool command_line_read(struct command_line *line, int argc, char **argv) {
    int words = 0;
    char *at[2] = {NULL, NULL};
    *line = (struct command_line){.help = wants_help(argc, argv)};
    /* --json may stand between the words. */
    for (int i = 0; i < argc && words < 2 && (is_json(argv[i]) || argv[i][0] != '-'); i++)
        if (!is_json(argv[i]))
            at[words++] = argv[i];
    if (words == 0)
        return argc == 0 || line->help || refuse_command(argv[0], NULL);
    const struct call *first = command_find(at[0], NULL);
    const struct call *both = words > 1 ? command_find(at[0], at[1]) : NULL;
    line->command = both != NULL ? both : first;
    if (line->command == NULL)
        return refuse_command(at[0], NULL);
    if (line->help)
        return true;
    if (line->command->group)
        return words > 1 ? refuse_command(at[0], at[1]) : refuse_group(first);
    int skip = both != NULL ? 2 : 1;
    while (skip > 0) {
        line->json = is_json(argv[0]) || line->json;
        skip -= !is_json(argv[0]);
        argc--;
        argv++;
    }
    return read_rest(line, argc, argv);
}

int command_alone(const char *program, const char *first, const char *second, int argc, char **argv,
                  int (*run)(const struct command_line *line)) {
    struct command_line line = {.command = command_find(first, second)};
    int status = COMMAND_USAGE;
    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        version_print(program, NULL);
        return EXIT_SUCCESS;
    }
    if (read_rest(&line, argc - 1, argv + 1))
        status = line.help ? EXIT_SUCCESS : run(&line);
    if (line.help) {
        command_help(stdout, line.command);
        printf("\nAs a program of its own: %s [OPTION...] %s; --version prints its version.\n",
               program, line.command->arguments);
    }
    command_line_release(&line);
    return status;
}

void command_line_each(const struct command_line *line, const char *name,
                       void (*see)(void *arg, const char *value), void *arg) {
    for (char **at = line->options; at < line->words; at++) {
        const char *value;
        const struct call_option *option = option_of(line->command, *at, &value);
        bool has_value = option->value != NULL;
        if (strcmp(option->name, name) == 0)
            see(arg, has_value ? at[1] : "");
        at += has_value;
    }
}

static void keep_last(void *arg, const char *value) {
    *(const char **)arg = value;
}

const char *command_line_option(const struct command_line *line, const char *name) {
    const char *last = NULL;
    command_line_each(line, name, keep_last, &last);
    return last;
}

unsigned long command_line_number(const struct command_line *line, const char *name,
                                  unsigned long otherwise, unsigned long most) {
    const char *value = command_line_option(line, name);
    uint64_t number;
    if (value == NULL)
        return otherwise;
    if (slice_to_uint64(slice_from(value), &number) && number > 0 && number <= most)
        return (unsigned long)number;
    fprintf(stderr, "retortctl: --%s: \"%s\" is no number from 1 to %lu\n", name, value, most);
    return 0;
}

void command_line_release(struct command_line *line) {
    for (int i = 0; i < line->argc; i++)
        free(line->argv[i]);
    free(line->argv);
    *line = (struct command_line){.command = NULL};
}
