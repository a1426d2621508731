#include "adapt/verdicts.h"
#include "admin/admin.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "base/signals.h"
#include "cache/memory.h"
#include "claims.h"
#include "disk/disk.h"
#include "libraries.h"
#include "net/memory_share.h"
#include "readiness.h"
#include "record/recorder.h"
#include "transaction/waiting_download.h"
#include "worker.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* retort: start-up, signals, and what concerns all workers together. */

enum { REPORT_PATIENCE = 1000, RESERVE = 16 << 20 };

struct retort {
    const char *path;     /* of the configuration */
    pthread_mutex_t lock; /* settings: reloads come from signals and from the admin plane */
    struct settings *settings;
    struct settings *first; /* those of the start */
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_places *places;
    struct waiting_downloads *waiting_downloads;
    struct verdicts *verdicts;
    struct origin_groups *origins; /* of settings */
    struct icap_quotas *quotas;    /* likewise */
    struct recorder *recorder;     /* the latest; NULL: there was none */
    struct worker **workers;
    unsigned worker_count;
    struct admin *admin;
    uint64_t started; /* milliseconds of the monotonic clock */
    _Atomic bool draining;
    _Atomic bool ended; /* the workers have: they answer nothing any more */
    struct client_total clients;
    struct memory_shares *memory;
};

static void main_usage(FILE *out) {
    fputs("usage: retort [-t|-T] -f FILE\n"
          "       retort --print-options markdown|man\n"
          "\n"
          "  -f FILE        the configuration; see retort.conf(5)\n"
          "  -t             check the configuration and the files and addresses in it, and exit\n"
          "  -T             check the configuration only, for another machine, and exit\n"
          "  -V, --version  print the version, and those of the libraries\n"
          "  -h, --help     print this help\n"
          "\n"
          "Runs in the foreground. SIGHUP reads the configuration again, SIGUSR1 opens the logs "
          "again,\n"
          "SIGTERM drains and exits.\n",
          out);
}

static bool start_workers(struct retort *retort, struct claims *claims,
                          char error[SETTINGS_ERROR]) {
    unsigned count = retort->settings->workers;
    const struct worker_shared shared = {
        .clients = &retort->clients,
        .memory = retort->memory,
        .cache = retort->cache,
        .disk = retort->disk,
        .shared_fetches = retort->shared_fetches,
        .places = retort->places,
        .waiting_downloads = retort->waiting_downloads,
        .verdicts = retort->verdicts,
        .origins = retort->origins,
        .quotas = retort->quotas,
        .admin_address = retort->settings->admin.address,
    };
    retort->workers = xcalloc(count, sizeof *retort->workers);
    for (; retort->worker_count < count; retort->worker_count++) {
        struct worker *worker =
            worker_new(retort->settings, &shared, retort->worker_count, claims, error);
        if (worker == NULL)
            return false;
        retort->workers[retort->worker_count] = worker;
    }
    for (unsigned i = 0; i < count; i++)
        if (!worker_start(retort->workers[i])) {
            snprintf(error, SETTINGS_ERROR, "cannot start a thread");
            return false;
        }
    return true;
}

static bool same_disk(const struct disk_settings *a, const struct disk_settings *b) {
    return strcmp(a->path, b->path) == 0 && a->size == b->size && a->admission == b->admission &&
           a->max_object == b->max_object && a->threads == b->threads &&
           a->write_queue == b->write_queue && a->write_wait == b->write_wait;
}

static bool same_disks(const struct settings *old, const struct settings *new) {
    bool same =
        old->cache.disk_count == new->cache.disk_count && old->cache.disk_io == new->cache.disk_io;
    for (size_t i = 0; same && i < new->cache.disk_count; i++)
        same = same_disk(&old->cache.disks[i], &new->cache.disks[i]);
    return same;
}

/* Settings that only a start can apply. */
static void find_fixed(const struct settings *first, const struct settings *new,
                       struct findings *left) {
    if (first->workers != new->workers)
        findings_add(left, "workers is still %u, not %u: restart retort to apply the change",
                     first->workers, new->workers);
    const char *before = first->admin.listen == NULL ? "off" : first->admin.listen;
    const char *after = new->admin.listen == NULL ? "off" : new->admin.listen;
    if (strcmp(before, after) != 0)
        findings_add(left, "admin.listen is still %s, not %s: restart retort to apply the change",
                     before, after);
    if (!same_disks(first, new))
        findings_add(left, "cache.disk and cache.disk_io are still as they were at the start: "
                           "restart retort to apply the change");
}

static void apply_log(const struct settings *settings) {
    log_set_level(settings->log_level);
    if (settings->error_log != NULL && !log_open_file(settings->error_log))
        log_error("cannot open error_log %s: %s; messages still go to the old place: create its "
                  "directory, and let retort's user write to it",
                  settings->error_log, strerror(errno));
}

static void warn_of(const struct findings *findings, const char *before) {
    for (unsigned i = 0; i < findings->count; i++)
        log_warn("%s%s", before, findings->text[i]);
    if (findings->more > 0)
        log_warn("%sand %u more", before, findings->more);
}

/* All that refuses the configuration, in one message. */
static void join_findings(const struct findings *findings, char error[SETTINGS_ERROR]) {
    size_t length = 0;
    error[0] = '\0';
    for (unsigned i = 0; i < findings->count && length < SETTINGS_ERROR; i++)
        length += (size_t)snprintf(error + length, SETTINGS_ERROR - length, "%s%s",
                                   i == 0 ? "" : "; ", findings->text[i]);
}

/* NULL and a message: what begins is refused. */
static struct claims *main_claim(const struct settings *settings, const struct settings *old,
                                 char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    struct claims *claims = claims_make(settings, old, &findings);
    if (claims == NULL)
        join_findings(&findings, error);
    return claims;
}

/* Messages arrive in order: an answer means that what was posted before has been done. */
static void await_workers(struct retort *retort) {
    for (unsigned i = 0; i < retort->worker_count && !atomic_load(&retort->ended); i++) {
        struct worker_report answer;
        if (worker_report(retort->workers[i], &answer, REPORT_PATIENCE))
            worker_report_release(&answer);
    }
}

/* What was bumped stays so, whatever of it comes from disk. */
static struct icap_quotas *quotas_for(const struct retort *retort,
                                      const struct settings *settings) {
    struct icap_quotas *quotas = icap_quotas_new(settings, retort->quotas);
    for (size_t i = 0; i < quotas->count; i++) {
        struct service_tag *tag = quotas->services[i].tag;
        service_tag_resume(tag, disk_kept_generation(retort->disk, tag->base));
    }
    return quotas;
}

static bool reload(void *context, char error[SETTINGS_ERROR], struct findings *left) {
    struct retort *retort = context;
    struct claims *claims = NULL;
    bool good = false;
    pthread_mutex_lock(&retort->lock);
    struct settings *settings = settings_load(retort->path, error);
    if (settings != NULL)
        claims = main_claim(settings, retort->settings, error);
    if (claims != NULL) {
        find_fixed(retort->first, settings, left);
        readiness_of_files(settings, left);
        settings->workers = retort->first->workers;
        apply_log(settings);
        cache_set_limit(retort->cache, settings->cache.memory);
        verdicts_set_limit(retort->verdicts, settings->verdict_space);
        struct origin_groups *origins = origin_groups_new(settings, retort->origins);
        struct icap_quotas *quotas = quotas_for(retort, settings);
        for (unsigned i = 0; i < retort->worker_count; i++)
            worker_reload(retort->workers[i], settings, origins, quotas, &claims);
        await_workers(retort);
        settings_release(&retort->settings);
        origin_groups_release(&retort->origins);
        icap_quotas_release(&retort->quotas);
        retort->settings = settings;
        retort->origins = origins;
        retort->quotas = quotas;
        settings = NULL;
        good = true;
    }
    settings_release(&settings);
    pthread_mutex_unlock(&retort->lock);
    warn_of(left, "not applied: ");
    if (good)
        log_info("configuration read again from %s%s", retort->path,
                 left->count == 0 ? "" : "; some changes are not in use, see the warnings above");
    else
        log_error("reload refused, the old configuration stays in use: %s", error);
    return good;
}

/* When this returns all exchanges that begin are recorded. */
static void main_record(void *context, struct recorder *recorder) {
    struct retort *retort = context;
    pthread_mutex_lock(&retort->lock);
    recorder_release(&retort->recorder);
    retort->recorder = recorder_reference(recorder);
    for (unsigned i = 0; i < retort->worker_count; i++)
        worker_record(retort->workers[i], recorder);
    await_workers(retort);
    pthread_mutex_unlock(&retort->lock);
}

static struct recorder *current_recorder(void *context) {
    struct retort *retort = context;
    pthread_mutex_lock(&retort->lock);
    struct recorder *recorder =
        retort->recorder == NULL ? NULL : recorder_reference(retort->recorder);
    pthread_mutex_unlock(&retort->lock);
    return recorder;
}

static void drain(void *context) {
    struct retort *retort = context;
    /* The main thread does it; a second signal would end it at once. */
    if (!atomic_exchange(&retort->draining, true))
        kill(getpid(), SIGTERM);
}

static void main_add_service(struct admin_icap_service *service,
                             const struct worker_service *seen) {
    service->connections += seen->connections;
    service->pending += seen->pending;
    adapter_account_add(&service->account, &seen->account);
    if (service->istag[0] == '\0')
        memcpy(service->istag, seen->istag, sizeof service->istag);
    if (service->product[0] == '\0')
        memcpy(service->product, seen->product, sizeof service->product);
    for (unsigned i = 0; i < service->settings->endpoint_count; i++) {
        service->endpoint_connections[i] += seen->endpoint_connections[i];
    }
}

static void main_add_services(struct admin_report *report, const struct worker_report *worker) {
    if (worker->settings != report->settings)
        return; /* it is about to reload */
    for (size_t i = 0; i < worker->service_count && i < report->icap_service_count; i++)
        main_add_service(&report->icap_services[i], &worker->services[i]);
}

/* Milliseconds. */
static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct settings *current_settings(void *context) {
    struct retort *retort = context;
    pthread_mutex_lock(&retort->lock);
    struct settings *settings = settings_reference(retort->settings);
    pthread_mutex_unlock(&retort->lock);
    return settings;
}

static struct origin_groups *current_origins(void *context) {
    struct retort *retort = context;
    pthread_mutex_lock(&retort->lock);
    struct origin_groups *origins = origin_groups_reference(retort->origins);
    pthread_mutex_unlock(&retort->lock);
    return origins;
}

static bool bump(void *context, const char *service, bool *kept) {
    struct retort *retort = context;
    pthread_mutex_lock(&retort->lock);
    struct service_tag *tag = icap_quotas_tag(retort->quotas, service);
    if (tag != NULL)
        *kept = disk_keep_generation(retort->disk, tag->base, service_tag_bump(tag));
    pthread_mutex_unlock(&retort->lock);
    return tag != NULL;
}

/* As good as its best endpoint. */
static void report_health(struct admin_icap_service *service, struct icap_quota *quota) {
    enum icap_state best = ICAP_STATE_UNKNOWN;
    for (unsigned i = 0; i < quota->endpoint_count; i++) {
        icap_health_read(quota->health[i], &service->health[i]);
        if (service->health[i].state > best)
            best = service->health[i].state;
    }
    service->state = icap_state_name(best);
    service->unadapted_since = atomic_load(&quota->bypasses->since);
    service->unadapted = bypasses_count(quota->bypasses);
}

static void start_report(struct retort *retort, struct admin_report *report) {
    memset(report, 0, sizeof *report);
    pthread_mutex_lock(&retort->lock);
    struct settings *settings = settings_reference(retort->settings);
    struct icap_quotas *quotas = icap_quotas_reference(retort->quotas);
    pthread_mutex_unlock(&retort->lock);
    report->settings = settings;
    report->state = atomic_load(&retort->draining) ? "draining" : "running";
    report->now = monotonic();
    report->uptime = report->now - retort->started;
    report->icap_service_count = settings->icap_service_count;
    report->icap_services =
        xcalloc(settings->icap_service_count + 1, sizeof *report->icap_services);
    for (size_t i = 0; i < settings->icap_service_count; i++) {
        report->icap_services[i].name = settings->icap_services[i].name;
        report->icap_services[i].settings = &settings->icap_services[i];
        report_health(&report->icap_services[i], &quotas->services[i]);
    }
    icap_quotas_release(&quotas);
}

static void main_report(void *context, struct admin_report *report) {
    struct retort *retort = context;
    struct cache_statistics cache;
    start_report(retort, report);
    for (unsigned i = 0; i < retort->worker_count; i++) {
        struct worker_report worker;
        if (atomic_load(&retort->ended) ||
            !worker_report(retort->workers[i], &worker, REPORT_PATIENCE)) {
            report->workers_silent++;
            continue;
        }
        counters_add(&report->counters, &worker.counters);
        main_add_services(report, &worker);
        worker_report_release(&worker);
    }
    verdicts_statistics(retort->verdicts, &report->verdicts);
    cache_statistics(retort->cache, &cache);
    report->cache_bytes = cache.bytes;
    report->cache_objects = cache.objects;
    report->cache_limit = cache.limit;
    report->has_disk = retort->disk != NULL;
    disk_statistics(retort->disk, &report->disk);
}

/* Every connection takes a descriptor, some take two. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void start_drain(struct retort *retort) {
    log_info(
        "draining: retort accepts no new connections and exits when the open ones have finished");
    atomic_store(&retort->draining, true);
    for (unsigned i = 0; i < retort->worker_count; i++)
        worker_drain(retort->workers[i]);
}

/* While the workers finish, a second signal ends them at once. */
static void *hurry_on_signal(void *arg) {
    struct retort *retort = arg;
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigwait(&signals, &number) == 0)
        for (unsigned i = 0; i < retort->worker_count; i++)
            worker_stop(retort->workers[i]);
    return NULL;
}

/* After somebody has renamed them. */
static void reopen_logs(struct retort *retort) {
    pthread_mutex_lock(&retort->lock);
    apply_log(retort->settings);
    for (unsigned i = 0; i < retort->worker_count; i++)
        worker_reopen_logs(retort->workers[i]);
    pthread_mutex_unlock(&retort->lock);
    log_info("logs opened again");
}

static void main_serve(struct retort *retort, const sigset_t *signals) {
    char error[SETTINGS_ERROR];
    int number;
    for (;;) {
        struct findings left = {0};
        if (sigwait(signals, &number) != 0)
            continue;
        if (number == SIGHUP)
            reload(retort, error, &left);
        else if (number == SIGUSR1)
            reopen_logs(retort);
        else
            return;
    }
}

static void main_finish(struct retort *retort) {
    pthread_t hurry;
    bool hurrying = pthread_create(&hurry, NULL, hurry_on_signal, retort) == 0;
    start_drain(retort);
    for (unsigned i = 0; i < retort->worker_count; i++)
        worker_wait(retort->workers[i]);
    atomic_store(&retort->ended, true);
    if (hurrying) {
        pthread_cancel(hurry);
        pthread_join(hurry, NULL);
    }
    admin_stop(&retort->admin);
}

static bool open_disk(struct retort *retort, char error[SETTINGS_ERROR]) {
    retort->disk = disk_open(retort->settings, retort->cache, error);
    return error[0] == '\0';
}

/* What reads and writes the disk ends before those whom it tells, what is on it after those who use
 * it. */
static void main_release(struct retort *retort) {
    disk_stop(retort->disk);
    for (unsigned i = 0; i < retort->worker_count; i++)
        worker_join(&retort->workers[i]);
    free(retort->workers);
    memory_set_giver(NULL, NULL);
    if (retort->cache != NULL)
        cache_free(&retort->cache);
    disk_close(&retort->disk);
    if (retort->shared_fetches != NULL)
        shared_fetches_free(&retort->shared_fetches);
    memory_shares_free(&retort->memory);
    origin_places_free(&retort->places);
    waiting_downloads_free(&retort->waiting_downloads);
    verdicts_free(&retort->verdicts);
    origin_groups_release(&retort->origins);
    icap_quotas_release(&retort->quotas);
    recorder_release(&retort->recorder);
    settings_release(&retort->first);
    settings_release(&retort->settings);
}

static int main_run(struct retort *retort) {
    char error[SETTINGS_ERROR];
    struct findings findings = {0};
    sigset_t signals;
    struct admin_calls calls = {
        .context = retort,
        .report = main_report,
        .reload = reload,
        .drain = drain,
        .bump = bump,
        .settings = current_settings,
        .origins = current_origins,
        .record = main_record,
        .recorder = current_recorder,
    };
    retort->started = monotonic();
    apply_log(retort->settings);
    readiness_of_files(retort->settings, &findings);
    warn_of(&findings, "");
    raise_file_limit();
    reserve_open(RESERVE);
    json_set_alloc_funcs(xmalloc, free);
    signals_take(&signals, (const int[]){SIGHUP, SIGUSR1, SIGTERM, SIGINT}, 4);
    retort->cache = calls.cache = cache_new(retort->settings->cache.memory);
    memory_set_giver(cache_give_back, retort->cache);
    retort->memory = memory_shares_new(retort->settings->workers);
    retort->shared_fetches = shared_fetches_new();
    retort->places = origin_places_new();
    retort->waiting_downloads = waiting_downloads_new();
    retort->verdicts = verdicts_new(retort->settings->verdict_space);
    retort->origins = origin_groups_new(retort->settings, NULL);
    retort->first = settings_reference(retort->settings);
    struct claims *claims = main_claim(retort->settings, NULL, error);
    bool opened = claims != NULL && open_disk(retort, error);
    calls.disk = retort->disk;
    retort->quotas = quotas_for(retort, retort->settings);
    if (opened && start_workers(retort, claims, error))
        retort->admin = admin_start(retort->settings, &calls, error);
    claims_free(&claims);
    if (retort->admin == NULL) {
        fprintf(stderr, "retort: %s\n", error);
        for (unsigned i = 0; i < retort->worker_count; i++)
            worker_stop(retort->workers[i]);
        return 1;
    }
    log_info("serving with %u workers, pid %d", retort->worker_count, (int)getpid());
    main_serve(retort, &signals);
    main_finish(retort);
    log_info("done");
    return 0;
}

static int main_tell_of_check(const struct retort *retort, bool alone) {
    struct findings findings = {0};
    if (!alone) {
        readiness_of_start(retort->settings, &findings);
        readiness_of_files(retort->settings, &findings);
    }
    for (unsigned i = 0; i < findings.count; i++)
        fprintf(stderr, "retort: %s: %s\n", retort->path, findings.text[i]);
    if (findings.more > 0)
        fprintf(stderr, "retort: %s: and %u more\n", retort->path, findings.more);
    if (findings.count > 0)
        return 1;
    printf("%s: the configuration is good\n", retort->path);
    return 0;
}

static int print_options(const char *format) {
    if (strcmp(format, "markdown") == 0)
        settings_print_markdown(stdout);
    else if (strcmp(format, "man") == 0)
        settings_print_man(stdout);
    else
        return 2;
    return 0;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"print-options", required_argument, NULL, 'p'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct retort retort = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char error[SETTINGS_ERROR];
    bool check = false, alone = false;
    int option;
    while ((option = getopt_long(argc, argv, "f:tThV", options, NULL)) != -1) {
        switch (option) {
        case 'f': retort.path = optarg; break;
        case 't': check = true; break;
        case 'T': check = alone = true; break;
        case 'p': return print_options(optarg);
        case 'V': version_print("retort", libraries_list()); return 0;
        case 'h': main_usage(stdout); return 0;
        default: main_usage(stderr); return 2;
        }
    }
    if (retort.path == NULL || optind < argc) {
        main_usage(stderr);
        return 2;
    }
    signals_ignore_harmless();
    log_open(STDERR_FILENO, "retort", LOG_LEVEL_INFO);
    retort.settings = settings_load(retort.path, error);
    if (retort.settings == NULL) {
        fprintf(stderr, "retort: %s\n", error);
        return 1;
    }
    int status = 0;
    if (check)
        status = main_tell_of_check(&retort, alone);
    else
        status = main_run(&retort);
    main_release(&retort);
    return status;
}
