#include "net/counters.h"

const struct counter_description counter_descriptions[] = {
#define COUNTER(name, kind, help) {#name, COUNTER_##kind, help},
#include "net/counters.def"
#undef COUNTER
};

uint64_t counters_value(const struct counters *counters, size_t which) {
    return ((const uint64_t *)counters)[which];
}

void counters_add(struct counters *sum, const struct counters *more) {
#define COUNTER(name, kind, help) sum->name += more->name;
#include "net/counters.def"
#undef COUNTER
}
