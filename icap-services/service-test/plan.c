#include "service-test/plan.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROOM = 64 * 1024, ROOM_MOST = 1 << 20, AT_ONCE = 1 << 20, BYTE_BY_BYTE = 256 * 1024 };

/* ---- one plan ----------------------------------------------------------------------------- */

struct test_plan test_plan_usual(size_t length, bool has_body, unsigned preview_size) {
    size_t preview = length < preview_size ? length : preview_size;
    return (struct test_plan){
        .preview = (int64_t)preview,
        .end = !has_body || length < preview_size,
        .out = ROOM,
        .stop = TEST_NEVER,
        .leave = TEST_NEVER,
    };
}

void test_plan_write(const struct test_plan *plan, char text[TEST_PLAN_TEXT]) {
    static const char *const splits[] = {
        [SPLIT_ONCE] = "all", [SPLIT_PIECES] = "", [SPLIT_CUT] = "@", [SPLIT_MIXED] = "~"};
    char preview[24] = "none", number[24] = "", stop[32] = "", leave[32] = "";
    if (plan->preview != TEST_PREVIEW_NONE)
        snprintf(preview, sizeof preview, "%" PRId64, plan->preview);
    if (plan->split != SPLIT_ONCE)
        snprintf(number, sizeof number, "%" PRIu64, plan->number);
    if (plan->stop != TEST_NEVER)
        snprintf(stop, sizeof stop, ",stop=%" PRIu64, plan->stop);
    if (plan->leave != TEST_NEVER)
        snprintf(leave, sizeof leave, ",leave=%" PRIu64, plan->leave);
    snprintf(text, TEST_PLAN_TEXT, "preview=%s%s,in=%s%s,out=%zu%s%s%s%s%s%s%s", preview,
             plan->end ? ",end" : "", splits[plan->split], number, plan->out,
             plan->late ? ",pull=late" : "", plan->wait_first ? ",wait=first" : "",
             plan->idle ? ",idle" : "", plan->copy ? ",copy" : "", plan->beside ? ",beside" : "",
             stop, leave);
}

static bool plan_split(struct test_plan *plan, struct slice value) {
    plan->split = SPLIT_PIECES;
    if (slice_equal(value, SLICE("all"))) {
        plan->split = SPLIT_ONCE;
        return true;
    }
    if (value.length > 0 && (value.base[0] == '@' || value.base[0] == '~')) {
        plan->split = value.base[0] == '@' ? SPLIT_CUT : SPLIT_MIXED;
        value = slice_make(value.base + 1, value.length - 1);
    }
    return slice_to_uint64(value, &plan->number) &&
           (plan->split != SPLIT_PIECES || plan->number > 0);
}

static bool plan_set(struct test_plan *plan, struct slice name, struct slice value) {
    uint64_t number;
    bool is_number = slice_to_uint64(value, &number);
    if (slice_equal(name, SLICE("preview"))) {
        plan->preview = is_number ? (int64_t)number : TEST_PREVIEW_NONE;
        return (is_number && number <= INT32_MAX) || slice_equal(value, SLICE("none"));
    }
    if (slice_equal(name, SLICE("in")))
        return plan_split(plan, value);
    if (slice_equal(name, SLICE("pull")))
        return plan->late = slice_equal(value, SLICE("late"));
    if (slice_equal(name, SLICE("wait")))
        return plan->wait_first = slice_equal(value, SLICE("first"));
    if (slice_equal(name, SLICE("out"))) {
        plan->out = (size_t)number;
        return is_number && number > 0 && number <= ROOM_MOST;
    }
    uint64_t *place = slice_equal(name, SLICE("stop"))    ? &plan->stop
                      : slice_equal(name, SLICE("leave")) ? &plan->leave
                                                          : NULL;
    if (place != NULL) {
        *place = number;
        return is_number;
    }
    bool *flag = slice_equal(name, SLICE("end"))      ? &plan->end
                 : slice_equal(name, SLICE("idle"))   ? &plan->idle
                 : slice_equal(name, SLICE("copy"))   ? &plan->copy
                 : slice_equal(name, SLICE("beside")) ? &plan->beside
                                                      : NULL;
    if (flag != NULL)
        *flag = true;
    return flag != NULL && value.length == 0;
}

bool test_plan_read(struct test_plan *plan, const char *text, char error[TEST_PLAN_ERROR]) {
    struct slice rest = slice_from(text), part;
    *plan = (struct test_plan){
        .preview = TEST_PREVIEW_NONE, .out = ROOM, .stop = TEST_NEVER, .leave = TEST_NEVER};
    while (slice_next_element(&rest, &part)) {
        const char *sign = memchr(part.base, '=', part.length);
        size_t name = sign == NULL ? part.length : (size_t)(sign - part.base);
        struct slice value =
            sign == NULL ? SLICE("") : slice_make(sign + 1, part.length - name - 1);
        if (!plan_set(plan, slice_make(part.base, name), value)) {
            snprintf(error, TEST_PLAN_ERROR,
                     "the plan has the part \"%.*s\", which means nothing: write it as findings "
                     "show it, such as preview=12,in=1,out=7",
                     (int)(part.length < 60 ? part.length : 60), part.base);
            return false;
        }
    }
    return true;
}

/* Numbers that are the same in each run. */
static uint64_t mixed(uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static size_t mixed_piece(uint64_t seed, uint64_t at) {
    static const size_t most[] = {1, 3, 16, 200, 5000, 70000};
    uint64_t number = mixed(seed ^ mixed(at));
    return 1 + (size_t)((number >> 8) % most[number % (sizeof most / sizeof *most)]);
}

size_t test_plan_piece(const struct test_plan *plan, uint64_t at, size_t rest) {
    size_t length = rest;
    if (plan->split == SPLIT_PIECES)
        length = (size_t)plan->number;
    else if (plan->split == SPLIT_CUT && at < plan->number)
        length = (size_t)(plan->number - at);
    else if (plan->split == SPLIT_MIXED)
        length = mixed_piece(plan->number, at);
    if (length > AT_ONCE)
        length = AT_ONCE;
    return length < rest ? length : rest;
}

/* ---- many plans --------------------------------------------------------------------------- */

static struct test_plan *plans_add(struct test_plans *plans, struct test_plan plan) {
    if ((plans->count & (plans->count + 1)) == 0)
        plans->list = xrealloc(plans->list, 2 * (plans->count + 1) * sizeof *plans->list);
    plans->list[plans->count] = plan;
    return &plans->list[plans->count++];
}

static size_t plans_place(struct test_plans *plans, size_t most) {
    plans->state = mixed(plans->state);
    return most == 0 ? 0 : (size_t)(plans->state % (most + 1));
}

/* Calls `add` for each place of 0..most, or for `count` of them: both ends, and between them places
 * around powers of two and any others. */
static void each_place(struct test_plans *plans, size_t most, uint64_t count,
                       void (*add)(struct test_plans *plans, const struct test_plan *usual,
                                   size_t place),
                       const struct test_plan *usual) {
    enum { ENDS = 8 };
    if (most <= count) {
        for (size_t place = 0; place <= most; place++)
            add(plans, usual, place);
        return;
    }
    for (size_t i = 0; i < ENDS && count > 2; i++, count -= 2) {
        add(plans, usual, i);
        add(plans, usual, most - i);
    }
    for (size_t power = 16; power < most && count > 3; power *= 2, count -= 3)
        for (size_t place = power - 1; place <= power + 1 && place <= most; place++)
            add(plans, usual, place);
    for (; count > 0; count--)
        add(plans, usual, plans_place(plans, most));
}

static void add_preview(struct test_plans *plans, const struct test_plan *usual, size_t place) {
    struct test_plan plan = *usual;
    plan.preview = (int64_t)place;
    plan.end = false;
    plans_add(plans, plan);
}

static void add_cut(struct test_plans *plans, const struct test_plan *usual, size_t place) {
    struct test_plan plan = *usual;
    if (place == 0)
        return;
    plan.split = SPLIT_CUT;
    plan.number = place;
    plans_add(plans, plan);
}

static void add_stop(struct test_plans *plans, const struct test_plan *usual, size_t place) {
    struct test_plan plan = *usual;
    plan.stop = place;
    plan.end = false;
    if (plan.preview > (int64_t)place)
        plan.preview = (int64_t)place;
    plans_add(plans, plan);
}

static void add_leave(struct test_plans *plans, const struct test_plan *usual, size_t place) {
    struct test_plan plan = *usual;
    plan.leave = place;
    plans_add(plans, plan);
}

/* The same pieces with all that else may vary. */
static void add_kinds(struct test_plans *plans, const struct test_plan *usual, size_t length) {
    static const uint64_t pieces[] = {1, 2, 3, 7, 61, 997, 4064, 4096, 16384, 65536};
    static const size_t rooms[] = {1, 7, 1000, 4064};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces && pieces[i] < length; i++) {
        if (length / pieces[i] > BYTE_BY_BYTE)
            continue;
        struct test_plan plan = *usual;
        plan.split = SPLIT_PIECES;
        plan.number = pieces[i];
        plans_add(plans, plan);
        plans_add(plans, plan)->late = true;
        plans_add(plans, plan)->wait_first = true;
        plans_add(plans, plan)->idle = true;
        plan.preview = TEST_PREVIEW_NONE;
        plan.end = false;
        plans_add(plans, plan);
    }
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        struct test_plan plan = *usual;
        plan.out = length / rooms[i] > BYTE_BY_BYTE ? 61 : rooms[i];
        plans_add(plans, plan);
        plan.split = SPLIT_PIECES;
        plan.number = length > BYTE_BY_BYTE ? 997 : 1 + i;
        plans_add(plans, plan);
        plans_add(plans, plan)->late = true;
    }
}

static void add_mixed(struct test_plans *plans, const struct test_plan *usual) {
    enum { SEEDS = 8 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test_plan plan = *usual;
        plan.split = SPLIT_MIXED;
        plan.number = seed;
        plan.late = seed % 2 == 0;
        plan.out = seed % 3 == 0 ? 4064 : ROOM;
        plans_add(plans, plan);
    }
}

void test_plans_make(struct test_plans *plans, size_t length, bool has_body, unsigned preview_size,
                     uint64_t cuts) {
    enum { FEW = 24, LARGE = 8 };
    size_t preview = length < preview_size ? length : preview_size;
    struct test_plan usual = test_plan_usual(length, has_body, preview_size), none = usual;
    *plans = (struct test_plans){.state = length};
    plans_add(plans, usual);
    plans_add(plans, usual)->copy = true;
    if (length > cuts)
        cuts = cuts / LARGE + 1;
    if (!has_body)
        return;
    none.preview = TEST_PREVIEW_NONE;
    none.end = false;
    plans_add(plans, none);
    if (length == preview) {
        usual.end = true; /* also where the preview is exactly as long as the body */
        plans_add(plans, usual);
    }
    each_place(plans, preview, cuts, add_preview, &usual);
    usual.end = false;
    add_kinds(plans, &usual, length);
    each_place(plans, length == 0 ? 0 : length - 1, cuts, add_cut, &usual);
    each_place(plans, length == 0 ? 0 : length - 1, cuts, add_cut, &none);
    add_mixed(plans, &usual);
    each_place(plans, length, FEW, add_stop, &usual);
    each_place(plans, length, FEW, add_leave, &usual);
}

void test_plans_release(struct test_plans *plans) {
    free(plans->list);
    *plans = (struct test_plans){0};
}
