/*
 * text-helper: tells which text to insert into the pages of a client. retort-helperd starts it. The
 * parameters of a job are the client's address, and its answer is the text. The helper reads its
 * file again when the file has changed. If the file can't be read, the old table stays.
 */
#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "helpers/helper_loop.h"
#include "inject/text_table.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *path;
    struct text_table *table;
    struct stat read; /* the file as it was when it was read */
    const char *once; /* the address to answer for, by hand */
    uint64_t delay;   /* milliseconds, to try what a slow helper does */
} texts;

static bool file_is_same(const struct stat *now) {
    return now->st_ino == texts.read.st_ino && now->st_size == texts.read.st_size &&
           now->st_mtim.tv_sec == texts.read.st_mtim.tv_sec &&
           now->st_mtim.tv_nsec == texts.read.st_mtim.tv_nsec;
}

static void read_again(void) {
    struct stat now;
    char error[512];
    if (texts.path == NULL || stat(texts.path, &now) != 0 || file_is_same(&now))
        return;
    texts.read = now;
    struct text_table *table = text_table_read(texts.path, error, sizeof error);
    if (table == NULL) {
        log_error("%s; the texts stay as they were", error);
        return;
    }
    text_table_free(&texts.table);
    texts.table = table;
}

static enum helper_status text_helper_answer(struct helper_work *work) {
    read_again();
    if (texts.delay > 0)
        poll(NULL, 0, (int)texts.delay);
    work->reply_length =
        text_table_answer(texts.table, work->parameters, work->reply, HELPER_INLINE_MAX);
    return work->reply_length > 0 ? HELPER_DONE : HELPER_UNCHANGED;
}

static _Noreturn void text_helper_usage(FILE *to, int status) {
    fprintf(to, "usage: text-helper [--file FILE] [--delay TIME]\n"
                "       text-helper [--file FILE] --once ADDRESS     by hand\n"
                "Takes jobs on descriptor 0; started by retort-helperd. FILE has lines\n"
                "ADDRESS/BITS<TAB>TEXT and default<TAB>TEXT; %%{ip} stands for the client's "
                "address.\nTIME passes before each answer: for trying what waits for one.\n"
                "--help prints this, --version the version.\n");
    exit(status);
}

static _Noreturn void text_helper_version(void) {
    version_print("text-helper", NULL);
    exit(0);
}

static void text_helper_read_options(int argc, char **argv) {
    static const struct option options[] = {
        {"file", required_argument, NULL, 'f'}, {"delay", required_argument, NULL, 'd'},
        {"once", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},    {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "f:d:o:hV", options, NULL)) != -1;) {
        if (c == 'f')
            texts.path = optarg;
        else if (c == 'o')
            texts.once = optarg;
        else if (c == 'h')
            text_helper_usage(stdout, 0);
        else if (c == 'V')
            text_helper_version();
        else if (c != 'd' || !units_read_time(slice_from(optarg), 1000, &texts.delay))
            text_helper_usage(stderr, 2);
    }
    if (optind != argc)
        text_helper_usage(stderr, 2);
}

int main(int argc, char **argv) {
    log_open(STDERR_FILENO, "text-helper", LOG_LEVEL_INFO);
    text_helper_read_options(argc, argv);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    texts.table = text_table_builtin();
    read_again();
    int status = texts.once != NULL ? helper_loop_once(slice_from(texts.once), -1, STDOUT_FILENO,
                                                       text_helper_answer)
                                    : helper_loop_run(text_helper_answer);
    text_table_free(&texts.table);
    return status;
}
