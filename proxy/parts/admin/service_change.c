#include "admin/service_change.h"

#include "admin/settings_change.h"
#include "settings/load.h"

#include <stdio.h>
#include <string.h>

/* NULL: there is none. Names are those of both kinds. */
static const struct document_section *section_of_service(const struct document *document,
                                                         const char *name) {
    static const char *const kinds[] = {"service", "icap_service"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        DOCUMENT_FOR_EACH_SECTION (section, document, kinds[i])
            if (strcmp(section->title, name) == 0)
                return section;
    return NULL;
}

/* Another kind of service is another service. */
static bool service_change_take(struct settings_plan *plan, const char *service,
                                const struct document *files, char error[SETTINGS_ERROR]) {
    const struct document_section *from = section_of_service(files, service);
    const struct document_section *to = section_of_service(plan->document, service);
    bool same = from != NULL && to != NULL && from->kind == to->kind;
    if (same)
        document_take_section(plan->document, (size_t)(to - plan->document->sections), files, from);
    else
        snprintf(error, SETTINGS_ERROR,
                 "the files of the configuration have no such section for the service %.200s any "
                 "more: run \"retortctl reload\" to use what they say",
                 service);
    return same;
}

bool service_change_read(struct settings_plan *plan, const struct settings *before,
                         const char *service, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct document *files = document_parse(before->path, settings_table(), &faults);
    bool good = files != NULL && faults.count == 0;
    if (good)
        good = service_change_take(plan, service, files, error);
    else
        faults_join(&faults, error, SETTINGS_ERROR);
    faults_release(&faults);
    document_free(&files);
    return good;
}

static bool sections_equal(const struct document_section *a, const struct document_section *b) {
    bool equal = a->kind == b->kind && a->value_count == b->value_count;
    for (size_t i = 0; equal && i < a->value_count; i++)
        equal = a->values[i].option == b->values[i].option &&
                strcmp(a->values[i].text, b->values[i].text) == 0;
    return equal;
}

void service_change_note(struct settings *settings, const struct settings *before,
                         const char *anew) {
    struct document *old = settings_document(before), *new = settings_document(settings);
    for (size_t i = 0; i < settings->service_count; i++) {
        const char *name = settings->services[i].name;
        const struct document_section *a = section_of_service(old, name);
        const struct document_section *b = section_of_service(new, name);
        settings->services[i].as_before = a != NULL && b != NULL && sections_equal(a, b) &&
                                          (anew == NULL || strcmp(anew, name) != 0);
    }
    document_free(&old);
    document_free(&new);
}
