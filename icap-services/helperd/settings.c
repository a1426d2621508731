#include "helperd/settings.h"

#include "base/assert.h"
#include "base/log.h"
#include "service/helper_protocol.h"
#include "service/option.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <sys/un.h>

static void on_error(cfg_t *cfg, const char *format, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    log_error("%s:%d: %s", cfg->filename == NULL ? "configuration" : cfg->filename, cfg->line,
              text);
}

static int check_range(cfg_t *cfg, cfg_opt_t *option, long low, long high) {
    long value = cfg_opt_getnint(option, 0);
    if (value >= low && value <= high)
        return 0;
    cfg_error(cfg, "%s must be from %ld to %ld", cfg_opt_name(option), low, high);
    return -1;
}

static int check_processes(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 1, POOL_PROCESSES_MAX);
}

static int check_nice(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, NICE_LOW, NICE_HIGH);
}

static int check_queue(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 0, POOL_QUEUE_MAX);
}

static int check_max_jobs(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 0, INT32_MAX);
}

static int check_clients(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 1, 100000);
}

static int check_deadline(cfg_t *cfg, cfg_opt_t *option) {
    uint64_t milliseconds;
    const char *text = cfg_opt_getnstr(option, 0);
    if (service_option_duration(slice_from(text), &milliseconds) && milliseconds > 0 &&
        milliseconds <= 3600 * 1000)
        return 0;
    cfg_error(cfg, "deadline wants a time such as 500ms, 10s or 2m, at most 60m, not \"%s\"", text);
    return -1;
}

static int check_pool(cfg_t *cfg, cfg_opt_t *option) {
    cfg_t *pool = cfg_opt_getnsec(option, cfg_opt_size(option) - 1);
    if (strlen(cfg_title(pool)) >= HELPER_POOL_MAX) {
        cfg_error(cfg, "the name of pool %s is too long: at most %d bytes", cfg_title(pool),
                  HELPER_POOL_MAX - 1);
        return -1;
    }
    if (cfg_size(pool, "command") == 0) {
        cfg_error(cfg, "pool %s has no command: command = {\"/path/to/helper\"}", cfg_title(pool));
        return -1;
    }
    return 0;
}

static int check_socket(cfg_t *cfg, cfg_opt_t *option) {
    const char *path = cfg_opt_getnstr(option, 0);
    if (path[0] != 0 && strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path)
        return 0;
    cfg_error(cfg, "socket wants a path of at most %zu bytes",
              sizeof((struct sockaddr_un *)0)->sun_path - 1);
    return -1;
}

static void read_pool(struct pool_settings *pool, cfg_t *section) {
    unsigned words = cfg_size(section, "command");
    pool->name = xstrdup(cfg_title(section));
    pool->command = xcalloc(words + 1, sizeof *pool->command);
    for (unsigned i = 0; i < words; i++)
        pool->command[i] = xstrdup(cfg_getnstr(section, "command", i));
    pool->processes = (unsigned)cfg_getint(section, "processes");
    pool->nice = (int)cfg_getint(section, "nice");
    pool->queue = (unsigned)cfg_getint(section, "queue");
    pool->max_jobs = (uint64_t)cfg_getint(section, "max_jobs");
    service_option_duration(slice_from(cfg_getstr(section, "deadline")), &pool->deadline);
}

static char *optional(cfg_t *cfg, const char *name) {
    const char *text = cfg_getstr(cfg, name);
    return text == NULL || text[0] == 0 ? NULL : xstrdup(text);
}

static struct helperd_settings *read_all(cfg_t *cfg) {
    struct helperd_settings *settings = xcalloc(1, sizeof *settings);
    settings->socket = xstrdup(cfg_getstr(cfg, "socket"));
    settings->socket_group = optional(cfg, "socket_group");
    settings->socket_mode = (unsigned)cfg_getint(cfg, "socket_mode");
    settings->log = optional(cfg, "log");
    settings->clients = (unsigned)cfg_getint(cfg, "clients");
    settings->pool_count = cfg_size(cfg, "pool");
    settings->pools = xcalloc(settings->pool_count + 1, sizeof *settings->pools);
    for (unsigned i = 0; i < settings->pool_count; i++)
        read_pool(&settings->pools[i], cfg_getnsec(cfg, "pool", i));
    return settings;
}

struct helperd_settings *helperd_settings_read(const char *path) {
    cfg_opt_t pool[] = {CFG_STR_LIST("command", NULL, CFGF_NONE),
                        CFG_INT("processes", 1, CFGF_NONE),
                        CFG_INT("nice", 10, CFGF_NONE),
                        CFG_INT("queue", 64, CFGF_NONE),
                        CFG_STR("deadline", "10s", CFGF_NONE),
                        CFG_INT("max_jobs", 0, CFGF_NONE),
                        CFG_END()};
    cfg_opt_t options[] = {CFG_STR("socket", "/run/retort/helperd.sock", CFGF_NONE),
                           CFG_STR("socket_group", "", CFGF_NONE),
                           CFG_INT("socket_mode", 0660, CFGF_NONE),
                           CFG_STR("log", "", CFGF_NONE),
                           CFG_INT("clients", 1024, CFGF_NONE),
                           CFG_SEC("pool", pool, CFGF_TITLE | CFGF_MULTI | CFGF_NO_TITLE_DUPES),
                           CFG_END()};
    struct helperd_settings *settings = NULL;
    cfg_t *cfg = cfg_init(options, CFGF_NONE);
    cfg_set_error_function(cfg, on_error);
    cfg_set_validate_func(cfg, "socket", check_socket);
    cfg_set_validate_func(cfg, "clients", check_clients);
    cfg_set_validate_func(cfg, "pool", check_pool);
    cfg_set_validate_func(cfg, "pool|processes", check_processes);
    cfg_set_validate_func(cfg, "pool|nice", check_nice);
    cfg_set_validate_func(cfg, "pool|queue", check_queue);
    cfg_set_validate_func(cfg, "pool|max_jobs", check_max_jobs);
    cfg_set_validate_func(cfg, "pool|deadline", check_deadline);
    int result = cfg_parse(cfg, path);
    if (result == CFG_FILE_ERROR)
        log_error("%s: %s", path, strerror(errno));
    else if (result == CFG_SUCCESS && cfg_size(cfg, "pool") == 0)
        log_error("%s: there is no pool: pool NAME { command = {\"/path/to/helper\"} }", path);
    else if (result == CFG_SUCCESS)
        settings = read_all(cfg);
    cfg_free(cfg);
    return settings;
}

void helperd_settings_free(struct helperd_settings **settingsp) {
    struct helperd_settings *settings = *settingsp;
    *settingsp = NULL;
    if (settings == NULL)
        return;
    for (unsigned i = 0; i < settings->pool_count; i++) {
        struct pool_settings *pool = &settings->pools[i];
        for (char **word = pool->command; *word != NULL; word++)
            free(*word);
        free(pool->command);
        free(pool->name);
    }
    free(settings->pools);
    free(settings->socket);
    free(settings->socket_group);
    free(settings->log);
    free(settings);
}
