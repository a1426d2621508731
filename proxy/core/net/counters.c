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

const struct duration_description duration_descriptions[] = {
#define DURATION(name, help) {#name, help},
#include "net/durations.def"
#undef DURATION
};

void durations_sum(struct durations *sum, const struct durations *more) {
#define DURATION(name, help) times_sum(&sum->name, &more->name);
#include "net/durations.def"
#undef DURATION
}
