/* Services inside the proxy: service sections. */
#include "inside/settings.h"

#include "base/assert.h"
#include "config/config_file.h"
#include "settings/load.h"
#include "settings/option_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

static const struct option_section sections[] = {
    {
        .name = "service",
        .after = "icap_service",
        .title = "NAME",
        .documentation =
            "Defines a service that runs inside the proxy: the same services as at an ICAP server, "
            "without the way there and back. adapt sections name services of either kind, in one "
            "list. NAME is as in icap_service, and no other service may have it. See "
            "docs/SERVICES.md.",
        .example = "service gray {\n"
                   "    module = \"gray.so\"\n"
                   "    settings = { Quality = 80 }\n"
                   "    helpers = \"/run/retort/helperd.sock\"\n"
                   "    bypass = true\n"
                   "}",
    },
    {.name = NULL},
};

/* enum service_runs. */
static const char *const runs_words[] = {"worker", "thread", "process", NULL};

static bool inside_check_module_setting(const char *text, char *error, size_t error_size) {
    const char *sign = strchr(text, '=');
    if (sign != NULL && sign != text)
        return true;
    snprintf(error, error_size, "is no NAME = VALUE: write settings = { Quality = 80 }");
    return false;
}

static bool inside_check_ip(const char *text, char *error, size_t error_size) {
    struct address address;
    if (address_parse_ip(&address, slice_from(text), 0))
        return true;
    snprintf(error, error_size, "is not an IP address: write \"192.0.2.7\" or \"2001:db8::7\"");
    return false;
}

#define SERVICE(member) ONE("service", struct service_settings, member)

static const struct option rows[] = {
    {SERVICE(module), .name = "module", STRING, .required = true,
     DOC
     "Sets the module: a shared object NAME.so with a service of the interface that the modules "
     "for c-icap have too. A name without a slash is a file of the folder where Retort's own "
     "modules are, such as adremover.so, gray.so, gzip.so and inject.so. A path that does not "
     "begin with / is relative to the directory of the configuration. The module has all the "
     "rights of the proxy, and takes the proxy down with it when it crashes: load no module "
     "that others can write. To replace a module, give a new file its name, as \"install\" does: a "
     "reload and \"retortctl services load\" run the new code. Never overwrite the file itself.",
     .example = "\"gray.so\""},
    {SERVICE(point), .name = "point", AT_RUN_TIME, WORD(option_adapt_points),
     DEFAULT("respmod_precache"), DOC "Sets when the service is asked, as icap_service.point does.",
     .example = "reqmod_precache"},
    {SERVICE(setting_texts), .name = "settings", STRINGS, .pairs = true,
     .check = inside_check_module_setting, .fallback_note = "those of the module",
     DOC "Sets what the module has to say about itself, as NAME = VALUE. The names and values are "
         "those of its directives for c-icap, without the name of the service and the dot: "
         "docs/SERVICES.md lists them. A list takes one value at a time; write the name again for "
         "the next one. A value that the module refuses is an error of the configuration.",
     .example = "{ Quality = 80, MinSize = \"2K\" }"},
    {SERVICE(helpers), .name = "helpers", STRING, .fallback_note = "the module's setting Helperd",
     DOC "Sets the socket of retort-helperd, for a module that gives slow work to helpers.",
     .example = "\"/run/retort/helperd.sock\""},
    {SERVICE(arguments), .name = "arguments", STRING, .fallback_note = "none",
     DOC "Sets what the service gets as arguments: what stands behind the \"?\" of the URI of a "
         "service at an ICAP server.",
     .example = "\"width=800&quality=60\""},
    {SERVICE(include), .name = "include", STRINGS, DEFAULT("none"),
     DOC "Lists what the service gets to know of the client, in addition to what the module asks "
         "for: X-Client-IP, its address, and X-Client-Username, the name of the user (where there "
         "is no authenticator section, the name in the Proxy-Authorization, which nobody has "
         "verified). A remembered verdict (verdict_space) is used only for clients for which these "
         "are the same.",
     .example = "X-Client-Username"},
    {SERVICE(descriptors), .name = "descriptors", COUNT(0, 4096), DEFAULT("64"),
     DOC "Limits the number of descriptors that the module watches at a time outside of messages, "
         "such as a connection to a database. Further ones are not watched, which "
         "retort_icap_service_watches_refused_total counts.",
     .example = "256"},
    {SERVICE(max_messages), .name = "max_messages", COUNT(1, 1e6), DEFAULT("1000"),
     DOC
     "Limits the number of messages that the service has at a time, of all workers together: "
     "from its preview to the end of what it makes of the body. Each takes memory of the "
     "service, two buffers, and what keep allows. A message that the service leaves alone does "
     "not count any more. Further messages wait (queue_max, queue_timeout). A thread or process "
     "of the service (runs) takes at most 1024 messages of one worker at a time: if all have as "
     "many, the service counts as failed for further ones "
     "(retort_icap_service_error_queue_total). The limit is for all clients together, as that "
     "of an ICAP service: a limit section with concurrent gives one client a share.",
     .example = "200"},
    {SERVICE(queue_max), .name = "queue_max", COUNT(0, 1e6), DEFAULT("1000"),
     DOC
     "Limits the number of messages of one worker that wait for max_messages. For further "
     "messages the service counts as failed at once (retort_icap_service_error_queue_total), and "
     "bypass says what happens to them.",
     .example = "100"},
    {SERVICE(queue_timeout), .name = "queue_timeout", TIMEOUT, DEFAULT("10s"),
     DOC "Sets how long a message may wait for max_messages. After this time the service counts as "
         "failed for it (retort_icap_service_error_queue_total).",
     .example = "\"1s\""},
    {SERVICE(content_operations), .name = "content_operations", COUNT(0, 65536), DEFAULT("64"),
     DOC "Limits the operations of the service on the content of the cache that are under way or "
         "not closed yet: look-ups, fetches, injections and the like (docs/SERVICES.md). More are "
         "refused; retort_service_content_refused_total counts them. The value 0 forbids the "
         "service all of them.",
     .example = "200"},
    {SERVICE(content_object), .name = "content_object", SIZE_OF(0, 4 * GB), DEFAULT("16MB"),
     DOC "Limits the body of an object that the service injects into the cache, or reads from it "
         "as a whole. Reading in parts has no limit.",
     .example = "\"64MB\""},
    {SERVICE(content_memory), .name = "content_memory", SIZE_OF(0, 64 * GB), DEFAULT("64MB"),
     DOC "Limits the bytes that all operations of the service on the content of the cache hold at "
         "the same time.",
     .example = "\"256MB\""},
    {SERVICE(content_timeout), .name = "content_timeout", TIMEOUT, DEFAULT("1m"),
     DOC "Limits how long a fetch of the service may take, until the whole response has come. "
         "After that it is broken off, and retort_service_content_failed_total counts it.",
     .example = "\"20s\""},
    {SERVICE(fetch_as), .name = "fetch_as", STRING, DEFAULT("127.0.0.1"), .check = inside_check_ip,
     DOC "Sets the address that requests of the service seem to come from, for listen.allow, "
         "classes, limits and logs. A fetch that the service makes for a client is a request of "
         "that client instead.",
     .example = "192.0.2.7"},
    {SERVICE(fetch_via), .name = "fetch_via", STRING,
     .fallback_note = "the first listener that is not transparent",
     DOC "Sets the listener whose rules are for requests of the service, by its address. It must "
         "not be transparent. A fetch that the service makes for a client is a request to the "
         "listener of that client instead.",
     .example = "\"127.0.0.1:3128\""},
    {SERVICE(runs), .name = "runs", AT_RUN_TIME, WORD(runs_words), DEFAULT("worker"),
     DOC
     "Sets where the module runs. worker: in the workers of the proxy, which costs least; a call "
     "of a function of the module that takes long holds up all that the worker does, and a "
     "module that crashes takes the proxy with it. thread: in threads of the proxy, so that a "
     "slow call holds up only the messages of this service. process: in processes of their own, "
     "which the proxy starts, watches and starts again; the proxy never loads the module, and a "
     "module that crashes, hangs or writes into foreign memory harms only the messages of this "
     "service, which then pass without it or fail, as bypass says. A message that goes to a "
     "thread or a process and back costs some 10 microseconds more. docs/SERVICES.md says "
     "which one to use.",
     .example = "process"},
    {SERVICE(threads), .name = "threads", COUNT(1, 64), DEFAULT("1"),
     DOC "Sets how many threads or processes run the module, where runs is thread or process. A "
         "message goes to the one with the fewest messages under way. Each can have many messages "
         "under way at once, so more than one is of use only where the module itself uses the "
         "processor a lot.",
     .example = "2"},
    {SERVICE(nice), .name = "nice", COUNT(0, 19), DEFAULT("0"),
     DOC
     "Sets the nice value of the processes of the service (runs = process): at 19 they get only "
     "the processor time that nobody else wants.",
     .example = "10"},
    {SERVICE(start_timeout), .name = "start_timeout", TIMEOUT, DEFAULT("10s"),
     DOC
     "Sets how long a process of the service (runs = process) may take to load the module and to "
     "start it, lists and patterns included. A start, a reload and \"retort -t\" wait for it. "
     "As many processes of all services start at once as there are cores, and the time of each "
     "begins with its own start. After this time the process is ended, and the configuration is "
     "refused. "
     "A module that runs in the proxy itself (runs = worker or thread) is waited for, and the log "
     "names the service after this time.",
     .example = "\"60s\""},
    {SERVICE(hang_timeout), .name = "hang_timeout", TIMEOUT, DEFAULT("30s"),
     DOC "Sets how long a process of the service (runs = process) may show no sign of life while "
         "messages are under way there, because a function of the module does not return. After "
         "this time it is ended and started again. The messages fail before that, after timeout.",
     .example = "\"5s\""},
#include "adapt/options_services_both.def"
    {.name = NULL},
};

static char *where_stands(const struct load *load, int place) {
    char *text = NULL;
    if (asprintf(&text, "%s:%d", document_file(load->document, place), document_line(place)) < 0)
        return NULL;
    return text;
}

/* The values of `settings`, with their lines. */
static void take_settings(struct load *load, const struct document_section *section,
                          struct service_settings *service) {
    service->settings = xcalloc(section->value_count + 1, sizeof *service->settings);
    for (size_t i = 0; i < section->value_count; i++) {
        if (strcmp(section->values[i].option->name, "settings") != 0)
            continue;
        const char *text = service->setting_texts[service->setting_count];
        size_t name = strcspn(text, "=");
        service->settings[service->setting_count++] = (struct module_setting){
            .name = slice_make(text, name),
            .value = slice_from(text + name + 1),
            .where = where_stands(load, section->values[i].line),
        };
    }
}

/* The path of the module, and as the one endpoint of the service. */
static bool take_module(struct load *load, const struct document_section *section,
                        struct service_settings *service) {
    const struct document_value *value = document_value(section, "module");
    char *path = NULL, *uri = NULL;
    if (value->text[0] == '\0')
        return load_fail(load, value->line, "module is empty; write module = \"gray.so\"");
    if (strchr(value->text, '/') == NULL) {
        if (asprintf(&path, "%s/%s", SERVICES_DIRECTORY, value->text) < 0)
            return false;
    } else {
        path = config_file_beside(document_file(load->document, value->line), value->text);
    }
    free(service->module);
    service->module = path;
    if (asprintf(&uri, "module:%s", path) < 0)
        return false;
    service->uri_texts = xcalloc(2, sizeof *service->uri_texts);
    service->uri_texts[0] = uri;
    service->endpoint_count = 1;
    return true;
}

static bool check_helpers(struct load *load, const struct document_section *section,
                          const struct service_settings *service) {
    const size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    if (service->helpers == NULL || strlen(service->helpers) <= most)
        return true;
    return load_fail(load, load_line_of(section, "helpers"),
                     "helpers wants a path of at most %zu bytes", most);
}

static bool check_include(struct load *load, const struct document_section *section,
                          const struct service_settings *service) {
    for (char **name = service->include; name != NULL && *name != NULL; name++)
        if (strcasecmp(*name, "X-Client-IP") != 0 && strcasecmp(*name, "X-Client-Username") != 0 &&
            strcasecmp(*name, "none") != 0)
            return load_fail(
                load, load_line_of(section, "include"),
                "include: \"%s\" is not known; write X-Client-IP, X-Client-Username or "
                "none",
                *name);
    return true;
}

/* Requests of the service are for that listener. */
static bool check_fetch_via(struct load *load, const struct document_section *section,
                            const struct service_settings *service) {
    const struct settings *settings = load->settings;
    struct address address;
    if (service->fetch_via == NULL)
        return true;
    bool good = address_parse(&address, slice_from(service->fetch_via), 0);
    for (size_t i = 0; good && i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, &address) &&
            settings->listens[i].mode != LISTEN_TRANSPARENT)
            return true;
    return load_fail(
        load, load_line_of(section, "fetch_via"),
        "fetch_via: there is no listen section \"%s\", or it is transparent; write the "
        "address of another one as it stands there",
        service->fetch_via);
}

static bool inside_load_service(struct load *load, const struct document_section *section,
                                struct service_settings *service) {
    service->where = where_stands(load, section->line);
    if (!load_values(load, section, "service", service))
        return false;
    take_settings(load, section, service);
    return take_module(load, section, service) && check_helpers(load, section, service) &&
           check_include(load, section, service) && check_fetch_via(load, section, service);
}

static void inside_release_service(struct service_settings *service) {
    for (size_t i = 0; i < service->setting_count; i++)
        free(service->settings[i].where);
    free(service->settings);
    if (service->uri_texts != NULL)
        free(service->uri_texts[0]);
    free(service->uri_texts);
    free(service->where);
}

const struct part_settings inside_part_settings = {
    .core_options = rows,
    .sections = sections,
    .service = {.load = inside_load_service, .release = inside_release_service},
};
