#include "admin/helper_numbers.h"

#include "admin/helper_answer.h"
#include "admin/helperd_call.h"
#include "admin/metric_text.h"
#include "admin/settings.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "part.h"
#include "settings/part_settings.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct helper_socket {
    char *path;          /* NULL: the place is free */
    json_t *answer;      /* a good one; NULL: the last call has brought none */
    bool answered;       /* once at least */
    bool used;           /* the settings name it */
    uint64_t asked_next; /* by the monotonic clock */
    uint64_t failures;
};

struct helper_numbers {
    unsigned magic;
#define HELPER_NUMBERS_MAGIC 0x48454c50u
    pthread_mutex_t lock;
    struct helper_socket sockets[HELPER_NUMBERS_SOCKETS];
};

/* ---- asking ------------------------------------------------------------------------------- */

/* A socket that was never there is that of somebody who has no helpers. */
static bool helper_numbers_is_failure(const struct helper_socket *socket) {
    return socket->answered || access(socket->path, F_OK) == 0;
}

static void helper_numbers_ask(struct helper_socket *socket) {
    char error[HELPERD_CALL_ERROR];
    json_t *command = json_pack("{s:s}", "call", "helpers");
    json_decref(socket->answer);
    socket->answer = helperd_call_within(socket->path, command, HELPER_NUMBERS_PATIENCE,
                                         HELPER_NUMBERS_ANSWER, error);
    json_decref(command);
    if (socket->answer != NULL && !helper_answer_good(socket->answer)) {
        json_decref(socket->answer);
        socket->answer = NULL;
    }
    socket->answered = socket->answered || socket->answer != NULL;
    if (socket->answer == NULL && helper_numbers_is_failure(socket))
        socket->failures++;
    socket->asked_next = clocks_milliseconds(CLOCK_MONOTONIC) +
                         (socket->answer != NULL ? HELPER_NUMBERS_FRESH : HELPER_NUMBERS_PAUSE);
}

static void helper_numbers_use(struct helper_numbers *numbers, const char *path) {
    struct helper_socket *free_one = NULL;
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++) {
        struct helper_socket *socket = &numbers->sockets[i];
        if (socket->path == NULL) {
            free_one = free_one == NULL ? socket : free_one;
        } else if (strcmp(socket->path, path) == 0) {
            socket->used = true;
            return;
        }
    }
    if (free_one != NULL)
        *free_one = (struct helper_socket){.path = xstrdup(path), .used = true};
}

static void helper_numbers_see(void *numbers, const struct helpers_user *user) {
    helper_numbers_use(numbers, user->path);
}

static void helper_numbers_forget(struct helper_socket *socket) {
    json_decref(socket->answer);
    free(socket->path);
    *socket = (struct helper_socket){0};
}

static void helper_numbers_refresh(struct helper_numbers *numbers,
                                   const struct settings *settings) {
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++)
        numbers->sockets[i].used = false;
    helper_numbers_use(numbers, admin_settings_of(settings)->helpers);
    PARTS_FOR_EACH (part, settings)
        if (part_table[part]->settings->each_helpers != NULL)
            part_table[part]->settings->each_helpers(settings->parts[part], helper_numbers_see,
                                                     numbers);
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++) {
        struct helper_socket *socket = &numbers->sockets[i];
        if (!socket->used)
            helper_numbers_forget(socket);
        else if (clocks_milliseconds(CLOCK_MONOTONIC) >= socket->asked_next)
            helper_numbers_ask(socket);
    }
}

/* ---- printing ----------------------------------------------------------------------------- */

/* A sample's place in its family. */
struct helper_place {
    const struct helper_socket *socket;
    const json_t *pool, *lane;
};

typedef void helper_show(FILE *out, const char *name, const struct helper_place *place);

static void helper_labels(FILE *out, const struct helper_place *place) {
    fputs("helperd=\"", out);
    metric_text_label(out, place->socket->path);
    fputs("\",pool=\"", out);
    metric_text_label(out, json_string_value(json_object_get(place->pool, "name")));
    fputc('"', out);
    if (place->lane != NULL)
        fprintf(out, ",lane=\"%s\"", json_string_value(json_object_get(place->lane, "name")));
}

static void helper_sample(FILE *out, const char *name, const struct helper_place *place,
                          const char *label, const char *text, double value) {
    fprintf(out, "retort_%s{", name);
    helper_labels(out, place);
    if (label != NULL) {
        fprintf(out, ",%s=\"", label);
        metric_text_label(out, text);
        fputc('"', out);
    }
    fprintf(out, "} %.15g\n", value);
}

static void show_jobs(FILE *out, const char *name, const struct helper_place *place) {
    static const struct {
        const char *member, *outcome;
    } outcomes[] = {{"served", "served"},   {"unchanged", "unchanged"}, {"failed", "failed"},
                    {"refused", "refused"}, {"timeouts", "timeout"},    {"cancelled", "cancelled"}};
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        helper_sample(out, name, place, "outcome", outcomes[i].outcome,
                      (double)helper_answer_number(place->pool, outcomes[i].member));
}

static void show_refused(FILE *out, const char *name, const struct helper_place *place) {
    const char *reason;
    json_t *value;
    json_object_foreach(json_object_get(place->pool, "refusals"), reason, value)
        helper_sample(out, name, place, "reason", reason, (double)json_integer_value(value));
}

static void show_processes(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)json_array_size(json_object_get(place->pool, "workers")));
}

static void show_restarts(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)helper_answer_number(place->pool, "restarts"));
}

static void show_broken(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)helper_answer_number(place->pool, "broken"));
}

static void show_cpu(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)helper_answer_number(place->pool, "cpu_ms") / 1000);
}

static void show_queued(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)helper_answer_number(place->lane, "queued"));
}

static void show_at_work(FILE *out, const char *name, const struct helper_place *place) {
    helper_sample(out, name, place, NULL, NULL,
                  (double)helper_answer_number(place->lane, "at_work"));
}

static void helper_show_times(FILE *out, const char *name, const struct helper_place *place,
                              const char *member) {
    struct times times;
    char *labels = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&labels, &length);
    if (text == NULL)
        return;
    helper_labels(text, place);
    if (fclose(text) == 0) {
        helper_answer_times(place->lane, member, &times);
        metric_text_times(out, name, labels, &times, NULL);
    }
    free(labels);
}

static void show_waiting(FILE *out, const char *name, const struct helper_place *place) {
    helper_show_times(out, name, place, "waiting");
}

static void show_working(FILE *out, const char *name, const struct helper_place *place) {
    helper_show_times(out, name, place, "working");
}

static const struct helper_family {
    const char *name, *kind, *help;
    bool lanes;
    helper_show *show;
} helper_families[] = {
    {"helper_jobs_total", "counter",
     "Jobs of a pool of helpers that have ended, by how: served, unchanged, failed, refused, "
     "timeout "
     "or cancelled (its client had gone).",
     false, show_jobs},
    {"helper_refused_total", "counter",
     "Jobs that a pool of helpers has refused, by the reason: a full queue, a share of it, a "
     "deadline, a breaker, or the end of retort-helperd. helper_jobs_total counts them too.",
     false, show_refused},
    {"helper_restarts_total", "counter", "Helpers that were started again.", false, show_restarts},
    {"helper_breaker_openings_total", "counter",
     "Times that jobs of a pool were refused because helpers had died one after another.", false,
     show_broken},
    {"helper_cpu_seconds_total", "counter", "Time of a processor that the helpers of a pool used.",
     false, show_cpu},
    {"helper_processes", "gauge", "Helpers of a pool, those that start or leave included.", false,
     show_processes},
    {"helper_queued", "gauge", "Jobs that wait for a helper, by lane: small or large jobs.", true,
     show_queued},
    {"helper_at_work", "gauge", "Jobs that helpers work on now.", true, show_at_work},
    {"helper_queue_seconds", "histogram",
     "Time that jobs waited for a helper, of those that came to one.", true, show_waiting},
    {"helper_job_seconds", "histogram",
     "Time that helpers worked on a job, those included that ended at the deadline or with a dead "
     "helper.",
     true, show_working},
};

static void helper_print_pool(FILE *out, const struct helper_family *family,
                              struct helper_place *place) {
    if (!family->lanes) {
        family->show(out, family->name, place);
        return;
    }
    for (size_t i = 0; i < HELPER_LANES; i++) {
        place->lane = helper_answer_lane(place->pool, helper_lanes[i]);
        family->show(out, family->name, place);
    }
    place->lane = NULL;
}

static void print_family(const struct helper_numbers *numbers, FILE *out,
                         const struct helper_family *family) {
    fprintf(out, "# HELP retort_%s %s\n# TYPE retort_%s %s\n", family->name, family->help,
            family->name, family->kind);
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++) {
        struct helper_place place = {&numbers->sockets[i], NULL, NULL};
        const json_t *pools = json_object_get(numbers->sockets[i].answer, "pools");
        for (size_t n = 0; n < json_array_size(pools); n++) {
            place.pool = json_array_get(pools, n);
            helper_print_pool(out, family, &place);
        }
    }
}

static void print_sockets(const struct helper_numbers *numbers, FILE *out) {
    fputs(
        "# HELP retort_helperd_up 1 when retort-helperd answers at the socket, 0 when it does not. "
        "A socket that has not answered yet has no sample.\n"
        "# TYPE retort_helperd_up gauge\n",
        out);
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++) {
        const struct helper_socket *socket = &numbers->sockets[i];
        if (!socket->answered)
            continue;
        fputs("retort_helperd_up{helperd=\"", out);
        metric_text_label(out, socket->path);
        fprintf(out, "\"} %d\n", socket->answer != NULL);
    }
    fputs(
        "# HELP retort_helperd_failures_total Times that the numbers of helpers were asked for at "
        "the socket, and no answer came in time, or none that can be one.\n"
        "# TYPE retort_helperd_failures_total counter\n",
        out);
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++) {
        const struct helper_socket *socket = &numbers->sockets[i];
        if (socket->path == NULL)
            continue;
        fputs("retort_helperd_failures_total{helperd=\"", out);
        metric_text_label(out, socket->path);
        fprintf(out, "\"} %" PRIu64 "\n", socket->failures);
    }
}

void helper_numbers_print_metrics(struct helper_numbers *numbers, FILE *out,
                                  const struct settings *settings) {
    CHECK_OBJ(numbers, HELPER_NUMBERS_MAGIC);
    pthread_mutex_lock(&numbers->lock);
    helper_numbers_refresh(numbers, settings);
    print_sockets(numbers, out);
    for (size_t i = 0; i < sizeof helper_families / sizeof *helper_families; i++)
        print_family(numbers, out, &helper_families[i]);
    pthread_mutex_unlock(&numbers->lock);
}

struct helper_numbers *helper_numbers_new(void) {
    struct helper_numbers *numbers;
    ALLOC_OBJ(numbers, HELPER_NUMBERS_MAGIC);
    pthread_mutex_init(&numbers->lock, NULL);
    return numbers;
}

void helper_numbers_free(struct helper_numbers **numbersp) {
    struct helper_numbers *numbers = *numbersp;
    *numbersp = NULL;
    if (numbers == NULL)
        return;
    CHECK_OBJ(numbers, HELPER_NUMBERS_MAGIC);
    for (size_t i = 0; i < HELPER_NUMBERS_SOCKETS; i++)
        helper_numbers_forget(&numbers->sockets[i]);
    pthread_mutex_destroy(&numbers->lock);
    FREE_OBJ(numbers);
}
