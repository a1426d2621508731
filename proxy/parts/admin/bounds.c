#include "admin/bounds.h"

#include "net/counters.h"

#include <stdint.h>

const struct bound bounds[] = {
#define REFUSES(option, name)                                                                      \
    {option, true, offsetof(struct counters, name) / sizeof(uint64_t), #name "_total", NULL},
#define COUNTED(option, metric) {option, false, 0, metric, NULL},
#define UNCOUNTED(option, why)  {option, false, 0, NULL, why},
#include "admin/bounds.def"
#undef REFUSES
#undef COUNTED
#undef UNCOUNTED
    {NULL, false, 0, NULL, NULL},
};
