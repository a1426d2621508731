#include "helperd/settings.h"

#include "base/assert.h"
#include "base/log.h"
#include "config/document.h"
#include "config/manual.h"
#include "service/helper_protocol.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* QUEUE_LARGE_PART: one of so many places in the queue is for large jobs, unless the settings say
 * otherwise. ERRORS: bytes for all that is wrong. */
enum { QUEUE_LARGE_PART = 4, ERRORS = 8192 };

static bool check_socket(const char *path, char *error, size_t error_size) {
    enum { LONGEST = sizeof((struct sockaddr_un *)0)->sun_path - 1 };
    if (strlen(path) <= LONGEST)
        return true;
    snprintf(error, error_size, "is too long: a path of a socket has at most %d bytes", LONGEST);
    return false;
}

/* Without a leading 0 it would be a decimal number, which is another mode. */
static bool check_mode(const char *text, char *error, size_t error_size) {
    char *end;
    unsigned long mode = strtoul(text, &end, 0);
    if (end != text && *end == '\0' && mode <= 0777)
        return true;
    snprintf(error, error_size, "is not a mode from 0 to 0777, with a 0 in front: write 0660");
    return false;
}

/* In the order of enum pool_protocol, of levels of input and output, and of `policies`. */
static const char *const protocol_words[] = {"retort", "squid_basic", "squid_external_acl", NULL};
static const char *const io_words[] = {"0", "1", "2", "3", "4", "5", "6", "7", "idle", NULL};
static const char *const scheduler_words[] = {"normal", "batch", "idle", NULL};
static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE};

#define TOP(member)     .section = "", .at = offsetof(struct helperd_settings, member)
#define POOL(member)    .section = "pool", .at = offsetof(struct pool_settings, member)
#define COUNT(from, to) .type = OPTION_COUNT, .least = from, .most = to
#define TIME(from)      .type = OPTION_TIME, .bare_seconds = true, .least = from, .most = 3600 * 1000

static const struct option options[] = {
#include "helperd/options.def"
    {.name = NULL},
};

static const struct option_section sections[] = {
    {.name = "", .documentation = "These options stand outside any section."},
    {.name = "pool",
     .title = "NAME",
     .documentation = "Defines a pool of helpers. Services name it. At least one is needed.",
     .example = "pool gray { command = \"/usr/libexec/retort/gray-helper\"  processes = 2 }"},
    {.name = NULL},
};

static const struct option_table table = {options, sections, .manual = "retort-helperd(8)",
                                          .lenient = true};

void helperd_settings_print_manual(FILE *out) {
    manual_print(out, &manual_man, &table, "Options of retort-helperd");
}

/* The words of `command`, and those of `arguments` behind them. */
static void join_arguments(struct pool_settings *pool) {
    size_t words = 0, more = 0;
    while (pool->command[words] != NULL)
        words++;
    while (pool->arguments != NULL && pool->arguments[more] != NULL)
        more++;
    pool->command = xrealloc(pool->command, (words + more + 1) * sizeof *pool->command);
    for (size_t i = 0; i < more; i++)
        pool->command[words + i] = pool->arguments[i];
    pool->command[words + more] = NULL;
    free(pool->arguments);
    pool->arguments = NULL;
}

/* What follows from other options. */
static void complete_pool(struct pool_settings *pool) {
    join_arguments(pool);
    if (pool->max_processes < pool->processes)
        pool->max_processes = pool->processes;
    if (pool->queue_large == 0 || pool->queue_large > pool->queue)
        pool->queue_large = (pool->queue + QUEUE_LARGE_PART - 1) / QUEUE_LARGE_PART;
    pool->terms.scheduler = policies[pool->terms.scheduler];
}

static int line_of(const struct document_section *section, const char *name) {
    const struct document_value *value = document_value(section, name);
    return value != NULL ? value->line : section->line;
}

static bool check_pool(struct document *document, struct faults *faults,
                       const struct document_section *section, const struct pool_settings *pool) {
    const char *program = pool->command[0];
    if (strlen(pool->name) >= HELPER_POOL_MAX)
        return document_fail(document, faults, section->line,
                             "the name of pool %s is too long: at most %d bytes", pool->name,
                             HELPER_POOL_MAX - 1);
    if (program[0] != '/')
        return document_fail(document, faults, line_of(section, "command"),
                             "pool %s: command must begin with an absolute path, not with \"%s\"",
                             pool->name, program);
    if (pool->terms.channels && pool->terms.protocol == POOL_JOBS)
        return document_fail(document, faults, line_of(section, "channels"),
                             "pool %s: channels are for protocol = squid_basic and "
                             "squid_external_acl",
                             pool->name);
    return true;
}

static void read_pool(struct document *document, struct faults *faults,
                      const struct document_section *section, struct pool_settings *pool) {
    pool->name = xstrdup(section->title);
    pool->terms.io = IO_AS_NICE;
    if (document_read_values(document, faults, section, "pool", 0, pool) &&
        check_pool(document, faults, section, pool))
        complete_pool(pool);
}

static void read_all(struct document *document, struct faults *faults,
                     struct helperd_settings *settings) {
    document_read_values(document, faults, document_section(document, "", NULL), "", 0, settings);
    settings->pools =
        xcalloc(document_section_count(document, "pool") + 1, sizeof *settings->pools);
    DOCUMENT_FOR_EACH_SECTION (section, document, "pool")
        read_pool(document, faults, section, &settings->pools[settings->pool_count++]);
    if (settings->pool_count == 0)
        document_fail(document, faults, 0,
                      "there is no pool: write pool NAME { command = \"/path/to/helper\" }");
}

static void tell_faults(struct faults *faults) {
    char errors[ERRORS];
    struct slice rest, line;
    faults_join(faults, errors, sizeof errors);
    rest = slice_from(errors);
    while (slice_next_line(&rest, &line))
        log_error("%.*s", SLICE_PRINT(line));
}

struct helperd_settings *helperd_settings_read(const char *path) {
    struct faults faults = {0};
    struct helperd_settings *settings = xcalloc(1, sizeof *settings);
    struct document *document = document_parse(path, &table, &faults);
    if (document != NULL)
        read_all(document, &faults, settings);
    if (faults.count > 0) {
        tell_faults(&faults);
        helperd_settings_free(&settings);
    }
    faults_release(&faults);
    document_free(&document);
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
    document_release_values(&table, "pool", 0, settings);
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
    document_release_values(&table, "", 0, settings);
    free(settings);
}
