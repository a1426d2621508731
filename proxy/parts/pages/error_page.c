#include "pages/error_page.h"

#include "http/preference.h"

bool error_page_is_for(const struct error_page_settings *page, unsigned status) {
    return status >= ERROR_PAGE_STATUS_FIRST &&
           status < ERROR_PAGE_STATUS_FIRST + ERROR_PAGE_STATUSES &&
           page->statuses[status - ERROR_PAGE_STATUS_FIRST];
}

/* A file without a language is for everybody, but one in the client's language is better. */
static struct preference preference_of_file(const struct error_page_file *file,
                                            struct slice accept_language) {
    if (file->language == NULL)
        return (struct preference){.quality = 1, .at = PREFERENCE_RANGES};
    return preference_of_language(accept_language, slice_from(file->language));
}

const struct error_page_file *error_page_find(const struct error_page_settings *page,
                                              enum page_type type, struct slice accept_language) {
    const struct error_page_file *best = NULL;
    struct preference best_preference = {0};
    for (size_t i = 0; i < page->file_count; i++) {
        const struct error_page_file *file = &page->files[i];
        if (file->type != type)
            continue;
        struct preference preference = preference_of_file(file, accept_language);
        if (best != NULL && !preference_is_better(preference, best_preference))
            continue;
        best = file;
        best_preference = preference;
    }
    return best;
}

bool error_page_has_languages(const struct error_page_settings *page, enum page_type type) {
    unsigned count = 0;
    for (size_t i = 0; i < page->file_count; i++)
        count += page->files[i].type == type;
    return count > 1;
}
