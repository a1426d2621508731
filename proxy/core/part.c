#include "part.h"

#include "net/address.h"

#include <string.h>

static const struct {
    const char *name, *options;
} rows[] = {
#define PART(number, name, needs, what, options) [PART_##number] = {#name, options},
#include "parts.def"
#undef PART
};

bool parts_await_end(void) {
    enum { PATIENCE = 4000 }; /* milliseconds */
    bool all = true;
    PARTS_FOR_EACH (number, process.await_end)
        all &= part_table[number]->process.await_end(PATIENCE);
    return all;
}

const char *part_name(enum part_number number) {
    return rows[number].name;
}

/* Is the name one of the words? */
static bool part_lists(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

enum part_number part_of_option(const char *section, const char *option) {
    enum { NAME = 128 };
    char name[NAME];
    bool whole = option == NULL || section[0] == '\0';
    snprintf(name, sizeof name, "%s%s%s", section, whole ? "" : ".", option != NULL ? option : "");
    for (unsigned i = PART_CORE + 1; name[0] != '\0' && i < PART_COUNT; i++)
        if (part_lists(rows[i].options, name))
            return i;
    return PART_CORE;
}

enum part_number part_of_protocol(const char *name) {
    PARTS_FOR_EACH (number, protocol.name)
        if (strcmp(part_table[number]->protocol.name, name) == 0)
            return number;
    return PART_CORE;
}

bool part_refuse(enum part_number number, const char *name, char *text, size_t size) {
    snprintf(text, size,
             "%s: this retort was built without the part %s; build it with configure "
             "--with-parts=all, or with a list that names %s",
             name, part_name(number), part_name(number));
    return true;
}

const char *part_socket_path(const struct settings *settings) {
    PARTS_FOR_EACH (number, socket.address) {
        const struct address *address = part_table[number]->socket.address(settings);
        if (address != NULL && address->any.sa_family == AF_UNIX)
            return address->local.sun_path;
    }
    return NULL;
}

const char *part_list(bool built, char text[PART_LIST]) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = PART_CORE + 1; i < PART_COUNT && length < PART_LIST; i++)
        if ((part_table[i] != NULL) == built)
            length += (size_t)snprintf(text + length, PART_LIST - length, "%s%s",
                                       length > 0 ? ", " : "", rows[i].name);
    return length > 0 ? text : "none";
}
