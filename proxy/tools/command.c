#include "tools/command.h"

#include "admin/helpers_page.h"
#include "record/recorded_exchange.h"

#include <string.h>

#define OPTIONS(...) ((const struct call_option[]){__VA_ARGS__, {NULL, 0, NULL, NULL}})
#define CALL(...)    {__VA_ARGS__},
#define PAGE(...)
#define WORDS(...)   __VA_ARGS__,
#define COMMAND(...) {__VA_ARGS__},

const struct call commands[] = {
#include "admin/calls.def"
    {.name = NULL}};

const struct call *command_at(const struct call *row) {
    while (row->name == NULL && row->path != NULL)
        row++;
    return row;
}

const struct call_option command_common[] = {
    {"socket", 's', "WHERE", "admin.listen: path, ADDRESS:PORT, https://HOST:PORT"},
    {"helperd", 'H', "PATH", "retort-helperd's socket (else $RETORT_HELPERD)"},
    {"token-file", 't', "FILE", "a token for the admin plane (else $RETORT_TOKEN)"},
    {"ca-file", 0, "FILE", "authorities for https:// (else $RETORT_CA_FILE)"},
    {"certificate", 0, "FILE", "own one for https:// (else $RETORT_CERTIFICATE)"},
    {"key", 0, "FILE", "its key, if not in that file (else $RETORT_KEY)"},
    {"json", 'j', NULL, "print the answer in JSON"},
    {"help", 'h', NULL, "print a short help, also behind a command"},
    {"version", 'V', NULL, "print the version of retortctl itself"},
    {NULL, 0, NULL, NULL}};

static const char *second_word(const struct call *command) {
    const char *blank = strchr(command->name, ' ');
    return blank != NULL ? blank + 1 : NULL;
}

static bool begins_with_word(const struct call *command, const char *word) {
    size_t length = strlen(word);
    return strncmp(command->name, word, length) == 0 &&
           (command->name[length] == ' ' || command->name[length] == '\0');
}

const struct call *command_find(const char *first, const char *second) {
    COMMAND_FOR_EACH (command) {
        const char *own = second_word(command);
        if (begins_with_word(command, first) &&
            (own == NULL ? second == NULL : second != NULL && strcmp(own, second) == 0))
            return command;
    }
    return NULL;
}

bool command_is_below(const struct call *command, const char *first) {
    return second_word(command) != NULL && strchr(first, ' ') == NULL &&
           begins_with_word(command, first);
}

const char *command_last_word(const struct call *command) {
    const char *second = second_word(command);
    return second != NULL ? second : command->name;
}

bool command_has_two_words(const struct call *command) {
    return second_word(command) != NULL;
}

bool command_has_below(const struct call *command) {
    const struct call *next = command_at(command + 1);
    return next->name != NULL && command_is_below(next, command->name);
}
