#include "base/scheduling.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* In nanoseconds. SHORT is shorter than the usual slices; still shorter ones stop a worker in the middle of its work, with
 * cold caches behind it. LONG is the longest that the kernel takes. 0: the usual one. */
enum { SHORT = 500000, LONG = 100000000, USUAL = 0 };

static bool scheduling_terms(pid_t thread, struct sched_attr *terms) {
    return syscall(SYS_sched_getattr, thread, terms, sizeof *terms, 0) == 0;
}

static void set_slice(pid_t thread, struct sched_attr *terms, uint64_t nanoseconds) {
    terms->size = sizeof *terms;
    terms->sched_runtime = nanoseconds;
    syscall(SYS_sched_setattr, thread, terms, 0);
}

void scheduling_take_short_slices(void) {
    struct sched_attr terms = {0};
    if (scheduling_terms(0, &terms) && terms.sched_policy == SCHED_NORMAL)
        set_slice(0, &terms, SHORT); /* another policy is the operator's wish */
}

static bool long_slices_end_early(void) {
    enum { MAJOR = 6, MINOR = 17 };
    struct utsname kernel;
    unsigned major, minor;
    return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
           (major > MAJOR || (major == MAJOR && minor >= MINOR));
}

void scheduling_take_long_slices(pid_t thread, bool wanted) {
    struct sched_attr terms = {0};
    bool known = long_slices_end_early() && scheduling_terms(thread, &terms);
    if (known && (terms.sched_policy == SCHED_NORMAL || terms.sched_policy == SCHED_BATCH))
        set_slice(thread, &terms, wanted ? LONG : USUAL);
}
