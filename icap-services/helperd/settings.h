/*
 * The configuration of retort-helperd, by the table in options.def: a file in the grammar of
 * retort.conf, read whole into a struct that is not changed afterwards.
 *
 *     socket = "/run/retort/helperd.sock"
 *     pool gray {
 *         command   = {"/usr/libexec/retort/gray-helper"}
 *         processes = 2
 *         nice      = 10
 *         queue     = 64
 *         deadline  = "3s"
 *         max_jobs  = 0
 *     }
 *     pool staff {
 *         protocol  = squid_basic
 *         command   = "/usr/lib/squid/basic_ncsa_auth"
 *         arguments = {"/etc/retort/users"}
 *     }
 *
 * retort-helperd(8) explains each option.
 *
 *     struct helperd_settings *settings = helperd_settings_read(path);   NULL: errors are logged
 *     helperd_settings_free(&settings);
 */
#ifndef RETORT_HELPERD_SETTINGS_H
#define RETORT_HELPERD_SETTINGS_H

#include "base/findings.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NICE_LOW = -20, NICE_HIGH = 19, POOL_PROCESSES_MAX = 256, POOL_QUEUE_MAX = 65536 };

/* The priority of a helper's input and output: ioprio_set(2). */
enum { IO_AS_NICE = -1, IO_BEST_EFFORT_LOWEST = 7, IO_IDLE = 8 };

/* What a helper speaks: packets (service/helper_protocol.h), or lines as Squid's helpers do
 * (service/helper_line.h). */
enum pool_protocol { POOL_JOBS, POOL_SQUID_BASIC, POOL_SQUID_EXTERNAL_ACL };

/* How a helper is run. */
struct helper_terms {
    enum pool_protocol protocol;
    bool channels; /* lines begin with the number of a channel */
    int nice;
    int io;                 /* IO_AS_NICE, 0 (first) to 7 (last) in turn, IO_IDLE */
    int scheduler;          /* SCHED_OTHER, SCHED_BATCH, SCHED_IDLE */
    size_t memory;          /* bytes of address space; 0: no limit */
    uint64_t cpu;           /* milliseconds of CPU time for a job; 0: no limit */
    char *cgroup;           /* directory of a cgroup v2; NULL: that of retort-helperd */
    unsigned cgroup_weight; /* its cpu.weight, 1 to 10000; 0: as it is */
};

struct pool_settings {
    char *name;
    char **command;   /* ends with NULL */
    char **arguments; /* only while the file is read; they are part of `command` then */
    unsigned processes;
    unsigned max_processes; /* at least `processes`; the pool grows to it while jobs wait */
    uint64_t idle;          /* milliseconds without work after which those beyond it leave */
    struct helper_terms terms;
    unsigned breaker;      /* deaths in a row after which jobs are refused; 0: never */
    uint64_t breaker_time; /* milliseconds until one job is tried again */
    unsigned queue;
    unsigned queue_large; /* large jobs in it at most */
    size_t small;         /* the largest cost of a small job */
    uint64_t deadline;    /* milliseconds */
    unsigned max_jobs;    /* a helper is replaced after so many; 0: never */
    unsigned log_lines;   /* lines a second that its helpers may write into the log */
};

struct helperd_settings {
    char *socket;
    char *socket_group; /* NULL: as the process */
    int socket_mode;
    char *log; /* NULL: stderr */
    unsigned clients;
    struct pool_settings *pools;
    unsigned pool_count;
};

struct helperd_settings *helperd_settings_read(const char *path);
/* Finds what the settings name and this machine lacks: programs, directories, a group. */
void helperd_settings_check(const struct helperd_settings *settings, struct findings *findings);
void helperd_settings_free(struct helperd_settings **settingsp);
/* The part of retort-helperd(8) about the options. */
void helperd_settings_print_manual(FILE *out);

/* Makes a deep copy, which pool_settings_release releases. */
void pool_settings_copy(struct pool_settings *to, const struct pool_settings *from);
void pool_settings_release(struct pool_settings *settings);
/* Can the helpers that run under `a` go on under `b`? The nice level does not matter, since it can
 * be changed while a helper runs. */
bool pool_settings_same_process(const struct pool_settings *a, const struct pool_settings *b);

#endif
