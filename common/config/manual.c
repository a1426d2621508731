#include "config/manual.h"

#include "config/value.h"

#include <string.h>

/* Prints a text in lines of up to 100 columns, each character by `put`. */
static void print_filled(FILE *out, const char *text, void (*put)(FILE *out, char c)) {
    size_t column = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > 100) {
            fputc('\n', out);
            column = 0;
        } else if (column > 0) {
            fputc(' ', out);
            column++;
        }
        for (size_t i = 0; i < length; i++)
            put(out, text[i]);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* Markdown. */

static void markdown_put(FILE *out, char c) {
    if (strchr("*<>`[]\\", c) != NULL)
        fputc('\\', out);
    fputc(c, out);
}

static void markdown_heading(FILE *out, const char *text) {
    fprintf(out, "\n## %s\n", text);
}

static void markdown_paragraph(FILE *out, const char *text) {
    fputc('\n', out);
    print_filled(out, text, markdown_put);
}

static void markdown_example(FILE *out, const char *lines) {
    fprintf(out, "\n```\n%s\n```\n", lines);
}

static void markdown_option(FILE *out, const char *name, const char *facts) {
    fprintf(out, "\n### %s\n\n", name);
    fputc('*', out);
    for (; *facts != '\0'; facts++)
        markdown_put(out, *facts);
    fputs("*\n", out);
}

const struct manual_form manual_markdown = {markdown_heading, markdown_paragraph, markdown_example,
                                            markdown_option};

/* man(7). */

static void man_put(FILE *out, char c) {
    switch (c) {
    case '\\': fputs("\\e", out); break;
    case '-': fputs("\\-", out); break;
    case '\'': fputs("\\(aq", out); break;
    case '`': fputs("\\(ga", out); break;
    case '^': fputs("\\(ha", out); break;
    case '~': fputs("\\(ti", out); break;
    default: fputc(c, out);
    }
}

static void man_line(FILE *out, const char *line, size_t length) {
    if (length > 0 && line[0] == '.')
        fputs("\\&", out);
    for (size_t i = 0; i < length; i++)
        man_put(out, line[i]);
    fputc('\n', out);
}

static void man_heading(FILE *out, const char *text) {
    fputs(".SH \"", out);
    for (; *text != '\0'; text++)
        man_put(out, *text);
    fputs("\"\n", out);
}

static void man_paragraph(FILE *out, const char *text) {
    fputs(".PP\n", out);
    print_filled(out, text, man_put);
}

static void man_example(FILE *out, const char *lines) {
    fputs(".PP\n.nf\n.RS\n", out);
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        man_line(out, lines, length);
        lines += length + (lines[length] == '\n');
    }
    fputs(".RE\n.fi\n", out);
}

static void man_option(FILE *out, const char *name, const char *facts) {
    fprintf(out, ".SS %s\n", name);
    fputs(".I ", out);
    man_line(out, facts, strlen(facts));
}

const struct manual_form manual_man = {man_heading, man_paragraph, man_example, man_option};

static const char *type_name(const struct option *option) {
    switch (option->type) {
    case OPTION_BOOL: return "true or false";
    case OPTION_COUNT:
    case OPTION_INTEGER: return "whole number";
    case OPTION_SIZE: return "size";
    case OPTION_TIME: return "time";
    case OPTION_FLOAT: return "number";
    case OPTION_STRING: return "text";
    case OPTION_WORD: return "one of";
    case OPTION_STRINGS: return "text or list of texts";
    case OPTION_ELEMENTS: return option->elements->name;
    }
    return "";
}

/* "size from 1MB to 4096GB; default 256MB" */
static void manual_describe(const struct option *option, char *facts, size_t capacity) {
    FILE *out = fmemopen(facts, capacity, "w");
    fputs(type_name(option), out);
    if (option->type == OPTION_ELEMENTS)
        fprintf(out, " or list of %ss, or %s", option->elements->name, option->elements->empty);
    for (size_t i = 0; option->words != NULL && option->words[i] != NULL; i++)
        fprintf(out, "%s %s", i == 0 ? "" : ",", option->words[i]);
    if (option->most > 0) {
        char least[UNITS_TEXT], most[UNITS_TEXT];
        value_write_bound(option, option->least, least);
        value_write_bound(option, option->most, most);
        fprintf(out, " from %s to %s", least, most);
    }
    if (option->required)
        fputs("; required", out);
    else if (option->fallback != NULL)
        fprintf(out, "; default %s", option->fallback);
    else if (option->fallback_note != NULL)
        fprintf(out, "; default %s", option->fallback_note);
    fclose(out);
}

static void print_option(FILE *out, const struct manual_form *form,
                         const struct option_section *kind, const struct option *option) {
    char facts[600], example[200], name[100];
    manual_describe(option, facts, sizeof facts);
    const char *parent = kind->parent;
    snprintf(name, sizeof name, "%s%s%s%s%s", parent != NULL ? parent : "",
             parent != NULL ? "." : "", option->section, option->section[0] != '\0' ? "." : "",
             option->name);
    snprintf(example, sizeof example, "%s = %s", option->name, option->example);
    form->option(out, name, facts);
    form->paragraph(out, option->documentation);
    form->example(out, example);
}

static void print_section(FILE *out, const struct manual_form *form,
                          const struct option_table *table, const struct option_section *section,
                          const char *top) {
    char heading[100];
    snprintf(heading, sizeof heading, "%s", top);
    if (section->name[0] != '\0')
        snprintf(heading, sizeof heading, "%s%s%s%s%s { ... }%s",
                 section->parent != NULL ? section->parent : "",
                 section->parent != NULL ? " { " : "", section->name,
                 section->title != NULL ? " " : "", section->title != NULL ? section->title : "",
                 section->parent != NULL ? " }" : "");
    form->heading(out, heading);
    form->paragraph(out, section->documentation);
    if (section->example != NULL)
        form->example(out, section->example);
    OPTIONS_FOR_EACH (option, table, section->name)
        print_option(out, form, section, option);
}

void manual_print(FILE *out, const struct manual_form *form, const struct option_table *table,
                  const char *top) {
    for (const struct option_section *section = table->sections; section->name != NULL; section++)
        print_section(out, form, table, section, top);
}
