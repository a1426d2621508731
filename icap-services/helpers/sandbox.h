/*
 * What a helper gives up before it looks at what strangers have sent, by seccomp filters, so that
 * whoever takes it over can do little more than give a wrong answer. Calls that are not allowed
 * fail; nothing dies of them.
 *
 *     sandbox_enter(SANDBOX_COMPUTE)    only reads, writes and computes with what is open: no
 *                                       files, no network, no programs, no other processes
 *     sandbox_enter(SANDBOX_PROGRAMS)   may run programs and read files, which they need for
 *                                       libraries: no network, nothing written or removed, no
 *                                       signals to others
 *     sandbox_enter(SANDBOX_WRITERS)    the same, but files may be written and removed
 *     sandbox_enter_with(directory)     as SANDBOX_PROGRAMS, but files may be made, written and
 *                                       removed below that directory. False without Landlock
 *                                       (Linux 5.13): enter another one then
 *
 * Lasts until the process ends, and for its children. False where the kernel has no seccomp, which
 * is no reason not to work, and under memory checkers, which need more than the program itself.
 */
#ifndef RETORT_HELPERS_SANDBOX_H
#define RETORT_HELPERS_SANDBOX_H

#include <stdbool.h>

enum sandbox_kind { SANDBOX_COMPUTE, SANDBOX_PROGRAMS, SANDBOX_WRITERS };

bool sandbox_enter(enum sandbox_kind kind);
bool sandbox_enter_with(const char *directory);

/* Runs this process under AddressSanitizer, ThreadSanitizer or valgrind? */
bool sandbox_under_checker(void);

#endif
