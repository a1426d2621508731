#include "admin/service_control_page.h"
#include "admin/settings.h"
#include "admin/settings_list.h"
#include "admin/settings_plan.h"

#include "admin/overrides.h"
#include "admin/settings_page.h"
#include "base/assert.h"
#include "config/document.h"
#include "match/url_class.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_ERROR = 8000 };

/* The names in a sentence: "gray, gzip". Each name is at most so long that many fit. */
struct name_list {
    char text[4000];
    size_t length;
};

static void name_list_add(struct name_list *list, const char *name) {
    int wrote = snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                         list->length > 0 ? ", " : "", name);
    if (wrote > 0 && list->length + (size_t)wrote < sizeof list->text)
        list->length += (size_t)wrote;
    else
        list->text[list->length] = '\0';
}

static void page_refuse(struct page *page, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void page_refuse(struct page *page, unsigned status, const char *format, ...) {
    char error[CONTROL_ERROR];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, sizeof error, format, arguments);
    va_end(arguments);
    page_error(page, status, error);
}

static const struct service_settings *service_of_name(const struct settings *settings,
                                                      const char *name) {
    for (size_t i = 0; i < settings->service_count; i++)
        if (strcmp(settings->services[i].name, name) == 0)
            return &settings->services[i];
    return NULL;
}

static void refuse_name(struct page *page, const struct settings *settings, const char *name) {
    struct name_list names = {.text = ""};
    for (size_t i = 0; i < settings->service_count; i++)
        name_list_add(&names, settings->services[i].name);
    if (settings->service_count == 0)
        page_refuse(page, 404,
                    "the configuration in use has no services; add a section and reload");
    else
        page_refuse(
            page, 404,
            "there is no service \"%.200s\" in the configuration in use, which has %s; if it "
            "was just added to the file, reload",
            name, names.text);
}

/* Load and unload. */

/* What the files say of the option; NULL: nothing. */
static const char *configured(const struct settings *settings,
                              const struct service_settings *service) {
    DOCUMENT_FOR_EACH_SECTION (section, admin_settings_of(settings)->plan->document,
                               service_section(service)) {
        const struct document_value *value = document_value(section, "disabled");
        if (strcmp(section->title, service->name) == 0)
            return value == NULL ? NULL : value->text;
    }
    return NULL;
}

/* The change of the option; where the files say the same, it becomes what they say. */
static struct overrides *change_of(const struct settings *settings,
                                   const struct service_settings *service, bool disabled) {
    char name[400], error[OVERRIDE_ERROR];
    const char *wanted = disabled ? "true" : "false", *files = configured(settings, service);
    bool as_files = strcmp(files == NULL ? "false" : files, wanted) == 0;
    struct overrides *changes = overrides_new();
    json_t *value = as_files ? json_null() : json_string(wanted);
    snprintf(name, sizeof name, "%s.%s.disabled", service_section(service), service->name);
    bool good = overrides_put_json(changes, name, value, error, sizeof error);
    ASSERT(good); /* a service has this option */
    json_decref(value);
    return changes;
}

static size_t listed_count(const struct adapt_settings *adapt) {
    return adapt->service_count + adapt->disabled_count + adapt->unloaded_count;
}

/* SIZE_MAX: the section does not name it. */
static size_t service_control_page_place(const struct adapt_settings *adapt, const char *service) {
    for (size_t i = 0; i < listed_count(adapt); i++)
        if (strcmp(adapt->services[i]->name, service) == 0)
            return i;
    return SIZE_MAX;
}

/* Why messages do not come to it although it is loaded. */
static json_t *notes_on(const struct settings *settings, const char *service) {
    json_t *notes = json_array();
    bool named = false;
    for (size_t i = 0; i < settings->adapt_count; i++) {
        const struct adapt_settings *adapt = &settings->adapts[i];
        const char *class = url_class_name(adapt->url_class);
        size_t place = service_control_page_place(adapt, service);
        named |= place != SIZE_MAX;
        if (place != SIZE_MAX && place >= adapt->service_count &&
            place < adapt->service_count + adapt->disabled_count)
            json_array_append_new(
                notes, json_sprintf("adapt %s has %s among its disabled services: retortctl unset "
                                    "adapt.%s.disabled",
                                    class, service, class));
    }
    if (!named)
        json_array_append_new(
            notes, json_sprintf(
                       "no adapt section names %s, so no message passes through it: add it to the "
                       "services of one, as in adapt all { services = { %s } }",
                       service, service));
    return notes;
}

static void change_loading(struct page *page, const struct admin_calls *calls,
                           const struct page_request *request, bool load) {
    const char *name = page_argument(request, "name");
    struct settings *settings = calls->settings(calls->context);
    const struct service_settings *service = service_of_name(settings, name);
    if (service == NULL) {
        refuse_name(page, settings, name);
    } else {
        struct overrides *changes = change_of(settings, service, !load);
        json_t *begin = json_pack("{s:s, s:b, s:o}", "service", service->name, "loaded", (int)load,
                                  "notes", load ? notes_on(settings, service->name) : json_array());
        settings_page_change(page, calls, request, changes, load ? service->name : NULL, begin);
        overrides_free(&changes);
    }
    settings_release(&settings);
}

void service_control_page_load(struct page *page, const struct admin_calls *calls,
                               const struct page_request *request) {
    change_loading(page, calls, request, true);
}

void service_control_page_unload(struct page *page, const struct admin_calls *calls,
                                 const struct page_request *request) {
    change_loading(page, calls, request, false);
}

/* Order. */

static const struct adapt_settings *chain_of_class(const struct settings *settings,
                                                   const char *class) {
    for (size_t i = 0; i < settings->adapt_count; i++)
        if (strcmp(url_class_name(settings->adapts[i].url_class), class) == 0)
            return &settings->adapts[i];
    return NULL;
}

static void refuse_class(struct page *page, const struct settings *settings, const char *class) {
    struct name_list names = {.text = ""};
    for (size_t i = 0; i < settings->adapt_count; i++)
        name_list_add(&names, url_class_name(settings->adapts[i].url_class));
    if (settings->adapt_count == 0)
        page_refuse(page, 404, "the configuration in use has no adapt section; add one and reload");
    else
        page_refuse(page, 404,
                    "there is no section adapt \"%.200s\"; those of the configuration in use are "
                    "of the classes %s",
                    class, names.text);
}

static bool service_control_page_has_word(const json_t *words, const char *word) {
    size_t i;
    json_t *each;
    json_array_foreach(words, i, each) if (strcmp(json_string_value(each), word) == 0) return true;
    return false;
}

/* The names between commas. NULL: one is there twice, or is none of the chain; the page says which. */
static json_t *named_services(struct page *page, const struct settings *settings,
                              const struct adapt_settings *adapt, const char *text) {
    char *copy = xstrdup(text), *rest = copy, *word;
    json_t *words = json_array();
    const char *class = url_class_name(adapt->url_class);
    bool good = true;
    while (good && (word = strsep(&rest, ",")) != NULL) {
        good = false;
        if (service_of_name(settings, word) == NULL)
            refuse_name(page, settings, word);
        else if (service_control_page_place(adapt, word) == SIZE_MAX)
            page_refuse(
                page, 400,
                "%s is not in the chain of adapt %s: order changes the order alone; to add "
                "it, name all services in retortctl set, one adapt.%s.services=NAME for each",
                word, class, class);
        else if (service_control_page_has_word(words, word))
            page_refuse(page, 400, "%s is there twice; name each service once", word);
        else
            good = json_array_append_new(words, json_string(word)) == 0;
    }
    if (!good) {
        json_decref(words);
        words = NULL;
    }
    free(copy);
    return words;
}

/* False: a service is left out; the page says which. */
static bool names_all(struct page *page, const struct adapt_settings *adapt, const json_t *words) {
    struct name_list missing = {.text = ""};
    for (size_t i = 0; i < listed_count(adapt); i++)
        if (!service_control_page_has_word(words, adapt->services[i]->name))
            name_list_add(&missing, adapt->services[i]->name);
    if (missing.length > 0)
        page_refuse(page, 400,
                    "the order leaves out %s: name all services of the chain; \"retortctl services "
                    "unload NAME\" takes one out of all chains, and \"retortctl set "
                    "adapt.%s.disabled=NAME\" out of this one",
                    missing.text, url_class_name(adapt->url_class));
    return missing.length == 0;
}

static void order_chain(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request, const struct adapt_settings *adapt,
                        json_t *words) {
    char name[400], error[OVERRIDE_ERROR];
    struct overrides *changes = overrides_new();
    snprintf(name, sizeof name, "adapt.%s.services", url_class_name(adapt->url_class));
    if (overrides_put_json(changes, name, words, error, sizeof error))
        settings_page_change(
            page, calls, request, changes, NULL,
            json_pack("{s:s, s:O}", "class", url_class_name(adapt->url_class), "services", words));
    else
        page_error(page, 400, error);
    overrides_free(&changes);
}

void service_control_page_order(struct page *page, const struct admin_calls *calls,
                                const struct page_request *request) {
    const char *class = page_argument(request, "class");
    struct settings *settings = calls->settings(calls->context);
    const struct adapt_settings *adapt = chain_of_class(settings, class);
    json_t *words = NULL;
    if (adapt == NULL)
        refuse_class(page, settings, class);
    else
        words = named_services(page, settings, adapt, page_argument(request, "services"));
    if (words != NULL && names_all(page, adapt, words))
        order_chain(page, calls, request, adapt, words);
    json_decref(words);
    settings_release(&settings);
}
