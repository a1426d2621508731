#include "tools/icap_command.h"

#include "base/text.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

int icap_complain(int status, const char *message) {
    fprintf(stderr, "retortctl: %s\n", message);
    return status;
}

void icap_print(FILE *out, struct slice text) {
    while (text.length > 0) {
        uint32_t character;
        size_t length = text_decode(text, &character);
        if (length > 0 && !text_is_hidden(character))
            fwrite(text.base, 1, length, out);
        else
            fputc('?', out);
        length += length == 0;
        text = slice_make(text.base + length, text.length - length);
    }
}

static bool icap_command_refuse(const char *option, const char *reason) {
    fprintf(stderr, "retortctl: %s %s\n", option, reason);
    return false;
}

static bool icap_command_take_number(const char *option, const char *text, uint64_t most,
                                     uint64_t *number) {
    char reason[80];
    if (slice_to_uint64(slice_from(text), number) && *number > 0 && *number <= most)
        return true;
    snprintf(reason, sizeof reason, "needs a number from 1 to %llu", (unsigned long long)most);
    return icap_command_refuse(option, reason);
}

/* What is read on the way. */
struct icap_reading {
    struct icap_choices *choices;
    bool good;
};

/* Cuts the word in two. */
static void icap_command_take_filter(void *arg, const char *value) {
    struct icap_reading *reading = arg;
    struct icap_choices *choices = reading->choices;
    char error[RECORD_FILTER_ERROR], *text = (char *)(uintptr_t)value, *equals = strchr(text, '=');
    if (!reading->good)
        return;
    if (equals == NULL || choices->filter_count == RECORD_FILTERS_MAX) {
        reading->good =
            icap_command_refuse("--filter", "needs NAME=VALUE, and can be given only a few times");
        return;
    }
    *equals = '\0';
    reading->good = record_filter_set(&choices->filter, text, equals + 1, error) ||
                    icap_command_refuse("--filter", error);
    choices->filters[choices->filter_count].name = text;
    choices->filters[choices->filter_count++].value = equals + 1;
}

static void take_ignored(void *arg, const char *name) {
    struct icap_reading *reading = arg;
    struct icap_choices *choices = reading->choices;
    if (choices->ignored_count == ICAP_IGNORED_MAX)
        reading->good = icap_command_refuse("--ignore", "was given too many times");
    else
        choices->ignored[choices->ignored_count++] = name;
}

/* Sets `given` when the option is there. */
static bool icap_command_take_size(const struct command_line *line, const char *name,
                                   uint64_t *size, bool *given) {
    char option[32];
    const char *text = command_line_option(line, name);
    snprintf(option, sizeof option, "--%s", name);
    *given = text != NULL;
    return text == NULL || units_read_size(slice_from(text), size) ||
           icap_command_refuse(option, "needs a size: 4096, 64KB or 1MB");
}

static bool icap_command_take_count(const struct command_line *line, const char *name,
                                    uint64_t most, uint64_t *number) {
    char option[32];
    const char *text = command_line_option(line, name);
    snprintf(option, sizeof option, "--%s", name);
    return text == NULL || icap_command_take_number(option, text, most, number);
}

/* False: after a message. */
static bool icap_command_take_options(struct icap_choices *choices,
                                      const struct command_line *line) {
    struct icap_reading reading = {choices, true};
    bool preview_given;
    choices->words = line->words;
    choices->unmasked = command_line_option(line, "unmasked") != NULL;
    choices->service = command_line_option(line, "service");
    choices->ca = command_line_option(line, "ca");
    choices->exchanges = command_line_option(line, "exchanges");
    choices->seconds = command_line_option(line, "seconds");
    command_line_each(line, "filter", icap_command_take_filter, &reading);
    command_line_each(line, "ignore", take_ignored, &reading);
    return reading.good &&
           icap_command_take_size(line, "body", &choices->body, &choices->body_given) &&
           icap_command_take_size(line, "memory", &choices->memory, &choices->memory_given) &&
           icap_command_take_size(line, "preview", &choices->preview, &preview_given) &&
           icap_command_take_count(line, "concurrency", 64, &choices->concurrency) &&
           icap_command_take_count(line, "timeout", 3600, &choices->timeout);
}

int icap_command(const char *admin, const struct command_line *line,
                 int (*run)(struct icap_choices *choices)) {
    struct icap_choices choices = {
        .admin = admin, .json = line->json, .preview = 4096, .concurrency = 4, .timeout = 10};
    int status = icap_command_take_options(&choices, line) ? run(&choices) : ICAP_EXIT_TROUBLE;
    record_filter_release(&choices.filter);
    return status;
}
