/* docs/CONFIGURATION.md and retort.conf(5), printed from the option table. */
#include "config/manual.h"
#include "log/format.h"
#include "settings/options.h"
#include "settings/settings.h"

#include <stdlib.h>

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
     "A size is a number of bytes, or a number with KB, MB or GB, which are powers of 1024; KB "
     "and K mean KB, and so on. A time is a number with ms, s, m, h or d; 0 needs no unit. A "
     "switch is true or false; yes, no, on and off work as well.",
     NULL},
};

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
             "braces. \"%%\" is a percent sign. No letter may follow a code directly. A field that "
             "carries "
             "credentials or a session, such as Authorization or Cookie, is refused.");
    form->example(out, text);
    free(text);
}

static void print_manual(FILE *out, const struct manual_form *form) {
    for (size_t i = 0; i < sizeof introduction / sizeof *introduction; i++) {
        const struct manual_part *part = &introduction[i];
        if (part->heading != NULL)
            form->heading(out, part->heading);
        form->paragraph(out, part->text);
        if (part->example != NULL)
            form->example(out, part->example);
    }
    manual_print(out, form, settings_table(), "Options of the whole proxy");
    print_codes(out, form);
}

void settings_print_markdown(FILE *out) {
    fputs("<!-- Printed from the option table in proxy/core/settings/options.c by \"make docs\". "
          "-->\n"
          "# The configuration of retort\n",
          out);
    print_manual(out, &manual_markdown);
}

void settings_print_man(FILE *out) {
    fputs(".\\\" Printed from the option table in proxy/core/settings/options.c by \"make docs\".\n"
          ".TH RETORT.CONF 5 \"\" \"retort\" \"File formats\"\n"
          ".SH NAME\n"
          "retort.conf \\- configuration of the caching HTTP and ICAP proxy retort\n"
          ".SH DESCRIPTION\n",
          out);
    print_manual(out, &manual_man);
    fputs(".SH SEE ALSO\n.BR retort (8),\n.BR retortctl (1)\n", out);
}
