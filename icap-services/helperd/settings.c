#include "helperd/settings.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/text.h"
#include "service/helper_protocol.h"
#include "service/option.h"

#include <confuse.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* One of so many places in the queue is for large jobs, unless the settings say otherwise. */
enum { QUEUE_LARGE_PART = 4 };

static void helperd_settings_on_error(cfg_t *cfg, const char *format, va_list arguments) {
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

static int check_max_processes(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 0, POOL_PROCESSES_MAX);
}

static int check_weight(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 0, 10000);
}

static int check_log_lines(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 1, 100000);
}

static int check_breaker(cfg_t *cfg, cfg_opt_t *option) {
    return check_range(cfg, option, 0, 100000);
}

/* At least `least` milliseconds: 1, or 0 if the option may be 0. */
static int check_time(cfg_t *cfg, cfg_opt_t *option, uint64_t least) {
    uint64_t milliseconds;
    const char *text = cfg_opt_getnstr(option, 0);
    if (service_option_duration(slice_from(text), &milliseconds) && milliseconds >= least &&
        milliseconds <= 3600 * 1000)
        return 0;
    cfg_error(cfg, "%s wants a time such as 500ms, 10s or 2m, at most 60m, not \"%s\"",
              cfg_opt_name(option), text);
    return -1;
}

static int check_deadline(cfg_t *cfg, cfg_opt_t *option) {
    return check_time(cfg, option, 1);
}

static int check_cpu(cfg_t *cfg, cfg_opt_t *option) {
    return check_time(cfg, option, 0);
}

static int check_size(cfg_t *cfg, cfg_opt_t *option) {
    uint64_t number;
    if (service_option_size(slice_from(cfg_opt_getnstr(option, 0)), &number))
        return 0;
    cfg_error(cfg, "%s wants a number such as 64M or 1G, not \"%s\"", cfg_opt_name(option),
              cfg_opt_getnstr(option, 0));
    return -1;
}

static bool read_io(const char *text, int *io) {
    bool is_level = text[0] >= '0' && text[0] <= '0' + IO_BEST_EFFORT_LOWEST && text[1] == 0;
    *io = is_level ? text[0] - '0' : strcmp(text, "idle") == 0 ? IO_IDLE : IO_AS_NICE;
    return is_level || *io == IO_IDLE || text[0] == 0;
}

static int check_io(cfg_t *cfg, cfg_opt_t *option) {
    int io;
    if (read_io(cfg_opt_getnstr(option, 0), &io))
        return 0;
    cfg_error(cfg, "io must be 0 to 7 or idle, not \"%s\"", cfg_opt_getnstr(option, 0));
    return -1;
}

static bool read_scheduler(const char *text, int *scheduler) {
    static const struct {
        const char *name;
        int policy;
    } policies[] = {{"normal", SCHED_OTHER}, {"batch", SCHED_BATCH}, {"idle", SCHED_IDLE}};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (strcmp(text, policies[i].name) == 0) {
            *scheduler = policies[i].policy;
            return true;
        }
    return false;
}

static int check_scheduler(cfg_t *cfg, cfg_opt_t *option) {
    int scheduler;
    if (read_scheduler(cfg_opt_getnstr(option, 0), &scheduler))
        return 0;
    cfg_error(cfg, "scheduler must be normal, batch or idle, not \"%s\"",
              cfg_opt_getnstr(option, 0));
    return -1;
}

static bool read_protocol(const char *text, enum pool_protocol *protocol) {
    static const char *const names[] = {"retort", "squid_basic", "squid_external_acl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *protocol = (enum pool_protocol)i;
            return true;
        }
    return false;
}

static int check_protocol(cfg_t *cfg, cfg_opt_t *option) {
    enum pool_protocol protocol;
    if (read_protocol(cfg_opt_getnstr(option, 0), &protocol))
        return 0;
    cfg_error(cfg, "protocol must be retort, squid_basic or squid_external_acl, not \"%s\"",
              cfg_opt_getnstr(option, 0));
    return -1;
}

static bool check_channels(cfg_t *cfg, cfg_t *pool) {
    enum pool_protocol protocol = POOL_JOBS;
    read_protocol(cfg_getstr(pool, "protocol"), &protocol);
    if (protocol != POOL_JOBS || !cfg_getbool(pool, "channels"))
        return true;
    cfg_error(cfg, "pool %s: channels are for protocol = squid_basic and squid_external_acl",
              cfg_title(pool));
    return false;
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
    const char *program = cfg_getnstr(pool, "command", 0);
    if (program[0] != '/') {
        cfg_error(cfg, "pool %s: command must begin with an absolute path, not with \"%s\"",
                  cfg_title(pool), program);
        return -1;
    }
    return check_channels(cfg, pool) ? 0 : -1;
}

/* Without a leading 0 the parser takes the mode for a decimal number, which is another mode. */
static int check_mode(cfg_t *cfg, cfg_opt_t *option) {
    long mode = cfg_opt_getnint(option, 0);
    if (mode >= 0 && mode <= 0777)
        return 0;
    cfg_error(cfg, "socket_mode must be from 0 to 0777, with a 0 in front: 0660");
    return -1;
}

static int check_socket(cfg_t *cfg, cfg_opt_t *option) {
    const char *path = cfg_opt_getnstr(option, 0);
    if (path[0] != 0 && strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path)
        return 0;
    cfg_error(cfg, "socket wants a path of at most %zu bytes",
              sizeof((struct sockaddr_un *)0)->sun_path - 1);
    return -1;
}

static char *optional(cfg_t *cfg, const char *name) {
    const char *text = cfg_getstr(cfg, name);
    return text == NULL || text[0] == 0 ? NULL : xstrdup(text);
}

static uint64_t read_time(cfg_t *section, const char *name) {
    uint64_t milliseconds = 0;
    service_option_duration(slice_from(cfg_getstr(section, name)), &milliseconds);
    return milliseconds;
}

static void read_terms(struct helper_terms *terms, cfg_t *section) {
    read_protocol(cfg_getstr(section, "protocol"), &terms->protocol);
    terms->channels = cfg_getbool(section, "channels");
    terms->nice = (int)cfg_getint(section, "nice");
    terms->cpu = read_time(section, "cpu");
    terms->cgroup = optional(section, "cgroup");
    terms->cgroup_weight = (unsigned)cfg_getint(section, "cgroup_weight");
    read_io(cfg_getstr(section, "io"), &terms->io);
    read_scheduler(cfg_getstr(section, "scheduler"), &terms->scheduler);
    service_option_size(slice_from(cfg_getstr(section, "memory")), &terms->memory);
}

/* The words of `command`, and those of `arguments` behind them. */
static char **read_command(cfg_t *section) {
    unsigned words = cfg_size(section, "command"), more = cfg_size(section, "arguments");
    char **command = xcalloc(words + more + 1, sizeof *command);
    for (unsigned i = 0; i < words; i++)
        command[i] = xstrdup(cfg_getnstr(section, "command", i));
    for (unsigned i = 0; i < more; i++)
        command[words + i] = xstrdup(cfg_getnstr(section, "arguments", i));
    return command;
}

static void read_pool(struct pool_settings *pool, cfg_t *section) {
    pool->name = xstrdup(cfg_title(section));
    pool->command = read_command(section);
    pool->processes = (unsigned)cfg_getint(section, "processes");
    pool->max_processes = (unsigned)cfg_getint(section, "max_processes");
    if (pool->max_processes < pool->processes)
        pool->max_processes = pool->processes;
    pool->idle = read_time(section, "idle");
    pool->queue = (unsigned)cfg_getint(section, "queue");
    pool->queue_large = (unsigned)cfg_getint(section, "queue_large");
    if (pool->queue_large == 0 || pool->queue_large > pool->queue)
        pool->queue_large = (pool->queue + QUEUE_LARGE_PART - 1) / QUEUE_LARGE_PART;
    service_option_size(slice_from(cfg_getstr(section, "small")), &pool->small);
    pool->max_jobs = (uint64_t)cfg_getint(section, "max_jobs");
    pool->deadline = read_time(section, "deadline");
    pool->breaker = (unsigned)cfg_getint(section, "breaker");
    pool->breaker_time = read_time(section, "breaker_time");
    pool->log_lines = (unsigned)cfg_getint(section, "log_lines");
    read_terms(&pool->terms, section);
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

/* As cfg_parse, but a byte-order mark at the front is not taken for a part of a name. */
static int parse_file(cfg_t *cfg, const char *path) {
    char start[3];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return CFG_FILE_ERROR;
    struct slice read = slice_make(start, fread(start, 1, sizeof start, file));
    fseek(file, (long)(text_without_mark(read).base - start), SEEK_SET);
    cfg->filename = strdup(path); /* cfg_free frees it */
    int result = cfg_parse_fp(cfg, file);
    fclose(file);
    return result;
}

struct helperd_settings *helperd_settings_read(const char *path) {
    cfg_opt_t pool[] = {CFG_STR_LIST("command", NULL, CFGF_NONE),
                        CFG_STR_LIST("arguments", NULL, CFGF_NONE),
                        CFG_STR("protocol", "retort", CFGF_NONE),
                        CFG_BOOL("channels", cfg_false, CFGF_NONE),
                        CFG_INT("processes", 1, CFGF_NONE),
                        CFG_INT("nice", 10, CFGF_NONE),
                        CFG_INT("queue", 64, CFGF_NONE),
                        CFG_INT("queue_large", 0, CFGF_NONE),
                        CFG_STR("small", "2M", CFGF_NONE),
                        CFG_STR("deadline", "3s", CFGF_NONE),
                        CFG_INT("max_jobs", 0, CFGF_NONE),
                        CFG_INT("max_processes", 0, CFGF_NONE),
                        CFG_STR("idle", "30s", CFGF_NONE),
                        CFG_STR("io", "", CFGF_NONE),
                        CFG_STR("scheduler", "normal", CFGF_NONE),
                        CFG_STR("memory", "0", CFGF_NONE),
                        CFG_STR("cpu", "0", CFGF_NONE),
                        CFG_STR("cgroup", "", CFGF_NONE),
                        CFG_INT("cgroup_weight", 0, CFGF_NONE),
                        CFG_INT("breaker", 8, CFGF_NONE),
                        CFG_STR("breaker_time", "10s", CFGF_NONE),
                        CFG_INT("log_lines", 50, CFGF_NONE),
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
    cfg_set_error_function(cfg, helperd_settings_on_error);
    cfg_set_validate_func(cfg, "socket", check_socket);
    cfg_set_validate_func(cfg, "socket_mode", check_mode);
    cfg_set_validate_func(cfg, "clients", check_clients);
    cfg_set_validate_func(cfg, "pool", check_pool);
    cfg_set_validate_func(cfg, "pool|protocol", check_protocol);
    cfg_set_validate_func(cfg, "pool|processes", check_processes);
    cfg_set_validate_func(cfg, "pool|nice", check_nice);
    cfg_set_validate_func(cfg, "pool|queue", check_queue);
    cfg_set_validate_func(cfg, "pool|max_jobs", check_max_jobs);
    cfg_set_validate_func(cfg, "pool|deadline", check_deadline);
    cfg_set_validate_func(cfg, "pool|max_processes", check_max_processes);
    cfg_set_validate_func(cfg, "pool|idle", check_deadline);
    cfg_set_validate_func(cfg, "pool|io", check_io);
    cfg_set_validate_func(cfg, "pool|scheduler", check_scheduler);
    cfg_set_validate_func(cfg, "pool|memory", check_size);
    cfg_set_validate_func(cfg, "pool|small", check_size);
    cfg_set_validate_func(cfg, "pool|queue_large", check_queue);
    cfg_set_validate_func(cfg, "pool|cpu", check_cpu);
    cfg_set_validate_func(cfg, "pool|cgroup_weight", check_weight);
    cfg_set_validate_func(cfg, "pool|breaker", check_breaker);
    cfg_set_validate_func(cfg, "pool|breaker_time", check_deadline);
    cfg_set_validate_func(cfg, "pool|log_lines", check_log_lines);
    int result = parse_file(cfg, path);
    if (result == CFG_FILE_ERROR)
        log_error("%s: %s", path, strerror(errno));
    else if (result == CFG_SUCCESS && cfg_size(cfg, "pool") == 0)
        log_error("%s: there is no pool: pool NAME { command = {\"/path/to/helper\"} }", path);
    else if (result == CFG_SUCCESS)
        settings = read_all(cfg);
    cfg_free(cfg);
    return settings;
}

void pool_settings_copy(struct pool_settings *to, const struct pool_settings *from) {
    unsigned words = 0;
    *to = *from;
    while (from->command[words] != NULL)
        words++;
    to->name = xstrdup(from->name);
    to->terms.cgroup = from->terms.cgroup == NULL ? NULL : xstrdup(from->terms.cgroup);
    to->command = xcalloc(words + 1, sizeof *to->command);
    for (unsigned i = 0; i < words; i++)
        to->command[i] = xstrdup(from->command[i]);
}

void pool_settings_release(struct pool_settings *settings) {
    for (char **word = settings->command; *word != NULL; word++)
        free(*word);
    free(settings->command);
    free(settings->terms.cgroup);
    free(settings->name);
}

static bool same_command(char *const *a, char *const *b) {
    for (; *a != NULL && *b != NULL; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return *a == *b;
}

static bool same_terms(const struct helper_terms *a, const struct helper_terms *b) {
    bool same_cgroup = a->cgroup == NULL || b->cgroup == NULL ? a->cgroup == b->cgroup
                                                              : strcmp(a->cgroup, b->cgroup) == 0;
    bool same_lines = a->protocol == b->protocol && a->channels == b->channels;
    return same_cgroup && same_lines && a->io == b->io && a->scheduler == b->scheduler &&
           a->memory == b->memory;
}

bool pool_settings_same_process(const struct pool_settings *a, const struct pool_settings *b) {
    return same_command(a->command, b->command) && same_terms(&a->terms, &b->terms);
}

static void check_program(const struct pool_settings *pool, struct findings *findings) {
    struct stat status;
    const char *program = pool->command[0];
    if (stat(program, &status) != 0 || access(program, X_OK) != 0)
        findings_add(findings, "pool %s: command %s: %s; install the program, or name another one",
                     pool->name, program, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        findings_add(findings, "pool %s: command %s: this file is not a program", pool->name,
                     program);
}

void helperd_settings_check(const struct helperd_settings *settings, struct findings *findings) {
    findings_of_directory(findings, "socket", settings->socket);
    if (settings->socket_group != NULL && getgrnam(settings->socket_group) == NULL)
        findings_add(findings,
                     "socket_group %s: there is no such group; create it, or name another one",
                     settings->socket_group);
    if (settings->log != NULL)
        findings_of_log(findings, "log", settings->log);
    for (unsigned i = 0; i < settings->pool_count; i++)
        check_program(&settings->pools[i], findings);
}

void helperd_settings_free(struct helperd_settings **settingsp) {
    struct helperd_settings *settings = *settingsp;
    *settingsp = NULL;
    if (settings == NULL)
        return;
    for (unsigned i = 0; i < settings->pool_count; i++)
        pool_settings_release(&settings->pools[i]);
    free(settings->pools);
    free(settings->socket);
    free(settings->socket_group);
    free(settings->log);
    free(settings);
}
