#include "tools/commands.h"

#include "base/text.h"
#include "tools/admin_page.h"
#include "tools/event_reader.h"
#include "tools/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAIL_WAIT = 1000 /* milliseconds */ };

bool tail_filters_are_good(const struct command_line *line) {
    for (char **word = line->words; *word != NULL; word++)
        if (**word == '=' || strchr(*word, '=') == NULL) {
            fprintf(stderr,
                    "retortctl: \"%s\" is no filter: write NAME=VALUE, as in status=5xx; see "
                    "retortctl %s --help\n",
                    *word, line->command->name);
            return false;
        }
    return true;
}

static void tail_show_time(const json_t *json) {
    struct tm parts;
    char text[16] = "-";
    double time = json_number_value(json_object_get(json, "time"));
    if (!(time > 0 && time < 1e12))
        time = 0;
    time_t seconds = (time_t)time;
    if (localtime_r(&seconds, &parts) != NULL)
        strftime(text, sizeof text, "%H:%M:%S", &parts);
    printf("%s.%03d ", text, (int)((time - (double)seconds) * 1000) % 1000);
}

static enum answer_colour style_of_status(long long status) {
    if (status >= 500 || status == 0)
        return ANSWER_BAD;
    return status >= 400 ? ANSWER_NOTE : ANSWER_PLAIN;
}

static void tail_show_services(const json_t *json) {
    size_t i;
    json_t *service;
    json_array_foreach(json_object_get(json, "icap"), i, service)
        printf(" %s:%s:%lldms", admin_page_text(service, "service"),
               admin_page_text(service, "verdict"), admin_page_number(service, "ms"));
}

static void tail_show(const json_t *json) {
    long long status = admin_page_number(json, "status");
    const char *error = admin_page_text(json, "error");
    tail_show_time(json);
    printf("%s%3lld%s %-11s %8.1f ms %-15s ", terminal_begin(stdout, style_of_status(status)),
           status, terminal_end(stdout), admin_page_text(json, "result"),
           json_number_value(json_object_get(json, "ms")), admin_page_text(json, "client"));
    printf("%s %s", admin_page_text(json, "method"), admin_page_text(json, "url"));
    tail_show_services(json);
    if (error[0] != '\0')
        printf(" error:%s", error);
    puts(json_is_true(json_object_get(json, "aborted")) ? " aborted" : "");
}

static bool has_hidden(struct slice text) {
    uint32_t character;
    while (text.length > 0) {
        size_t length = text_decode(text, &character);
        if (length == 0 || text_is_hidden(character))
            return true;
        text = slice_make(text.base + length, text.length - length);
    }
    return false;
}

/* The line as it came, unless something in it could steer a terminal: retort writes no such line. */
static void tail_print(const struct event_read *event) {
    if (has_hidden(event->line))
        json_dumpf(event->json, stdout, JSON_ENSURE_ASCII | JSON_COMPACT);
    else
        fwrite(event->line.base, 1, event->line.length, stdout);
    putchar('\n');
}

static int tail_follow(struct event_reader *reader, bool json, unsigned long count) {
    struct event_read event;
    while (count > 0 && !ferror(stdout)) {
        switch (event_reader_next(reader, &event, TAIL_WAIT)) {
        case EVENT_READER_TRANSACTION:
            if (json)
                tail_print(&event);
            else
                tail_show(event.json);
            count--;
            break;
        case EVENT_READER_QUIET: break;
        case EVENT_READER_END: return EXIT_FAILURE;
        }
    }
    return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int tail_command(const char *where, const struct command_line *line) {
    unsigned long count = command_line_number(line, "count", ULONG_MAX, LONG_MAX);
    if (count == 0 || !tail_filters_are_good(line))
        return COMMAND_USAGE;
    struct event_reader *reader = event_reader_open(where, line->words);
    if (reader == NULL)
        return EXIT_FAILURE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status = tail_follow(reader, line->json, count);
    event_reader_close(&reader);
    return status;
}
