#include "tools/commands.h"

#include "admin/answer.h"
#include "admin/helperd_call.h"
#include "base/assert.h"
#include "tools/terminal.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Returns NULL after a failure; stderr says why. */
static json_t *helperd_client_call(const char *path, const json_t *command) {
    char error[HELPERD_CALL_ERROR] = "";
    json_t *answer = helperd_call(path, command, error);
    if (answer == NULL)
        fprintf(stderr, "%s\n", error);
    answer_show(answer);
    return answer;
}

static long long helperd_client_number(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

static const char *helperd_client_text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "-" : value;
}

static void helperd_client_print_json(const json_t *answer, size_t form) {
    json_dumpf(answer, stdout, form | JSON_ENSURE_ASCII);
    putchar('\n');
    fflush(stdout);
}

static json_t *ask_pools(const char *path) {
    json_t *command = json_pack("{s:s}", "call", "helpers");
    json_t *answer = helperd_client_call(path, command);
    json_decref(command);
    return answer;
}

static int helperd_client_show(const char *path, const struct command_line *line) {
    const struct answer_style style = {.colours = terminal_has_colours(stdout)};
    json_t *answer = ask_pools(path);
    if (answer == NULL)
        return 1;
    if (line->json)
        helperd_client_print_json(answer, JSON_INDENT(2));
    else
        answer_text_write(stdout, line->command->form, &style, answer);
    json_decref(answer);
    return 0;
}

/* ---- top ---------------------------------------------------------------------------------- */

static const json_t *pool_named(const json_t *answer, const char *name) {
    const json_t *pools = json_object_get(answer, "pools");
    for (size_t i = 0; i < json_array_size(pools); i++)
        if (strcmp(helperd_client_text(json_array_get(pools, i), "name"), name) == 0)
            return json_array_get(pools, i);
    return NULL;
}

static size_t count_busy(const json_t *pool) {
    const json_t *workers = json_object_get(pool, "workers");
    size_t busy = 0;
    for (size_t i = 0; i < json_array_size(workers); i++)
        busy += strcmp(helperd_client_text(json_array_get(workers, i), "state"), "busy") == 0;
    return busy;
}

static long long helperd_client_answered(const json_t *pool) {
    return helperd_client_number(pool, "served") + helperd_client_number(pool, "unchanged");
}

/* Prints the changes between two answers. CPU is in percent of one core. */
static void print_top(const json_t *before, const json_t *after, double seconds) {
    const json_t *pools = json_object_get(after, "pools");
    terminal_heading(stdout, "%-12s %5s %9s %6s %9s %7s %9s %9s", "POOL", "NICE", "PROCESSES",
                     "BUSY", "QUEUE", "CPU %", "JOBS/s", "BREAKER");
    for (size_t i = 0; i < json_array_size(pools); i++) {
        const json_t *now = json_array_get(pools, i),
                     *then = pool_named(before, helperd_client_text(now, "name"));
        char queue[48];
        snprintf(queue, sizeof queue, "%lld/%lld", helperd_client_number(now, "queued"),
                 helperd_client_number(now, "queue"));
        double cpu = (double)(helperd_client_number(now, "cpu_ms") -
                              (then == NULL ? 0 : helperd_client_number(then, "cpu_ms")));
        double jobs = (double)(helperd_client_answered(now) -
                               (then == NULL ? 0 : helperd_client_answered(then)));
        printf("%-12s %5lld %9zu %6zu %9s %7.1f %9.1f %9s\n", helperd_client_text(now, "name"),
               helperd_client_number(now, "nice"), json_array_size(json_object_get(now, "workers")),
               count_busy(now), queue, cpu / 10 / seconds, jobs / seconds,
               helperd_client_text(now, "breaker"));
    }
    putchar('\n');
    fflush(stdout);
}

static double monotonic_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* `times` 0 means: until it is interrupted. */
static int helperd_client_top(const char *path, bool as_json, double interval, long times) {
    json_t *before = ask_pools(path);
    double then = monotonic_seconds();
    for (long turn = 0; before != NULL && (times == 0 || turn < times); turn++) {
        struct timespec pause = {(time_t)interval,
                                 (long)((interval - (double)(time_t)interval) * 1e9)};
        nanosleep(&pause, NULL);
        json_t *after = ask_pools(path);
        double now = monotonic_seconds();
        if (after != NULL && as_json)
            helperd_client_print_json(after, JSON_COMPACT);
        else if (after != NULL)
            print_top(before, after, now - then);
        json_decref(before);
        before = after;
        then = now;
    }
    bool good = before != NULL;
    json_decref(before);
    return good ? 0 : 1;
}

static int helpers_top_command(const char *path, const struct command_line *line) {
    char **words = line->words, *end = "";
    double interval = words[0] != NULL ? strtod(words[0], &end) : 2;
    bool bounded = words[0] != NULL && words[1] != NULL && *end == 0;
    long times = bounded ? strtol(words[1], &end, 10) : 0;
    if (*end != 0 || !(interval >= 0.01 && interval <= 3600) || times < 0) {
        fprintf(
            stderr,
            "top needs the seconds between two updates (0.01 to 3600) and the number of updates\n");
        return 2;
    }
    return helperd_client_top(path, line->json, interval, times);
}

static int simple_call(const char *path, bool as_json, json_t *command) {
    json_t *answer = helperd_client_call(path, command);
    json_decref(command);
    if (answer == NULL)
        return 1;
    size_t i, left = json_array_size(json_object_get(answer, "not_applied"));
    for (i = 0; i < left; i++)
        fprintf(stderr, "not applied: %s\n",
                json_string_value(json_array_get(json_object_get(answer, "not_applied"), i)));
    if (as_json)
        helperd_client_print_json(answer, JSON_INDENT(2));
    else if (left == 0)
        puts("done");
    json_decref(answer);
    return left == 0 ? 0 : 1;
}

static int change_command(const char *path, const struct command_line *line, const char *call,
                          const char *what) {
    const char *pool = line->words[0], *text = line->words[1];
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || value < -1000 || value > 1000000) {
        fprintf(stderr, "%s is not a number\n", text);
        return 2;
    }
    json_t *command = json_pack("{s:s, s:s, s:i}", "call", call, "pool", pool, what, (int)value);
    if (command != NULL)
        return simple_call(path, line->json, command);
    fputs("retortctl: the name of the pool is not UTF-8\n", stderr);
    return 2;
}

int helperd_client_command(const char *socket_path, const struct command_line *line) {
    const char *name = line->command->name;
    if (strcmp(name, "helpers top") == 0)
        return helpers_top_command(socket_path, line);
    if (strcmp(name, "helpers renice") == 0)
        return change_command(socket_path, line, "renice", "nice");
    if (strcmp(name, "helpers resize") == 0)
        return change_command(socket_path, line, "resize", "processes");
    if (strcmp(name, "helpers reload") == 0)
        return simple_call(socket_path, line->json, json_pack("{s:s}", "call", "reload"));
    ASSERT(strcmp(name, "helpers") == 0);
    return helperd_client_show(socket_path, line);
}
