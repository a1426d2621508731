/* Chooses the member of a group for a request. */
#include "base/assert.h"
#include "origin/group.h"

#include <math.h>

enum { SHARE = 256, SLOWEST = SHARE / 16 };

uint64_t origin_member_share(const struct origin_group *group, const struct origin_member *member,
                             uint64_t now) {
    uint64_t whole = group->rules.slow_start, ramp = SHARE;
    /* The member may have come up in a worker whose clock is a little ahead. */
    uint64_t since = now > member->up_since ? now - member->up_since : 0;
    if (member->up_since != 0 && since < whole)
        ramp = SLOWEST + (SHARE - SLOWEST) * since / whole;
    return member->weight * ramp;
}

static bool was_tried(const struct origin_wish *wish, const struct origin_member *member) {
    for (unsigned i = 0; i < wish->tried_count; i++)
        if (wish->tried[i] == member->number)
            return true;
    return false;
}

static bool choice_is_full(const struct origin_group *group, const struct origin_member *member) {
    return group->rules.max_connections > 0 && member->active >= group->rules.max_connections;
}

/* A request that can not be repeated elsewhere becomes the probe only when no other request has
 * arrived for twice the time. */
static bool choice_is_due(const struct origin_member *member, const struct origin_wish *wish,
                          uint64_t now) {
    if (member->state != ORIGIN_MEMBER_DOWN || member->probing || member->retry_at > now)
        return false;
    return wish->repeatable || member->retry_at + member->back_off <= now;
}

/* A well mixed number of both (the finaliser of MurmurHash3, by Austin Appleby, public domain). */
static uint64_t choice_mix(uint64_t value) {
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdu;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53u;
    value ^= value >> 33;
    return value;
}

/* Weighted rendezvous hashing: each member has a number for each key, and the largest number
 * wins. When a member goes down, only its own keys move. */
static double draw(uint64_t hash, uint64_t seed, uint64_t share) {
    double even = ((double)(choice_mix(hash ^ seed) >> 11) + 0.5) * 0x1p-53; /* between 0 and 1 */
    return -(double)share / log(even);
}

/* The members that may be chosen: those of one tier. The balance option selects one of them. */
struct field {
    struct origin_group *group;
    const struct origin_wish *wish;
    uint64_t now;
    size_t begin, end; /* in the group's list */
};

/* May this request go there at all? */
static bool choice_is_open(const struct field *field, const struct origin_member *member) {
    return !member->drain && !was_tried(field->wish, member);
}

static bool choice_is_up(const struct field *field, const struct origin_member *member) {
    return member->state == ORIGIN_MEMBER_UP && choice_is_open(field, member);
}

static bool may_enter(const struct field *field, const struct origin_member *member) {
    return choice_is_up(field, member) && !choice_is_full(field->group, member);
}

#define FIELD_FOR_EACH(member, field)                                                              \
    for (size_t i_ = (field)->begin; i_ < (field)->end; i_++)                                      \
        for (struct origin_member *member = (field)->group->members[i_]; member != NULL;           \
             member = NULL)

/* Smooth weighted round robin: each member gets credit for its weight; the one with the most
 * credit is chosen and pays for all. */
static struct origin_member *by_turn(const struct field *field) {
    struct origin_member *best = NULL;
    int64_t sum = 0;
    FIELD_FOR_EACH (member, field) {
        if (!may_enter(field, member))
            continue;
        int64_t share = (int64_t)origin_member_share(field->group, member, field->now);
        member->credit += share;
        sum += share;
        if (best == NULL || member->credit > best->credit)
            best = member;
    }
    if (best != NULL)
        best->credit -= sum;
    return best;
}

/* Among equals, the one that was chosen longest ago. */
static struct origin_member *by_load(const struct field *field) {
    struct origin_member *best = NULL;
    uint64_t best_share = 1;
    FIELD_FOR_EACH (member, field) {
        if (!may_enter(field, member))
            continue;
        uint64_t share = origin_member_share(field->group, member, field->now);
        uint64_t mine = (member->active + 1) * best_share;
        uint64_t theirs = best == NULL ? 0 : (best->active + 1) * share;
        if (best == NULL || mine < theirs || (mine == theirs && member->turn < best->turn)) {
            best = member;
            best_share = share;
        }
    }
    return best;
}

static struct origin_member *by_hash(const struct field *field) {
    struct origin_member *best = NULL;
    double most = 0;
    FIELD_FOR_EACH (member, field) {
        if (!may_enter(field, member))
            continue;
        double drawn = draw(field->wish->hash, member->seed,
                            origin_member_share(field->group, member, field->now));
        if (best == NULL || drawn > most) {
            best = member;
            most = drawn;
        }
    }
    return best;
}

static struct origin_member *balance(const struct field *field) {
    switch (field->group->rules.balance) {
    case ORIGINS_ROUND_ROBIN: return by_turn(field);
    case ORIGINS_LEAST_CONNECTIONS: return by_load(field);
    case ORIGINS_CONSISTENT_HASH: return by_hash(field);
    }
    return NULL;
}

static struct origin_member *due_for_probe(const struct field *field) {
    FIELD_FOR_EACH (member, field) {
        if (choice_is_due(member, field->wish, field->now) && choice_is_open(field, member) &&
            !choice_is_full(field->group, member))
            return member;
    }
    return NULL;
}

static bool any_is_up(const struct field *field) {
    FIELD_FOR_EACH (member, field) {
        if (choice_is_up(field, member))
            return true;
    }
    return false;
}

/* All members are down or drain. Asking one of them is better than an error page. */
static enum origin_choice least_bad(const struct field *field, struct origin_member **chosen) {
    bool full = false;
    FIELD_FOR_EACH (member, field) {
        if (member->state != ORIGIN_MEMBER_DOWN || !choice_is_open(field, member))
            continue;
        full = full || choice_is_full(field->group, member);
        if (!choice_is_full(field->group, member) &&
            (*chosen == NULL || member->failed_at < (*chosen)->failed_at))
            *chosen = member;
    }
    if (*chosen != NULL)
        return ORIGIN_CHOSEN;
    return full ? ORIGIN_ALL_FULL : ORIGIN_NONE_LEFT;
}

/* Goes on to the next tier. False: there is none. */
static bool next_tier(struct field *field) {
    const struct origin_group *group = field->group;
    field->begin = field->end;
    if (field->begin == group->member_count)
        return false;
    unsigned tier = group->members[field->begin]->tier;
    if (tier + 1 == group->tiers)
        field->end = group->member_count;
    while (field->end < group->member_count && group->members[field->end]->tier == tier)
        field->end++;
    return true;
}

enum origin_choice origin_choose(struct origin_group *group, const struct origin_wish *wish,
                                 uint64_t now, struct origin_member **chosen) {
    struct field field = {group, wish, now, 0, 0};
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    *chosen = NULL;
    while (next_tier(&field)) {
        if (group->members[field.begin]->backup && origin_group_is_awaited(group))
            return ORIGIN_ALL_FULL; /* the servers that go before it are not known yet */
        *chosen = due_for_probe(&field);
        if (*chosen != NULL)
            return ORIGIN_CHOSEN_PROBE;
        *chosen = balance(&field);
        if (*chosen != NULL)
            return ORIGIN_CHOSEN;
        if (any_is_up(&field))
            return ORIGIN_ALL_FULL;
    }
    if (group->member_count == 0 && origin_group_is_awaited(group))
        return ORIGIN_ALL_FULL; /* its servers are not known yet */
    field.begin = 0;
    return wish->only_up ? ORIGIN_NONE_LEFT : least_bad(&field, chosen);
}
