#include "adapters.h"

#include "base/assert.h"
#include "part.h"

const struct adapter_class *adapters_class_of(const struct service_settings *settings) {
    PARTS_FOR_EACH (number, services.class)
        if (part_table[number]->services.kind == settings->kind)
            return part_table[number]->services.class;
    ASSERT(!"the settings have no service of a kind that no part knows");
    return NULL;
}

void adapters_abandon_starts(void) {
    PARTS_FOR_EACH (number, services.abandon_starts)
        part_table[number]->services.abandon_starts();
}

bool adapters_starts_are_abandoned(void) {
    bool abandoned = false;
    PARTS_FOR_EACH (number, services.starts_are_abandoned)
        abandoned |= part_table[number]->services.starts_are_abandoned();
    return abandoned;
}

uint64_t adapters_start_time(const struct settings *settings) {
    uint64_t longest = 0;
    PARTS_FOR_EACH (number, services.start_time) {
        uint64_t time = part_table[number]->services.start_time(settings);
        longest = time > longest ? time : longest;
    }
    return longest;
}

bool adapters_await_end(unsigned milliseconds) {
    bool all = true;
    PARTS_FOR_EACH (number, services.await_end)
        all &= part_table[number]->services.await_end(milliseconds);
    return all;
}
