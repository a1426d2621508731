#include "settings/load.h"

#include "base/log.h"
#include "config/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool load_fail(struct load *load, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    document_blame(load->document, load->faults, line, format, arguments);
    va_end(arguments);
    return false;
}

static void load_log(const struct load *load, enum log_level level, int line, const char *format,
                     va_list arguments) __attribute__((format(printf, 4, 0)));
static void load_log(const struct load *load, enum log_level level, int line, const char *format,
                     va_list arguments) {
    char text[2000];
    if (load->quiet)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    if (document_line(line) > 0)
        log_write(level, "%s:%d: %s", document_file(load->document, line), document_line(line),
                  text);
    else
        log_write(level, "%s: %s", document_file(load->document, line), text);
}

void load_warn(const struct load *load, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    load_log(load, LOG_LEVEL_WARN, line, format, arguments);
    va_end(arguments);
}

void load_tell(const struct load *load, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    load_log(load, LOG_LEVEL_INFO, line, format, arguments);
    va_end(arguments);
}

/* The line for an error about an option: the line of its value, or else of its section. */
int load_line_of(const struct document_section *section, const char *name) {
    const struct document_value *value = document_value(section, name);
    return value != NULL ? value->line : section != NULL ? section->line : 0;
}

bool load_fail_value(struct load *load, const struct document_value *value, const char *between,
                     const char *reason) {
    return document_fail_value(load->document, load->faults, value, between, reason);
}

bool load_values(struct load *load, const struct document_section *section, const char *kind,
                 void *destination) {
    return document_read_values(load->document, load->faults, section, kind, load->owner,
                                destination);
}

void load_release_values(const char *kind, void *destination) {
    document_release_values(settings_table(), kind,
                            options_find_section(settings_table(), kind)->owner, destination);
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

static const struct document_value *find_secret(const struct document *document, const char *file) {
    for (size_t i = 0; i < document->section_count; i++)
        for (size_t j = 0; j < document->sections[i].value_count; j++) {
            const struct document_value *value = &document->sections[i].values[j];
            if (shown_is_credential(value->option, value->text) &&
                strcmp(document_file(document, value->line), file) == 0)
                return value;
        }
    return NULL;
}

void warn_about_secrets(const struct load *load) {
    struct stat status;
    for (size_t i = 0; i < load->document->file_count; i++) {
        const char *path = load->document->files[i];
        const struct document_value *secret = find_secret(load->document, path);
        if (secret != NULL && stat(path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
            load_warn(load, secret->line,
                      "%s is a secret, but every user of this machine can read the file: change "
                      "its group to retort's (chgrp) and run chmod 640 %s",
                      secret->option->name, path);
    }
}
