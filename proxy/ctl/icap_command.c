#include "ctl/icap_command.h"

#include "base/text.h"

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

static int icap_command_misused(const char *message) {
    icap_complain(EXIT_FAILURE, message);
    fputs("see retortctl icap --help\n", stderr);
    return ICAP_EXIT_TROUBLE;
}

static bool icap_command_refuse(const char *option, const char *reason) {
    fprintf(stderr, "retortctl: %s %s\n", option, reason);
    return false;
}

/* "1000", "64KB", "1MB" */
static bool take_size(const char *option, const char *text, uint64_t *size) {
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    unsigned shift = strcmp(unit, "KB") == 0 ? 10 : strcmp(unit, "MB") == 0 ? 20 : 0;
    if (!slice_to_uint64(slice_make(text, digits), size) || (shift == 0 && *unit != '\0') ||
        *size > UINT32_MAX)
        return icap_command_refuse(option, "needs a size: 4096, 64KB or 1MB");
    *size <<= shift;
    return true;
}

static bool icap_command_take_number(const char *option, const char *text, uint64_t most,
                                     uint64_t *number) {
    char reason[80];
    if (slice_to_uint64(slice_from(text), number) && *number > 0 && *number <= most)
        return true;
    snprintf(reason, sizeof reason, "needs a number from 1 to %llu", (unsigned long long)most);
    return icap_command_refuse(option, reason);
}

static bool icap_command_take_filter(struct icap_choices *options, char *text) {
    char error[RECORD_FILTER_ERROR], *equals = strchr(text, '=');
    if (equals == NULL || options->filter_count == RECORD_FILTERS_MAX)
        return icap_command_refuse("--filter",
                                   "needs NAME=VALUE, and can be given only a few times");
    *equals = '\0';
    if (!record_filter_set(&options->filter, text, equals + 1, error))
        return icap_command_refuse("--filter", error);
    options->filters[options->filter_count].name = text;
    options->filters[options->filter_count++].value = equals + 1;
    return true;
}

static bool take_ignored(struct icap_choices *options, const char *name) {
    if (options->ignored_count == ICAP_IGNORED_MAX)
        return icap_command_refuse("--ignore", "was given too many times");
    options->ignored[options->ignored_count++] = name;
    return true;
}

static bool icap_command_take_value(struct icap_choices *options, const char *name, char *value) {
    if (strcmp(name, "--filter") == 0)
        return icap_command_take_filter(options, value);
    if (strcmp(name, "--ignore") == 0)
        return take_ignored(options, value);
    if (strcmp(name, "--body") == 0)
        return options->body_given = take_size(name, value, &options->body);
    if (strcmp(name, "--memory") == 0)
        return options->memory_given = take_size(name, value, &options->memory);
    if (strcmp(name, "--preview") == 0)
        return take_size(name, value, &options->preview);
    if (strcmp(name, "--concurrency") == 0)
        return icap_command_take_number(name, value, 64, &options->concurrency);
    if (strcmp(name, "--timeout") == 0)
        return icap_command_take_number(name, value, 3600, &options->timeout);
    const struct {
        const char *name, **value;
    } texts[] = {{"--service", &options->service},
                 {"--ca", &options->ca},
                 {"--exchanges", &options->exchanges},
                 {"--seconds", &options->seconds}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].value = value;
            return true;
        }
    return icap_command_refuse(name, "is not an option of this command");
}

static bool take_word(struct icap_choices *options, const char *word) {
    if (options->word_count == (int)(sizeof options->words / sizeof *options->words))
        return icap_command_refuse(word, "is one argument too many");
    options->words[options->word_count++] = word;
    return true;
}

/* Options may stand anywhere. */
static bool icap_command_take_options(struct icap_choices *options, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        bool good = true;
        if (strcmp(argv[i], "--unmasked") == 0)
            options->unmasked = true;
        else if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-j") == 0)
            options->json = true;
        else if (strncmp(argv[i], "--", 2) != 0)
            good = take_word(options, argv[i]);
        else if (i + 1 == argc)
            good = icap_command_refuse(argv[i], "is not an option, or its value is missing");
        else {
            good = icap_command_take_value(options, argv[i], argv[i + 1]);
            i++;
        }
        if (!good)
            return false;
    }
    return true;
}

static int run_record(struct icap_choices *options) {
    return icap_record(options);
}

static const struct icap_verb {
    const char *name;
    int (*run)(struct icap_choices *options);
} verbs[] = {
    {"record", run_record},
    {"show", icap_show},
    {"replay", icap_replay},
};

static int icap_command_run(struct icap_choices *options, const char *name, int argc, char **argv) {
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(name, verbs[i].name) != 0)
            continue;
        if (!icap_command_take_options(options, argc, argv))
            return ICAP_EXIT_TROUBLE;
        return verbs[i].run(options);
    }
    return icap_command_misused("there is no such command");
}

int icap_command(const char *admin, bool json, int argc, char **argv) {
    struct icap_choices options = {
        .admin = admin, .json = json, .preview = 4096, .concurrency = 4, .timeout = 10};
    int status = argc < 2 ? icap_command_misused("the command is missing")
                          : icap_command_run(&options, argv[1], argc - 2, argv + 2);
    record_filter_release(&options.filter);
    return status;
}
