#include "adapt/warm_up.h"

#include "adapt/adapter.h"
#include "adapt/service_report.h"
#include "base/assert.h"

enum { LOOK_EVERY = 20 }; /* milliseconds */

struct warm_up {
    unsigned magic;
#define WARM_UP_MAGIC 0xada9f145u
    const struct adapt_set *set; /* NULL: all have been asked */
    struct loop *loop;
    struct timer timer;
    size_t next;                              /* in the set */
    size_t asked[WARM_UP_AT_ONCE], asked_now; /* those that have not answered yet */
};

/* Is there an endpoint of it that nobody has asked? */
static bool is_unknown(const struct warm_up *asking, size_t index) {
    struct shared_service *shared = asking->set->shared->services[index];
    struct service_report report = {0};
    if (shared->unloaded)
        return false;
    shared->class->report_shared(shared, &report);
    for (unsigned i = 0; i < asking->set->services[index]->settings->endpoint_count; i++)
        if (report.endpoints[i].state == SERVICE_UNKNOWN)
            return true;
    return false;
}

static void warm_up_ask(struct warm_up *asking, size_t index) {
    struct adapter *adapter = asking->set->services[index];
    adapter->class->refresh(adapter);
    asking->asked[asking->asked_now++] = index;
}

/* Those that are still unknown are asked again, which does nothing as long as somebody asks them:
 * whoever did may have gone with a former set. */
static void forget_known(struct warm_up *asking) {
    size_t count = asking->asked_now;
    asking->asked_now = 0;
    for (size_t i = 0; i < count; i++)
        if (is_unknown(asking, asking->asked[i]))
            warm_up_ask(asking, asking->asked[i]);
}

static void ask_more(struct warm_up *asking) {
    const struct adapt_set *set = asking->set;
    for (; asking->next < set->service_count && asking->asked_now < WARM_UP_AT_ONCE; asking->next++)
        if (is_unknown(asking, asking->next))
            warm_up_ask(asking, asking->next);
}

static void warm_up_on_timer(struct timer *timer) {
    struct warm_up *asking = CONTAINER_OF(timer, struct warm_up, timer);
    CHECK_OBJ(asking, WARM_UP_MAGIC);
    forget_known(asking);
    ask_more(asking);
    if (asking->asked_now > 0)
        loop_timer_after(asking->loop, timer, LOOK_EVERY);
    else
        asking->set = NULL;
}

struct warm_up *warm_up_new(const struct adapt_set *set) {
    struct warm_up *asking;
    if (set->service_count == 0)
        return NULL;
    ALLOC_OBJ(asking, WARM_UP_MAGIC);
    asking->set = set;
    asking->loop = set->services[0]->host->net->loop;
    timer_init(&asking->timer, warm_up_on_timer);
    loop_timer_after(asking->loop, &asking->timer, 0);
    return asking;
}

void warm_up_free(struct warm_up **askingp) {
    struct warm_up *asking = *askingp;
    *askingp = NULL;
    if (asking == NULL)
        return;
    CHECK_OBJ(asking, WARM_UP_MAGIC);
    timer_cancel(&asking->loop->timers, &asking->timer);
    FREE_OBJ(asking);
}
