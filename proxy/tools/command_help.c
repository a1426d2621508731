/* The help of retortctl and of its commands, for terminals of 80 columns. */
#include "tools/command.h"

#include <string.h>

enum { WIDTH = 80, COMMANDS = 14, OPTIONS = 27 }; /* columns */

/* Fills lines up to the width; the first begins at `column`, and the others are indented. */
static void put_filled(FILE *out, const char *text, size_t column, size_t indent) {
    bool fresh = true;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (!fresh && column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!fresh) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += length;
        text += length;
        text += strspn(text, " ");
        fresh = false;
    }
    fputc('\n', out);
}

static void help_line(FILE *out, const char *name, const char *help, int column) {
    fprintf(out, "  %-*s", column - 2, name);
    if (strlen(name) + 3 > (size_t)column)
        fprintf(out, "\n%*s", column, "");
    put_filled(out, help, (size_t)column, (size_t)column);
}

/* "-f, --from URL"; words that are one of several are told behind the help. */
static void help_option(FILE *out, const struct call_option *option) {
    char name[80], letter[5] = "", help[500];
    bool words = option->value != NULL && strchr(option->value, '|') != NULL;
    if (option->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(name, sizeof name, "%s--%s%s%s", letter, option->name,
             option->value != NULL ? " " : "",
             words                   ? "WORD"
             : option->value != NULL ? option->value
                                     : "");
    snprintf(help, sizeof help, "%s%s", option->help, words ? ": " : "");
    for (const char *at = words ? option->value : ""; *at != '\0'; at++)
        snprintf(help + strlen(help), sizeof help - strlen(help), *at == '|' ? " " : "%c", *at);
    help_line(out, name, help, OPTIONS);
}

static void help_status(FILE *out, const struct call *command) {
    char text[400];
    snprintf(text, sizeof text, "Exit status: %s",
             command->status != NULL && command->status[0] == '0' ? "" : "0 done, ");
    if (command->status == NULL)
        strcat(text, "1 failed, 2 wrong usage");
    else
        strncat(text, command->status, sizeof text - strlen(text) - 1);
    fputc('\n', out);
    put_filled(out, text, 0, 0);
}

static void help_below(FILE *out, const struct call *group) {
    bool any = false;
    COMMAND_FOR_EACH (command) {
        if (!command_is_below(command, group->name))
            continue;
        if (!any)
            fputs("\nCommands:\n", out);
        any = true;
        help_line(out, command_last_word(command), command->line, COMMANDS);
    }
    if (any)
        fprintf(out, "\nretortctl %s COMMAND --help says more about each.\n", group->name);
}

static void help_of_one(FILE *out, const struct call *command) {
    char line[200];
    fprintf(out, "Usage: retortctl [-s WHERE] %s%s%s%s\n\n", command->name,
            command->group               ? " COMMAND [ARGUMENTS]"
            : command->arguments != NULL ? " "
                                         : "",
            command->arguments != NULL ? command->arguments : "",
            command->options != NULL ? " [OPTIONS]" : "");
    snprintf(line, sizeof line, "%s.", command->line);
    line[0] = (char)(line[0] - ('a' - 'A'));
    put_filled(out, line, 0, 0);
    if (command->text != NULL)
        put_filled(out, command->text, 0, 0);
    if (command->options != NULL)
        fputs("\nOptions, beside --json and --help:\n", out);
    COMMAND_OPTION_FOR_EACH (option, command->options)
        help_option(out, option);
    help_below(out, command);
    if (!command->group)
        help_status(out, command);
}

static void help_of_all(FILE *out) {
    fputs("Usage: retortctl [OPTIONS] COMMAND [ARGUMENTS]\n\nCommands:\n", out);
    COMMAND_FOR_EACH (command)
        if (!command_has_two_words(command))
            help_line(out, command->name, command->line, COMMANDS);
    fputs("\nOptions:\n", out);
    COMMAND_OPTION_FOR_EACH (option, command_common)
        help_option(out, option);
    fputs("\nretortctl COMMAND --help says more about each. Exit status: 0 done, 1 failed,\n"
          "2 wrong usage. retortctl(1) is the manual.\n",
          out);
}

void command_help(FILE *out, const struct call *command) {
    if (command == NULL)
        help_of_all(out);
    else
        help_of_one(out, command);
}

/* The manual. */

static void put_roff(FILE *out, const char *text) {
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++)
        fprintf(out, *text == '\\' ? "\\e" : *text == '-' ? "\\-" : "%c", *text);
}

static void manual_paragraph(FILE *out, const char *text) {
    while (*text != '\0') { /* a sentence a line, as manuals are written */
        const char *end = strstr(text, ". ");
        int length = end != NULL ? (int)(end + 1 - text) : (int)strlen(text);
        char sentence[1000];
        snprintf(sentence, sizeof sentence, "%.*s", length, text);
        put_roff(out, sentence);
        fputc('\n', out);
        text += length + (end != NULL);
    }
}

static void manual_option(FILE *out, const struct call_option *option) {
    fputs(".TP\n\\fB", out);
    if (option->letter != 0)
        fprintf(out, "\\-%c\\fR, \\fB", option->letter);
    fputs("\\-\\-", out);
    put_roff(out, option->name);
    fputs("\\fR", out);
    if (option->value != NULL)
        fprintf(out, " \\fI%s\\fR", option->value);
    fputc('\n', out);
    put_roff(out, option->help);
    fputs(".\n", out);
}

static void manual_command(FILE *out, const struct call *command) {
    char line[200];
    fprintf(out, ".TP\n\\fB%s\\fR", command->name);
    if (command->arguments != NULL)
        fprintf(out, " \\fI%s\\fR", command->arguments);
    if (command->options != NULL)
        fputs(" [\\fIOPTIONS\\fR]", out);
    snprintf(line, sizeof line, "%s.", command->line);
    line[0] = (char)(line[0] - ('a' - 'A'));
    fputc('\n', out);
    manual_paragraph(out, line);
    if (command->text != NULL)
        manual_paragraph(out, command->text);
    if (command->status != NULL) {
        fputs("The exit status is ", out);
        put_roff(out, command->status);
        fputs(".\n", out);
    }
    if (command->options == NULL)
        return;
    fputs(".RS\n", out);
    COMMAND_OPTION_FOR_EACH (option, command->options)
        manual_option(out, option);
    fputs(".RE\n", out);
}

void command_manual(FILE *out) {
    COMMAND_FOR_EACH (command)
        manual_command(out, command);
}
