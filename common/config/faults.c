#include "config/faults.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULT_LONGEST = 6000 };

void faults_add_list(struct faults *faults, int place, const char *file, int line,
                     const char *format, va_list arguments) {
    char text[FAULT_LONGEST];
    if (faults->count == FAULTS_MAX) {
        faults->more++;
        return;
    }
    int length = snprintf(text, sizeof text, line > 0 ? "%s:%d: " : "%s: ", file, line);
    if ((size_t)length < sizeof text)
        vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    faults->kept[faults->count++] = (struct fault){.place = place, .text = xstrdup(text)};
}

void faults_add(struct faults *faults, int place, const char *file, int line, const char *format,
                ...) {
    va_list arguments;
    va_start(arguments, format);
    faults_add_list(faults, place, file, line, format, arguments);
    va_end(arguments);
}

/* Faults of one place keep the order in which they were found. */
static void sort_faults(struct faults *faults) {
    for (unsigned i = 1; i < faults->count; i++) {
        struct fault moved = faults->kept[i];
        unsigned at = i;
        for (; at > 0 && faults->kept[at - 1].place > moved.place; at--)
            faults->kept[at] = faults->kept[at - 1];
        faults->kept[at] = moved;
    }
}

void faults_join(struct faults *faults, char *error, size_t size) {
    enum { LAST_LINE = 80 };
    size_t used = 0;
    unsigned more = faults->more;
    error[0] = '\0';
    sort_faults(faults);
    for (unsigned i = 0; i < faults->count; i++) {
        size_t length = strlen(faults->kept[i].text);
        if (used + 1 + length + LAST_LINE >= size) {
            more++;
            continue;
        }
        used += (size_t)snprintf(error + used, size - used, "%s%s", used == 0 ? "" : "\n",
                                 faults->kept[i].text);
    }
    if (more > 0)
        snprintf(error + used, size - used, "\nand %u more errors", more);
}

void faults_release(struct faults *faults) {
    for (unsigned i = 0; i < faults->count; i++)
        free(faults->kept[i].text);
    *faults = (struct faults){0};
}
