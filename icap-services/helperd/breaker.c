#include "helperd/breaker.h"

#include "base/log.h"

#include <string.h>

void breaker_init(struct breaker *breaker, const struct pool_settings *settings) {
    uint64_t opened = breaker->opened;
    *breaker = (struct breaker){.settings = settings, .opened = opened};
}

static void blame(struct breaker *breaker, const char *client) {
    bool known = client != NULL && client[0] != 0;
    bool first = breaker->deaths == 0;
    if (first && known)
        strcpy(breaker->client, client);
    else if (!known || strcmp(breaker->client, client) != 0)
        breaker->client[0] = 0;
    breaker->deaths++;
}

static void breaker_tell(const struct breaker *breaker) {
    const struct pool_settings *settings = breaker->settings;
    bool one = breaker->client[0] != 0;
    log_error("pool %s: %u helpers in a row have died%s%s: %s jobs are refused, one each %llu ms "
              "is tried; look at its command, %s",
              settings->name, breaker->deaths, one ? " of jobs for client " : "", breaker->client,
              one ? "that client's" : "its", (unsigned long long)settings->breaker_time,
              settings->command[0]);
}

bool breaker_note_death(struct breaker *breaker, const char *client, uint64_t now) {
    blame(breaker, client);
    if (breaker->settings->breaker == 0)
        return false;
    if (breaker->state == BREAKER_CLOSED && breaker->deaths < breaker->settings->breaker)
        return false;
    if (breaker->state == BREAKER_CLOSED) {
        breaker->opened++;
        breaker_tell(breaker);
    }
    breaker->state = BREAKER_OPEN;
    breaker->ends = now + breaker->settings->breaker_time;
    return true;
}

void breaker_note_result(struct breaker *breaker) {
    if (breaker->state != BREAKER_CLOSED)
        log_info("pool %s: its helpers work again", breaker->settings->name);
    breaker_init(breaker, breaker->settings);
}

bool breaker_is_open_for_all(const struct breaker *breaker) {
    return breaker->state != BREAKER_CLOSED && breaker->client[0] == 0;
}

static bool concerns(const struct breaker *breaker, const char *client) {
    return breaker->state != BREAKER_CLOSED &&
           (breaker->client[0] == 0 || strcmp(breaker->client, client) == 0);
}

bool breaker_is_open_for(const struct breaker *breaker, const char *client) {
    return breaker->state == BREAKER_OPEN && concerns(breaker, client);
}

bool breaker_admits(struct breaker *breaker, const char *client, uint64_t now) {
    if (!concerns(breaker, client))
        return true;
    if (now < breaker->ends)
        return false;
    breaker->state = BREAKER_TRYING;
    breaker->ends = now + breaker->settings->breaker_time;
    return true;
}

const char *breaker_text(enum breaker_state state) {
    static const char *const texts[] = {"closed", "open", "trying"};
    return texts[state];
}
