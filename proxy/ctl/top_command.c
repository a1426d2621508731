#include "ctl/top_command.h"

#include "base/clocks.h"
#include "base/plural.h"
#include "ctl/event_reader.h"
#include "ctl/log_file.h"
#include "ctl/tail_command.h"
#include "ctl/tally.h"
#include "ctl/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOP_USAGE = 2, ROWS_MOST = 1000, INTERVAL_MOST = 3600 };

/* What both commands take. False: after a message. */
static bool read_view(const struct command_line *line, enum tally_key *key,
                      struct tally_view *view) {
    static const char *const sorts[] = {"requests", "bytes", "errors", "p95"};
    const char *by = command_line_option(line, "by"), *sort = command_line_option(line, "sort");
    *key = tally_key_of(by != NULL ? by : "host");
    *view = (struct tally_view){.json = line->json};
    if (*key == TALLY_NO_KEY) {
        fprintf(stderr, "retortctl: --by: write host, client, url, service or status\n");
        return false;
    }
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (strcmp(sort != NULL ? sort : sorts[0], sorts[i]) == 0)
            view->sort = sorts[i];
    if (view->sort == NULL) {
        fprintf(stderr, "retortctl: --sort: write requests, bytes, errors or p95\n");
        return false;
    }
    view->rows = tail_number(line, "rows", TALLY_ROWS, ROWS_MOST);
    return view->rows > 0;
}

/* The event stream. */

struct top {
    struct event_reader *reader;
    struct tally *tally;
    enum tally_key key;
    struct tally_view view;
    unsigned long interval, count; /* seconds; transactions until the end */
    bool once, fresh, screen;
    uint64_t begun; /* what is counted; milliseconds */
};

static void top_draw(struct top *top) {
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    top->view.seconds = (double)(now - top->begun) / 1000;
    if (top->screen)
        printf("\033[H\033[JThe last %.0f s; %llu %s lost%s\n", top->view.seconds,
               (unsigned long long)event_reader_lost(top->reader),
               plural((int64_t)event_reader_lost(top->reader), "transaction", "transactions"),
               event_reader_is_connected(top->reader) ? "" : "; connecting again");
    tally_print(top->tally, stdout, &top->view);
    if (!top->screen && !top->view.json && !top->once)
        putchar('\n');
    fflush(stdout);
    if (top->fresh) {
        tally_free(&top->tally);
        top->tally = tally_new(top->key);
        top->begun = now;
    }
}

static void top_take(struct top *top, const struct event_read *event) {
    struct log_record record;
    if (log_record_of_json(&record, event->json))
        tally_add(top->tally, &record);
    log_record_release(&record);
    top->count--;
}

/* Reads for an interval. */
static enum event_reader_status top_watch(struct top *top, uint64_t until) {
    struct event_read event;
    enum event_reader_status what = EVENT_READER_QUIET;
    for (;;) {
        uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
        if (now >= until || top->count == 0 || what == EVENT_READER_END)
            return what;
        what = event_reader_next(top->reader, &event, (unsigned)(until - now));
        if (what == EVENT_READER_TRANSACTION)
            top_take(top, &event);
    }
}

static int top_run(struct top *top) {
    uint64_t until = top->begun = clocks_milliseconds(CLOCK_MONOTONIC);
    do {
        until += top->interval * 1000;
        if (top_watch(top, until) == EVENT_READER_END)
            return EXIT_FAILURE;
        top_draw(top);
    } while (!top->once && top->count > 0 && !ferror(stdout));
    return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int top_command(const char *where, const struct command_line *line) {
    struct top top = {
        .interval = tail_number(line, "interval", 1, INTERVAL_MOST),
        .count = tail_number(line, "count", ULONG_MAX, LONG_MAX),
        .once = command_line_option(line, "once") != NULL,
        .fresh = command_line_option(line, "fresh") != NULL,
    };
    if (top.interval == 0 || top.count == 0 || !read_view(line, &top.key, &top.view) ||
        !tail_filters_are_good(line))
        return TOP_USAGE;
    top.screen = !top.once && !line->json && terminal_moves(stdout);
    top.reader = event_reader_open(where, line->words);
    if (top.reader == NULL)
        return EXIT_FAILURE;
    top.tally = tally_new(top.key);
    int status = top_run(&top);
    tally_free(&top.tally);
    event_reader_close(&top.reader);
    return status;
}

/* A log. */

static void take_lines(struct log_file *file, struct tally *tally, uint64_t *bad) {
    struct log_record record;
    struct slice line;
    while (log_file_line(file, &line)) {
        if (log_record_of_line(&record, line.base, line.length))
            tally_add(tally, &record);
        else
            ++*bad;
        log_record_release(&record);
    }
    *bad += log_file_long_lines(file);
}

int logs_top_command(const struct command_line *line) {
    enum tally_key key;
    struct tally_view view;
    if (!read_view(line, &key, &view))
        return TOP_USAGE;
    struct log_file *file = log_file_open(line->words[0]);
    if (file == NULL)
        return EXIT_FAILURE;
    struct tally *tally = tally_new(key);
    take_lines(file, tally, &view.bad_lines);
    bool whole = log_file_close(&file);
    tally_print(tally, stdout, &view);
    tally_free(&tally);
    if (view.bad_lines > 0)
        fprintf(stderr,
                "retortctl: %llu %s left out: not of the formats json, squid and combined\n",
                (unsigned long long)view.bad_lines,
                plural((int64_t)view.bad_lines, "line was", "lines were"));
    return whole && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
