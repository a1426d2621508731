/*
 * The sandbox takes rights away from a helper, with seccomp filters, before the helper looks at
 * what strangers have sent. So an attacker who takes the helper over can do little more than give a
 * wrong answer. A system call that is not allowed fails; it does not kill the process.
 *
 *     sandbox_enter(SANDBOX_COMPUTE)    only reads, writes and computes with what is open: no
 *                                       files, no network, no programs, no other processes
 *     sandbox_enter(SANDBOX_PROGRAMS)   may run programs and read files, which they need for
 *                                       libraries: no network, nothing written or removed, no
 *                                       signals to others
 *     sandbox_enter(SANDBOX_WRITERS)    as SANDBOX_PROGRAMS, but files may be written and removed
 *     sandbox_enter_with(directory)     as SANDBOX_PROGRAMS, but files may be made, written and
 *                                       removed below that directory. False without Landlock
 *                                       (Linux 5.13): enter another one then
 *
 * The sandbox lasts until the process ends, and holds for its children. The functions return false
 * when the kernel has no seccomp; the helper works without a sandbox then. They also return false
 * under memory checkers, which need more system calls than the program itself. Threads: one.
 */
#ifndef RETORT_HELPERS_SANDBOX_H
#define RETORT_HELPERS_SANDBOX_H

#include <stdbool.h>

enum sandbox_kind { SANDBOX_COMPUTE, SANDBOX_PROGRAMS, SANDBOX_WRITERS };

bool sandbox_enter(enum sandbox_kind kind);
bool sandbox_enter_with(const char *directory);

/* Does this process run under AddressSanitizer, ThreadSanitizer or valgrind? */
bool sandbox_under_checker(void);

#endif
