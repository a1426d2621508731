#include "net/counters.h"

const struct counter_description counter_descriptions[] = {
#define COUNTER(name, kind, help) {#name, COUNTER_##kind, help},
#include "net/counters.def"
#undef COUNTER
};

void counters_add(struct counters *sum, const struct counters *more) {
#define COUNTER(name, kind, help) sum->name += more->name;
#include "net/counters.def"
#undef COUNTER
}
