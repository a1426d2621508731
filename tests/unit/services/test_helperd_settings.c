#include "suites.h"

#include "base/assert.h"
#include "base/log.h"
#include "helperd/settings.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* What was written into the log by the last read. */
static char said[16384];

/* Reads a configuration from memory. */
static struct helperd_settings *read_text_of(const char *text) {
    char path[64];
    int file = memfd_create("conf", MFD_CLOEXEC), log = memfd_create("log", MFD_CLOEXEC);
    ASSERT(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    log_open(log, "test", LOG_LEVEL_INFO);
    struct helperd_settings *settings = helperd_settings_read(path);
    log_open(STDERR_FILENO, "test", LOG_LEVEL_INFO);
    ssize_t length = pread(log, said, sizeof said - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    close(file);
    close(log);
    return settings;
}

static void refuses(const char *text, const char *expected) {
    struct helperd_settings *settings = read_text_of(text);
    ck_assert_msg(settings == NULL, "taken: %s", text);
    ck_assert_msg(strstr(said, expected) != NULL, "%s: \"%s\" is not in: %s", text, expected, said);
}

START_TEST(defaults) {
    struct helperd_settings *s = read_text_of("pool a { command = /bin/x }\n");
    ck_assert_msg(s != NULL, "%s", said);
    ck_assert_str_eq(s->socket, "/run/retort/helperd.sock");
    ck_assert(s->socket_group == NULL && s->log == NULL);
    ck_assert_int_eq(s->socket_mode, 0660);
    ck_assert_uint_eq(s->clients, 1024);
    const struct pool_settings *a = &s->pools[0];
    ck_assert_str_eq(a->name, "a");
    ck_assert_str_eq(a->command[0], "/bin/x");
    ck_assert_ptr_null(a->command[1]);
    ck_assert_uint_eq(a->processes, 1);
    ck_assert_uint_eq(a->max_processes, 1);
    ck_assert_uint_eq(a->idle, 30000);
    ck_assert_uint_eq(a->queue, 64);
    ck_assert_uint_eq(a->queue_large, 16);
    ck_assert_uint_eq(a->small, 2 << 20);
    ck_assert_uint_eq(a->deadline, 3000);
    ck_assert_uint_eq(a->max_jobs, 0);
    ck_assert_uint_eq(a->breaker, 8);
    ck_assert_uint_eq(a->breaker_time, 10000);
    ck_assert_uint_eq(a->log_lines, 50);
    ck_assert_int_eq(a->terms.protocol, POOL_JOBS);
    ck_assert(!a->terms.channels);
    ck_assert_int_eq(a->terms.nice, 10);
    ck_assert_int_eq(a->terms.io, IO_AS_NICE);
    ck_assert_int_eq(a->terms.scheduler, SCHED_OTHER);
    ck_assert_uint_eq(a->terms.memory + a->terms.cpu + a->terms.cgroup_weight, 0);
    ck_assert_ptr_null(a->terms.cgroup);
    helperd_settings_free(&s);
}
END_TEST

/* Everything that libconfuse read. */
START_TEST(older_files_are_read) {
    struct helperd_settings *s = read_text_of(
        "// one\n/* two\n three */ socket=\"/tmp/s\" log = \"\" socket_mode = 432 # 0660\n"
        "pool 'first' {\n"
        "  command = {\"/bin/sh\", \"-c\", \"\",}\n"
        "  command = {\"/bin/sh\", '-c', \"\\t\\x41\\102\\.\\e[\\\"\\n\"}\n"
        "  arguments = {} arguments += \"b\" arguments += {'c\\d', \"${NONE:-e}\"}\n"
        "  nice = -5 deadline = 4 deadline = \"2m\" cpu = \"20\" io = \"\" scheduler = batch\n"
        "  memory = 64k small = 1G max_processes = 3 channels = off cgroup = \"\" queue = 3\n"
        "}\n"
        "pool second { protocol = squid_basic channels = yes io = idle\n"
        "  command = \"/usr/lib/squid/x\" arguments = {\"users\"} }");
    ck_assert_msg(s != NULL, "%s", said);
    ck_assert_int_eq(s->socket_mode, 0660);
    ck_assert_ptr_null(s->log);
    const struct pool_settings *first = &s->pools[0], *second = &s->pools[1];
    static const char *const words[] = {"/bin/sh", "-c", "\tAB.\033[\"\n", "b", "c\\d", "e"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        ck_assert_str_eq(first->command[i], words[i]);
    ck_assert_ptr_null(first->command[COUNT_OF(words)]);
    ck_assert_int_eq(first->terms.nice, -5);
    ck_assert_uint_eq(first->deadline, 120000);
    ck_assert_uint_eq(first->terms.cpu, 20000);
    ck_assert_int_eq(first->terms.io, IO_AS_NICE);
    ck_assert_int_eq(first->terms.scheduler, SCHED_BATCH);
    ck_assert_uint_eq(first->terms.memory, 65536);
    ck_assert_uint_eq(first->small, 1 << 30);
    ck_assert_uint_eq(first->queue_large, 1);
    ck_assert_ptr_null(first->terms.cgroup);
    ck_assert_int_eq(second->terms.protocol, POOL_SQUID_BASIC);
    ck_assert(second->terms.channels);
    ck_assert_int_eq(second->terms.io, IO_IDLE);
    ck_assert_str_eq(second->command[1], "users");
    struct pool_settings copy;
    pool_settings_copy(&copy, first);
    helperd_settings_free(&s);
    ck_assert_str_eq(copy.command[3], "b");
    pool_settings_release(&copy);
}
END_TEST

START_TEST(faults_have_a_place_and_an_advice) {
    refuses("", ": there is no pool: write pool NAME {");
    refuses("pool a { }", ":1: pool \"a\" has no command; write: command = {");
    refuses("\npool a { command = x }", ":2: pool a: command must begin with an absolute path, not "
                                        "with \"x\"");
    refuses("pool a { command = /x channels = on }", "channels are for protocol = squid_basic");
    refuses("pool a { command = /x }\npool a { command = /x }", "pool \"a\" is defined twice");
    refuses("pool a { command = /x nice = 20 }", "nice: \"20\" is out of range: from -20 to 19");
    refuses("pool a { command = /x deadline = \"2h\" }", "is out of range: from 1ms to 1h");
    refuses("pool a { command = /x deadline = soon }", "is not a time: write a number with ms");
    refuses("pool a { command = /x comand = /x }", "did you mean \"command\"?");
    refuses("pool a { command = /x inclination = 3 }", "; retort-helperd(8) lists them all");
    refuses("pool a { command = /x memory = much }", "is not a size");
    refuses("pool a { command = \"/x\ny\" }", ":1: a quote (\") is opened here and not closed");
    refuses("socket_mode = 01777 pool a { command = /x }", "is not a mode from 0 to 0777");
    refuses("include = \"x\"\npool a { command = /x }", "unknown option \"include\"");
    refuses("log_lines = 1\npool a { command = /x queue = -1 }",
            ":2: queue: \"-1\" is not a whole");
    ck_assert_msg(strstr(said, ":1: ") != NULL, "all faults are told at once: %s", said);
}
END_TEST

START_TEST(the_kept_manual_is_current) {
    static char kept[1 << 18];
    char *now = NULL;
    size_t length;
    FILE *file = fopen(MANUAL, "r"), *out = open_memstream(&now, &length);
    ck_assert_ptr_nonnull(file);
    kept[fread(kept, 1, sizeof kept - 1, file)] = '\0';
    fclose(file);
    fputs(".\\\" options: begin\n", out);
    helperd_settings_print_manual(out);
    fputs(".\\\" options: end\n", out);
    fclose(out);
    ck_assert_msg(strstr(kept, now) != NULL,
                  "%s is not what the option table says: run \"make docs\" and commit it", MANUAL);
    free(now);
}
END_TEST

Suite *helperd_settings_suite(void) {
    const TTest *const tests[] = {defaults, older_files_are_read, faults_have_a_place_and_an_advice,
                                  the_kept_manual_is_current};
    return suite_of("helperd_settings", tests, COUNT_OF(tests));
}
