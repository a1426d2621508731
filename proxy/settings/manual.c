/* docs/CONFIGURATION.md and retort.conf(5), printed from the option table. */
#include "log/format.h"
#include "settings/options.h"
#include "settings/settings.h"
#include "settings/value.h"

#include <stdlib.h>
#include <string.h>

/* The form of a manual: Markdown or man(7). Texts are plain; each form escapes its own signs. */
struct manual_form {
    void (*begin)(FILE *out);
    void (*heading)(FILE *out, const char *text);
    void (*paragraph)(FILE *out, const char *text);
    void (*example)(FILE *out, const char *lines);
    void (*option)(FILE *out, const char *name, const char *facts);
    void (*end)(FILE *out);
};

struct manual_part {
    const char *heading; /* NULL: the text continues below the last heading */
    const char *text;
    const char *example;
};

static const struct manual_part introduction[] = {
    {NULL,
     "retort reads its configuration from one file, which can include others: at the start, and "
     "again after SIGHUP or \"retortctl reload\". \"retort -t -f FILE\" checks a file without "
     "running the proxy. All errors are reported, each with its file and line, and a running "
     "proxy then keeps its settings. Transactions that are in progress during a reload keep the "
     "settings that they started with.",
     NULL},
    {"A complete example",
     "This file configures a forward proxy and a reverse proxy in one process, with an ICAP "
     "service that turns images gray:",
     "workers = 0\n"
     "listen \"127.0.0.1:3128\" { mode = forward }\n"
     "listen \":8080\" { mode = reverse }\n"
     "map \"/\" { origin = \"http://127.0.0.1:9000/\" }\n"
     "cache { memory = \"512MB\" }\n"
     "access_log \"/var/log/retort/access.log\" { format = squid }\n"
     "admin { listen = \"/run/retort/retort.sock\" }\n"
     "\n"
     "icap_service gray {\n"
     "    uri = \"icap://127.0.0.1:1344/gray\"\n"
     "    point = respmod_precache\n"
     "    bypass = true\n"
     "}\n"
     "url_class images { path_regex = '\\.(jpe?g|gif|png)$' }\n"
     "adapt images { services = { gray } }"},
    {"Syntax",
     "An option is written NAME = VALUE. A section is written NAME { ... } or NAME TITLE { ... }. "
     "One kind of section, disk, occurs inside another, cache. Line breaks count as blanks. A "
     "comment begins with # or // and ends with the line, or is written between /* and */.",
     NULL},
    {NULL,
     "A value of letters, digits and most signs needs no quotes. In \"double quotes\" a backslash "
     "is written twice, and ${NAME} or ${NAME:-OTHERWISE} stands for an environment variable. In "
     "'single quotes' every character stands for itself, except \\' for a quote and \\\\ for one "
     "backslash. Single quotes are therefore best for regular expressions. A list is written "
     "{ a, b }; a list of one value needs no braces. No option may be set twice.",
     NULL},
    {NULL,
     "A size is a number of bytes, or a number with KB, MB or GB, which are powers of 1024. A time "
     "is a number with ms, s, m, h or d; 0 needs no unit. A switch is true or false; yes, no, on "
     "and off work as well.",
     NULL},
};

static const char *type_name(const struct option *option) {
    switch (option->type) {
    case OPTION_BOOL: return "true or false";
    case OPTION_COUNT: return "whole number";
    case OPTION_SIZE: return "size";
    case OPTION_TIME: return "time";
    case OPTION_FLOAT: return "number";
    case OPTION_STRING: return "text";
    case OPTION_WORD: return "one of";
    case OPTION_STRINGS: return "text or list of texts";
    case OPTION_NETWORKS:
        return option->nobody ? "network or list of networks, or none"
                              : "network or list of networks, or all";
    case OPTION_PORTS: return "port or list of ports, or none";
    }
    return "";
}

static void print_bound(FILE *out, const struct option *option, double bound) {
    char text[40];
    if (option->type == OPTION_SIZE)
        value_format_size((uint64_t)bound, text, sizeof text);
    else if (option->type == OPTION_TIME)
        value_format_time((uint64_t)bound, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.10g", bound);
    fputs(text, out);
}

/* "size from 1MB to 4096GB; default 256MB" */
static void manual_describe(const struct option *option, char *facts, size_t capacity) {
    FILE *out = fmemopen(facts, capacity, "w");
    fputs(type_name(option), out);
    for (size_t i = 0; option->words != NULL && option->words[i] != NULL; i++)
        fprintf(out, "%s %s", i == 0 ? "" : ",", option->words[i]);
    if (option->most > 0) {
        fputs(" from ", out);
        print_bound(out, option, option->least);
        fputs(" to ", out);
        print_bound(out, option, option->most);
    }
    if (option->required)
        fputs("; required", out);
    else if (option->fallback != NULL)
        fprintf(out, "; default %s", option->fallback);
    else if (option->fallback_note != NULL)
        fprintf(out, "; default %s", option->fallback_note);
    fclose(out);
}

static void print_option(FILE *out, const struct manual_form *form, const struct option *option) {
    char facts[600], example[200], name[100];
    manual_describe(option, facts, sizeof facts);
    const char *parent = options_find_section(option->section)->parent;
    snprintf(name, sizeof name, "%s%s%s%s%s", parent != NULL ? parent : "",
             parent != NULL ? "." : "", option->section, option->section[0] != '\0' ? "." : "",
             option->name);
    snprintf(example, sizeof example, "%s = %s", option->name, option->example);
    form->option(out, name, facts);
    form->paragraph(out, option->documentation);
    form->example(out, example);
}

static void print_section(FILE *out, const struct manual_form *form,
                          const struct option_section *section) {
    char heading[100] = "Options of the whole proxy";
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
    OPTIONS_FOR_EACH (option, section->name)
        print_option(out, form, option);
}

static void print_codes(FILE *out, const struct manual_form *form) {
    char *text = NULL;
    size_t length;
    FILE *table = open_memstream(&text, &length);
    log_format_print_codes(table);
    fclose(table);
    text[length - 1] = '\0'; /* the last line end */
    form->heading(out, "Codes of log formats");
    form->paragraph(
        out, "A format of access_log or icap_log that is none of the words is a text with "
             "these codes. They are those of Squid's logformat and of Apache's LogFormat, and "
             "mean the same there. Between the percent sign and the code may stand, in this order: "
             "a sign for quoting (\" or / as escape = quoted, # or [ as escape = plain, ' to keep "
             "blanks), a width with - for left-aligned and 0 for leading zeros, and an argument in "
             "braces. \"%%\" is a percent sign. No letter may follow a code directly.");
    form->example(out, text);
    free(text);
}

static void print_manual(FILE *out, const struct manual_form *form) {
    form->begin(out);
    for (size_t i = 0; i < sizeof introduction / sizeof *introduction; i++) {
        const struct manual_part *part = &introduction[i];
        if (part->heading != NULL)
            form->heading(out, part->heading);
        form->paragraph(out, part->text);
        if (part->example != NULL)
            form->example(out, part->example);
    }
    for (const struct option_section *s = option_sections; s->name != NULL; s++)
        print_section(out, form, s);
    print_codes(out, form);
    form->end(out);
}

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

static void markdown_begin(FILE *out) {
    fputs("<!-- Printed from the option table in proxy/settings/options.c by \"make docs\". -->\n"
          "# The configuration of retort\n",
          out);
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

static void nothing(FILE *out) {
    (void)out;
}

void settings_print_markdown(FILE *out) {
    static const struct manual_form markdown = {
        markdown_begin,   markdown_heading, markdown_paragraph,
        markdown_example, markdown_option,  nothing,
    };
    print_manual(out, &markdown);
}

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

static void man_begin(FILE *out) {
    fputs(".\\\" Printed from the option table in proxy/settings/options.c by \"make docs\".\n"
          ".TH RETORT.CONF 5 \"\" \"retort\" \"File formats\"\n"
          ".SH NAME\n"
          "retort.conf \\- configuration of the caching HTTP and ICAP proxy retort\n"
          ".SH DESCRIPTION\n",
          out);
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

static void man_end(FILE *out) {
    fputs(".SH SEE ALSO\n.BR retort (8),\n.BR retortctl (1)\n", out);
}

void settings_print_man(FILE *out) {
    static const struct manual_form man = {
        man_begin, man_heading, man_paragraph, man_example, man_option, man_end,
    };
    print_manual(out, &man);
}
