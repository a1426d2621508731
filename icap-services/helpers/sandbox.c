#include "helpers/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

static const char *const compute_allowed[] = {"brk",
                                              "clock_gettime",
                                              "clock_nanosleep",
                                              "close",
                                              "dup",
                                              "exit",
                                              "exit_group",
                                              "fcntl",
                                              "fstat",
                                              "ftruncate",
                                              "futex",
                                              "getegid",
                                              "geteuid",
                                              "getpid",
                                              "getrandom",
                                              "getrlimit",
                                              "getrusage",
                                              "gettid",
                                              "gettimeofday",
                                              "lseek",
                                              "madvise",
                                              "memfd_create",
                                              "mmap",
                                              "mprotect",
                                              "mremap",
                                              "munmap",
                                              "nanosleep",
                                              "newfstatat",
                                              "poll",
                                              "ppoll",
                                              "pread64",
                                              "prlimit64",
                                              "pwrite64",
                                              "read",
                                              "readv",
                                              "recvfrom",
                                              "recvmsg",
                                              "restart_syscall",
                                              "rt_sigaction",
                                              "rt_sigprocmask",
                                              "rt_sigreturn",
                                              "sched_yield",
                                              "sendmsg",
                                              "sendto",
                                              "setrlimit",
                                              "sigaltstack",
                                              "tgkill",
                                              "wait4",
                                              "write",
                                              "writev",
                                              "set_robust_list",
                                              "rseq",
                                              NULL};

static const char *const programs_denied[] = {"accept",
                                              "accept4",
                                              "add_key",
                                              "bind",
                                              "bpf",
                                              "chroot",
                                              "connect",
                                              "delete_module",
                                              "finit_module",
                                              "init_module",
                                              "io_uring_enter",
                                              "io_uring_register",
                                              "io_uring_setup",
                                              "kexec_load",
                                              "keyctl",
                                              "kill",
                                              "listen",
                                              "mount",
                                              "move_mount",
                                              "name_to_handle_at",
                                              "open_by_handle_at",
                                              "open_tree",
                                              "openat2",
                                              "perf_event_open",
                                              "pidfd_getfd",
                                              "pidfd_open",
                                              "pidfd_send_signal",
                                              "pivot_root",
                                              "process_vm_readv",
                                              "process_vm_writev",
                                              "ptrace",
                                              "reboot",
                                              "request_key",
                                              "setns",
                                              "socket",
                                              "swapoff",
                                              "swapon",
                                              "tkill",
                                              "umount2",
                                              "unshare",
                                              "userfaultfd",
                                              NULL};

static const char *const writing_denied[] = {
    "chmod",     "chown",  "creat",    "fchmod",  "fchmodat",  "fchown",   "fchownat",  "lchown",
    "link",      "linkat", "mkdir",    "mkdirat", "mknod",     "mknodat",  "rename",    "renameat",
    "renameat2", "rmdir",  "setxattr", "symlink", "symlinkat", "truncate", "utimensat", NULL};

static const char *const removing_denied[] = {"unlink", "unlinkat", NULL};

bool sandbox_under_checker(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif __has_include(<valgrind/valgrind.h>)
    return RUNNING_ON_VALGRIND;
#else
    return false;
#endif
}

/* A call that the kernel of this machine does not have needs no rule. */
static bool add_all(scmp_filter_ctx filter, uint32_t action, const char *const *names) {
    bool good = true;
    for (; *names != NULL; names++) {
        int number = seccomp_syscall_resolve_name(*names);
        if (number >= 0)
            good &= seccomp_rule_add(filter, action, number, 0) == 0;
    }
    return good;
}

/* Denies to open a file for writing, in each way that the flags can say it. */
static bool deny_writing(scmp_filter_ctx filter, int call, unsigned flags_at) {
    static const scmp_datum_t masks[][2] = {
        {O_ACCMODE, O_WRONLY}, {O_ACCMODE, O_RDWR}, {O_CREAT, O_CREAT}};
    bool good = true;
    for (int i = 0; call >= 0 && i < 3; i++)
        good &=
            seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), call, 1,
                             SCMP_CMP(flags_at, SCMP_CMP_MASKED_EQ, masks[i][0], masks[i][1])) == 0;
    return good;
}

static bool sandbox_fill(scmp_filter_ctx filter, enum sandbox_kind kind, bool has_scratch) {
    if (kind == SANDBOX_COMPUTE)
        return add_all(filter, SCMP_ACT_ALLOW, compute_allowed);
    bool good = add_all(filter, SCMP_ACT_ERRNO(EPERM), programs_denied);
    if (kind == SANDBOX_WRITERS)
        return good;
    good &= add_all(filter, SCMP_ACT_ERRNO(EPERM), writing_denied);
    if (has_scratch) /* Landlock knows where */
        return good;
    return good && add_all(filter, SCMP_ACT_ERRNO(EPERM), removing_denied) &&
           deny_writing(filter, SCMP_SYS(openat), 2) && deny_writing(filter, SCMP_SYS(open), 1);
}

static bool sandbox_load(enum sandbox_kind kind, bool has_scratch) {
    uint32_t otherwise = kind == SANDBOX_COMPUTE ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW;
    scmp_filter_ctx filter = seccomp_init(otherwise);
    bool good =
        filter != NULL && sandbox_fill(filter, kind, has_scratch) && seccomp_load(filter) == 0;
    if (filter != NULL)
        seccomp_release(filter);
    return good;
}

bool sandbox_enter(enum sandbox_kind kind) {
    return !sandbox_under_checker() && sandbox_load(kind, false);
}

/* All rights to change files that the first version of Landlock knows. seccomp denies those that
 * came later. */
static bool landlock(const char *directory) {
    enum {
        SCRATCH = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                  LANDLOCK_ACCESS_FS_REMOVE_FILE
    };
    const struct landlock_ruleset_attr rules = {
        .handled_access_fs = SCRATCH | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                             LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                             LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                             LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
    struct landlock_path_beneath_attr below = {
        .allowed_access = SCRATCH, .parent_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    bool good = set >= 0 && below.parent_fd >= 0 &&
                syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0 &&
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                syscall(SYS_landlock_restrict_self, set, 0) == 0;
    if (set >= 0)
        close(set);
    if (below.parent_fd >= 0)
        close(below.parent_fd);
    return good;
}

bool sandbox_enter_with(const char *directory) {
    return !sandbox_under_checker() && landlock(directory) && sandbox_load(SANDBOX_PROGRAMS, true);
}
