/*
 * The commands of the table of calls (admin/call.h). Help, completion, the manual's list of commands
 * and the check of arguments are made from it, so that they agree.
 *
 *     struct command_line line;
 *     if (!command_line_read(&line, argc, argv))        after a message: "cache show has no ..."
 *         return EXIT_USAGE;
 *     line.command->name                                "cache show"
 *     line.argv                                         cache show --limit 3 URL
 *
 * Threads: any; the table is constant.
 */
#ifndef RETORT_TOOLS_COMMAND_H
#define RETORT_TOOLS_COMMAND_H

#include "admin/call.h"

#include <stdio.h>

enum { COMMAND_USAGE = 2 }; /* exit status */

#define COMMAND_ADMIN   "/run/retort/retort.sock"
#define COMMAND_HELPERD "/run/retort/helperd.sock"

/* Ends with a row that has neither a name nor a path; a row without a name is a page alone. */
extern const struct call commands[];
/* Options that stand before or behind each command. */
extern const struct call_option command_common[];

/* The next command at or behind the row, or the last row. */
const struct call *command_at(const struct call *row);
#define COMMAND_FOR_EACH(at)                                                                       \
    for (const struct call *at = command_at(commands); (at)->name != NULL;                         \
         at = command_at((at) + 1))
#define COMMAND_OPTION_FOR_EACH(at, list)                                                          \
    for (const struct call_option *option = (list); (option) != NULL && (option)->name != NULL;    \
         (option)++)

/* The command of these words; NULL: there is none. second may be NULL. */
const struct call *command_find(const char *first, const char *second);
/* Is this a command of two words, of which the first is `first`? */
bool command_is_below(const struct call *command, const char *first);
/* The last word of the name. */
const char *command_last_word(const struct call *command);
/* Does the command have two words? */
bool command_has_two_words(const struct call *command);
bool command_has_below(const struct call *command);

/* What the user wrote, in one form: the command's words, options with their values, arguments. */
struct command_line {
    const struct call *command; /* NULL: no word */
    bool help, json;
    int argc;
    char **argv;    /* NULL behind the last */
    char **options; /* of these, where the options begin */
    char **words;   /* and behind them the arguments, as far as the NULL */
};

/* The value of the option (without --), or "" for one that has none; NULL: it was not given. The
 * last one counts. */
const char *command_line_option(const struct command_line *line, const char *name);
/* The number of the option, from 1 to `most`, else `otherwise`. 0: after a message. */
unsigned long command_line_number(const struct command_line *line, const char *name,
                                  unsigned long otherwise, unsigned long most);
/* The values of an option that may be repeated: calls `see` for each. */
void command_line_each(const struct command_line *line, const char *name,
                       void (*see)(void *arg, const char *value), void *arg);

/* False: after a message to stderr. Changes nothing in argv. --help is good with wrong arguments. */
bool command_line_read(struct command_line *line, int argc, char **argv);
void command_line_release(struct command_line *line);
/* The main of a program that has only this command, and that retortctl runs for it. */
int command_alone(const char *program, const char *first, const char *second, int argc, char **argv,
                  int (*run)(const struct command_line *line));

/* Prints the help of a command; NULL: of the whole program. */
void command_help(FILE *out, const struct call *command);
/* Prints the commands for retortctl(1), as man(7). */
void command_manual(FILE *out);
/* Prints the completion for a shell. False: the shell is not known. */
bool command_completion(FILE *out, const char *shell);

#endif
