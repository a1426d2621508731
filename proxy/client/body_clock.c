#include "client/body_clock.h"

uint64_t body_clock_wait(struct body_clock *clock, const struct settings *settings, uint64_t now) {
    uint64_t time = settings->client.body_timeout;
    if (clock->waits_since == 0)
        clock->waits_since = now;
    clock->by_rate = false;
    if (settings->client.min_rate == 0)
        return time;
    uint64_t waited = (clock->waited + now - clock->waits_since) / 1000000;
    uint64_t most = client_slowest_time(settings, clock->got);
    uint64_t left = waited >= most ? 0 : most - waited;
    if (left >= time)
        return time;
    clock->by_rate = true;
    return left;
}

bool body_clock_forgive(struct body_clock *clock, uint64_t until) {
    bool later = clock->waits_since != 0 && clock->waits_since < until;
    if (later)
        clock->waits_since = until;
    return later;
}

void body_clock_got(struct body_clock *clock, uint64_t now) {
    if (clock->waits_since != 0)
        clock->waited += now - clock->waits_since;
    clock->waits_since = 0;
}
