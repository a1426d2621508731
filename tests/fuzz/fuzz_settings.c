/* Configuration files: settings or errors that name the file, never anything else. What was
 * loaded says the same when it is loaded again, and its classes and maps can be asked. What stands
 * behind a line "%%" is a second file, which the first one includes as "201". */
#include "admin/settings_list.h"
#include "base/assert.h"
#include "settings/settings.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DIRECTORY "/proc/self/fd/"

/* The descriptors of the files in memory, which are also their names in DIRECTORY. */
enum { MAIN_FILE = 200, SECOND_FILE = 201 };

static void write_memory(int descriptor, const uint8_t *data, size_t size) {
    if (ftruncate(descriptor, 0) != 0) {
        int made = memfd_create("retort.conf", MFD_CLOEXEC);
        ASSERT(made >= 0 && dup2(made, descriptor) == descriptor);
        close(made);
        log_set_level(LOG_LEVEL_ERROR);
    }
    ASSERT(ftruncate(descriptor, 0) == 0);
    ASSERT(pwrite(descriptor, data, size, 0) == (ssize_t)size);
}

/* Writes the files, and returns the path of the first one. */
static const char *file_of(const uint8_t *data, size_t size) {
    const uint8_t *mark = memmem(data, size, "\n%%\n", 4);
    size_t first = mark != NULL ? (size_t)(mark - data) : size,
           second = mark != NULL ? first + 4 : size;
    write_memory(MAIN_FILE, data, first);
    write_memory(SECOND_FILE, data + second, size - second);
    return DIRECTORY "200";
}

/* The name of a file in DIRECTORY and a colon. An include may name any descriptor, such as 2. */
static bool names_file(struct slice line) {
    if (!slice_starts_with(line, SLICE(DIRECTORY)))
        return false;
    size_t at = strlen(DIRECTORY), first = at;
    while (at < line.length && line.base[at] >= '0' && line.base[at] <= '9')
        at++;
    return at > first && at < line.length && line.base[at] == ':';
}

/* Each line is an error in one of the files; the last one may count more. */
static void check_errors(const char *error) {
    size_t length = strnlen(error, SETTINGS_ERROR);
    struct slice rest = slice_make(error, length), line;
    ASSERT(length < SETTINGS_ERROR && length > 0);
    while (slice_next_line(&rest, &line)) {
        bool counts = slice_starts_with(line, SLICE("and ")) && rest.length == 0;
        ASSERT(counts || names_file(line));
    }
}

/* The class of a rule, by its number. */
static const struct url_class *class_of(const struct settings *settings, size_t rule) {
    int kind = 0;
    while (rule >= settings->rule_first[kind] + settings->rule_count[kind])
        kind++;
    return rule_kind_class(settings, (enum rule_kind)kind, rule - settings->rule_first[kind]);
}

/* All rules at once say what each class says by itself. */
static void ask_rules(const struct settings *settings, const struct class_subject *subject,
                      const struct url *url) {
    struct cache_policy policy;
    size_t count = settings->rule_first[RULE_KINDS - 1] + settings->rule_count[RULE_KINDS - 1];
    struct arena arena;
    arena_init(&arena);
    const uint64_t *bits = rules_find(settings->rules, subject, &arena);
    const uint64_t *glance = rules_glance(settings->rules, url, subject->url);
    ASSERT(glance == NULL || glance == bits);
    bits = rules_with_type(settings->rules, bits, subject->content_type, &arena);
    policy_resolve(settings->policies, settings->policy_count, bits, &policy);
    for (size_t rule = 0; rule < count; rule++)
        ASSERT((bits[rule / 64] >> rule % 64 & 1) ==
               url_class_matches(class_of(settings, rule), subject));
    arena_release(&arena);
}

static void ask_classes(const struct settings *settings) {
    static const char *const urls[] = {"http://img.example.com/a/b.jpg?c=d",
                                       "http://www.example.com/ads/BANNER.gif",
                                       "http://EXAMPLE.org/", "http://10.0.0.1/index.html"};
    struct class_subject subject = {.method = SLICE("GET"), .content_type = SLICE("image/jpeg")};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct url url;
        subject.url = slice_from(urls[i]);
        ASSERT(url_parse(&url, subject.url));
        subject.host = url.host;
        subject.path = url_path(&url);
        ask_rules(settings, &subject, &url);
        settings_find_map(settings, subject.host, subject.path);
    }
    settings_connect_port_allowed(settings, 443);
}

static void check_bounds(const struct settings *settings) {
    ASSERT(settings->workers >= 1 && settings->workers <= 1024);
    ASSERT(settings->cache.max_object <= settings->cache.memory);
    ASSERT(settings->cache.heuristic_fraction >= 0 && settings->cache.heuristic_fraction <= 1);
    for (size_t i = 0; i < settings->service_count; i++) {
        const struct service_settings *service = &settings->services[i];
        ASSERT(service->preview <= service->keep && service->down_min <= service->down_max);
        ASSERT(service->endpoint_count >= 1 && service->endpoint_count <= ICAP_ENDPOINTS_MAX);
        for (unsigned j = 0; j < service->endpoint_count; j++)
            ASSERT(service->endpoints[j].host.length > 0 && service->endpoints[j].port > 0);
    }
    for (size_t i = 0; i < settings->map_count; i++)
        ASSERT(settings->maps[i].path[0] == '/' && settings->maps[i].origin.host.length > 0);
}

static void check_loaded(struct settings *settings, const char *path) {
    char error[SETTINGS_ERROR] = "";
    struct settings *again = settings_load(path, error);
    ASSERT(again != NULL);
    char *text = settings_to_json(settings), *text_again = settings_to_json(again);
    json_t *json = json_loads(text, 0, NULL);
    ASSERT(json_is_object(json) && strcmp(text, text_again) == 0);
    check_bounds(settings);
    ask_classes(settings);
    json_decref(json);
    free(text);
    free(text_again);
    settings_release(&again);
    ASSERT(again == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[SETTINGS_ERROR] = "";
    const char *path = file_of(data, size);
    struct settings *settings = settings_load(path, error);
    if (settings == NULL) {
        check_errors(error);
    } else {
        check_loaded(settings, path);
        settings_release(&settings);
    }
    return 0;
}
