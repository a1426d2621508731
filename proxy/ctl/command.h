/*
 * The table of retortctl's commands (commands.def). Help, completion, the manual's list of commands
 * and the check of arguments are made from it, so that they agree. To add a command: an entry in
 * commands.def, its function in main.c, and "make docs".
 *
 *     struct command_line line;
 *     if (!command_line_read(&line, argc, argv))        after a message: "cache show has no ..."
 *         return EXIT_USAGE;
 *     line.command->name                                "cache show"
 *     line.argv                                         cache show --limit 3 URL
 *
 * Threads: any; the table is constant.
 */
#ifndef RETORT_CTL_COMMAND_H
#define RETORT_CTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COMMAND_ADMIN   "/run/retort/retort.sock"
#define COMMAND_HELPERD "/run/retort/helperd.sock"

struct command_option {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* "URL", or words with | between; NULL: the option has no value */
    const char *help;
};

struct command {
    const char *name;      /* one or two words */
    const char *arguments; /* NULL: none */
    int least, most;       /* the number of arguments */
    bool group;            /* only the first word of other commands */
    const char *line;      /* the help in a line */
    const char *text;      /* a paragraph; NULL: the line says all */
    const char *status;    /* exit status where it differs from the usual; NULL: nowhere */
    const struct command_option *options; /* ends with a NULL name; NULL: none */
};

/* Ends with a NULL name. */
extern const struct command commands[];
/* Options that stand before or behind each command. */
extern const struct command_option command_common[];

#define COMMAND_FOR_EACH(at) for (const struct command *at = commands; (at)->name != NULL; (at)++)
#define COMMAND_OPTION_FOR_EACH(at, list)                                                          \
    for (const struct command_option *option = (list); (option) != NULL && (option)->name != NULL; \
         (option)++)

/* The command of these words; NULL: there is none. second may be NULL. */
const struct command *command_find(const char *first, const char *second);
/* Is this a command of two words, of which the first is `first`? */
bool command_is_below(const struct command *command, const char *first);
/* The last word of the name. */
const char *command_last_word(const struct command *command);
/* Does the command have two words? */
bool command_has_two_words(const struct command *command);
bool command_has_below(const struct command *command);

/* What the user wrote, in one form: the command's words, options with their values, arguments. */
struct command_line {
    const struct command *command; /* NULL: no word */
    bool help, json;
    int argc;
    char **argv;    /* NULL behind the last */
    char **options; /* of these, where the options begin */
    char **words;   /* and behind them the arguments, as far as the NULL */
};

/* The value of the option (without --), or "" for one that has none; NULL: it was not given. The
 * last one counts. */
const char *command_line_option(const struct command_line *line, const char *name);
/* The values of an option that may be repeated: calls `see` for each. */
void command_line_each(const struct command_line *line, const char *name,
                       void (*see)(void *arg, const char *value), void *arg);

/* False: after a message to stderr. Changes nothing in argv. --help is good with wrong arguments. */
bool command_line_read(struct command_line *line, int argc, char **argv);
void command_line_release(struct command_line *line);

/* Prints the help of a command; NULL: of the whole program. */
void command_help(FILE *out, const struct command *command);
/* Prints the commands for retortctl(1), as man(7). */
void command_manual(FILE *out);
/* Prints the completion for a shell. False: the shell is not known. */
bool command_completion(FILE *out, const char *shell);

#endif
