#include "tools/commands.h"

#include "base/clocks.h"
#include "base/plural.h"
#include "tools/event_reader.h"
#include "tools/tally.h"
#include "tools/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INTERVAL_MOST = 3600 };

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
    struct log_entry record;
    if (log_entry_of_json(&record, event->json))
        tally_add(top->tally, &record);
    log_entry_release(&record);
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
        .interval = command_line_number(line, "interval", 1, INTERVAL_MOST),
        .count = command_line_number(line, "count", ULONG_MAX, LONG_MAX),
        .once = command_line_option(line, "once") != NULL,
        .fresh = command_line_option(line, "fresh") != NULL,
    };
    if (top.interval == 0 || top.count == 0 || !tally_view_read(&top.view, &top.key, line) ||
        !tail_filters_are_good(line))
        return COMMAND_USAGE;
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
