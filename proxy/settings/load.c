#include "settings/load.h"

#include "base/log.h"
#include "settings/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool load_fail(struct load *load, int line, const char *format, ...) {
    va_list arguments;
    size_t length = (size_t)snprintf(load->error, SETTINGS_ERROR,
                                     line > 0 ? "%s:%d: " : "%s: ", load->document->path, line);
    if (length < SETTINGS_ERROR) {
        va_start(arguments, format);
        vsnprintf(load->error + length, SETTINGS_ERROR - length, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* The line for an error about an option: the line of its value, or else of its section. */
int load_line_of(const struct document_section *section, const char *name) {
    const struct document_value *value = document_value(section, name);
    return value != NULL ? value->line : section != NULL ? section->line : 0;
}

/* Writes the options of one section, or their defaults, into the destination. */
bool load_values(struct load *load, const struct document_section *section, const char *kind,
                 void *destination) {
    char reason[400];
    OPTIONS_FOR_EACH (option, kind) {
        if (document_value(section, option->name) != NULL)
            continue;
        if (option->required)
            return load_fail(load, section->line, "%s \"%s\" has no %s; write: %s = %s", kind,
                             section->title, option->name, option->name, option->example);
        value_set_fallback(option, destination);
    }
    for (size_t i = 0; section != NULL && i < section->value_count; i++) {
        const struct document_value *value = &section->values[i];
        if (!value_set(value->option, destination, value->text, reason, sizeof reason))
            return value->option->secret ? load_fail(load, value->line, "%s: the value %s",
                                                     value->option->name, reason)
                                         : load_fail(load, value->line, "%s: \"%s\" %s",
                                                     value->option->name, value->text, reason);
    }
    return true;
}

void load_release_values(const char *kind, void *destination) {
    OPTIONS_FOR_EACH (option, kind)
        value_release(option, destination);
}

bool load_check_name(struct load *load, const struct document_section *section) {
    size_t length = strspn(section->title, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789._-");
    if (length > 0 && length <= 64 && section->title[length] == '\0')
        return true;
    return load_fail(load, section->line,
                     "%s: \"%s\" is not a name: use up to 64 letters, digits and . _ -",
                     section->kind->name, section->title);
}

static const struct document_value *find_secret(const struct document *document) {
    for (size_t i = 0; i < document->section_count; i++)
        for (size_t j = 0; j < document->sections[i].value_count; j++)
            if (document->sections[i].values[j].option->secret)
                return &document->sections[i].values[j];
    return NULL;
}

void warn_about_secrets(const struct load *load) {
    const struct document_value *secret = find_secret(load->document);
    const char *path = load->settings->path;
    struct stat status;
    if (secret != NULL && stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        log_warn("%s:%d: %s is a secret, but every user of this machine can read the file: change "
                 "its group to retort's (chgrp) and run chmod 640 %s",
                 path, secret->line, secret->option->name, path);
}
