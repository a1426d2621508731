#include "client/body_clock.h"

/* Of client.body_timeout: others must not keep a body open for ever. */
enum { FORGIVEN_TIMES = 10 };

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

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t body_clock_forgive(struct body_clock *clock, const struct settings *settings,
                            uint64_t shut, uint64_t now) {
    uint64_t most = FORGIVEN_TIMES * settings->client.body_timeout * 1000000;
    uint64_t more = shut > clock->shut_seen ? shut - clock->shut_seen : 0;
    clock->shut_seen = shut;
    if (clock->waits_since == 0 || clock->forgiven >= most)
        return 0;
    more = smaller(smaller(more, most - clock->forgiven), now - clock->waits_since);
    clock->waits_since += more;
    clock->forgiven += more;
    return more / 1000000;
}

void body_clock_got(struct body_clock *clock, uint64_t now) {
    if (clock->waits_since != 0)
        clock->waited += now - clock->waits_since;
    clock->waits_since = 0;
}
