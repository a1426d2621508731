#include "net/connect_race.h"

#include "base/assert.h"
#include "net/own_connections.h"
#include "net/privileges.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* In milliseconds: for how long a family without a route comes last, and an address that refused. */
enum { NO_ROUTE_FOR = 10000, REFUSED_FOR = 30000 };

const char connect_race_not_permitted[] =
    "an access section does not let this client reach the address";

/* The socket of an attempt. */

/* Makes the connection come from terms.from. The system chooses the port when it knows where the
 * connection goes, so that there are enough ports. */
static bool bind_to_source(const struct connect_race *race, int fd, const struct address *to) {
    int on = 1;
    if (race->terms.from == NULL || race->terms.from->any.sa_family != to->any.sa_family)
        return true;
    struct address from = *race->terms.from;
    address_set_port(&from, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return privileges_set_foreign(fd, &from, true) && bind(fd, &from.any, from.length) == 0;
}

/* Returns a socket whose connection is under way, or -1 and errno. */
static int open_attempt_socket(const struct connect_race *race, const struct address *to) {
    int on = 1;
    unsigned mark = race->net->configured.mark;
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if ((mark == 0 || privileges_set_mark(fd, mark)) && bind_to_source(race, fd, to) &&
        (connect(fd, &to->any, to->length) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The attempts of a race. */

static void on_attempt_ready(struct connection *connection);

/* Begins to connect. Returns 0, or an error number when that fails at once. */
static int attempt_begin(struct connect_race *race, struct connect_attempt *attempt) {
    struct net_context *net = race->net;
    int fd = open_attempt_socket(race, &attempt->address);
    if (fd < 0)
        return errno;
    struct own_connection *own =
        net->configured.transparent
            ? net->own_connections->add(net->own_connections, fd, &attempt->address)
            : NULL;
    attempt->connection = connection_new(net, &fd, on_attempt_ready, race);
    if (attempt->connection == NULL) {
        if (own != NULL)
            net->own_connections->remove(net->own_connections, &own);
        return ENOMEM;
    }
    attempt->connection->own = own;
    return 0;
}

/* Is the new connection allowed from the local address that the system chose? Nothing has been sent
 * on it yet. */
static bool attempt_leads_out(const struct connect_race *race,
                              const struct connect_attempt *attempt) {
    struct address from = {.length = sizeof from.v6};
    if (race->terms.egress == EGRESS_ANY)
        return true;
    return getsockname(attempt->connection->event.fd, &from.any, &from.length) == 0 &&
           egress_allows_from(race->net, race->terms.egress, &attempt->address, &from);
}

static void attempt_close(struct connect_race *race, struct connect_attempt *attempt,
                          enum connect_attempt_state state) {
    if (attempt->state == CONNECT_TRYING)
        race->trying--;
    attempt->state = state;
    connection_close(&attempt->connection);
}

static void pass_over(struct connect_race *race, const char *error) {
    if (race->tried)
        return; /* the error of that address says more */
    race->denied = true;
    race->error = error;
}

/* Why the address may not be dialled; NULL: it may. */
static const char *denial_of(const struct connect_race *race, const struct address *address) {
    const struct connect_race_terms *terms = &race->terms;
    if (!egress_allows(race->net, terms->egress, address))
        return egress_error(terms->egress);
    return terms->permit == NULL || terms->permit(terms->permit_arg, address)
               ? NULL
               : connect_race_not_permitted;
}

static void attempt_note_failure(struct connect_race *race, const struct connect_attempt *attempt,
                                 int error) {
    race->address = attempt->address;
    race->error = strerrordesc_np(error);
    race->timed_out = error == ETIMEDOUT;
    if (race->count > 1)
        slow_addresses_note(&race->net->slow_addresses, &attempt->address,
                            race->net->loop->now +
                                (race->timed_out ? SLOW_ADDRESS_FOR : REFUSED_FOR));
}

/* There is no route to any address of the family, or the machine has none of its own. */
static void note_no_route(struct connect_race *race, const struct connect_attempt *attempt,
                          int error) {
    if (error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT)
        race->net->no_route_until[attempt->address.any.sa_family == AF_INET6] =
            race->net->loop->now + NO_ROUTE_FOR;
}

/* True: the attempt is under way. */
static bool attempt_try(struct connect_race *race, struct connect_attempt *attempt) {
    const char *denial = denial_of(race, &attempt->address);
    attempt->state = CONNECT_TRIED;
    if (!race->tried)
        race->address = attempt->address;
    if (denial != NULL) {
        pass_over(race, denial);
        return false;
    }
    int error = attempt_begin(race, attempt);
    if (error == 0 && !attempt_leads_out(race, attempt)) {
        connection_close(&attempt->connection);
        pass_over(race, egress_error(race->terms.egress));
        return false;
    }
    race->tried = true;
    race->denied = false;
    race->address = attempt->address;
    if (error != 0) {
        attempt_note_failure(race, attempt, error);
        note_no_route(race, attempt, error);
        return false;
    }
    race->net->counters.connect_races += race->trying > 0;
    attempt->state = CONNECT_TRYING;
    attempt->started = race->net->loop->now;
    race->trying++;
    return true;
}

static struct connect_attempt *next_untried(struct connect_race *race) {
    for (unsigned i = 0; i < race->count; i++)
        if (race->attempts[i].state == CONNECT_UNTRIED)
            return &race->attempts[i];
    return NULL;
}

/* Starts the next attempt, if any is left. False: none could be started. */
static bool start_another(struct connect_race *race) {
    struct connect_attempt *attempt;
    while ((attempt = next_untried(race)) != NULL)
        if (attempt_try(race, attempt)) {
            uint64_t delay = race->net->configured.attempt_delay;
            race->next_at = delay == 0 ? TIMER_NEVER : race->net->loop->now + delay;
            return true;
        }
    return false;
}

/* The whole race. */

static void race_end(struct connect_race *race) {
    race->running = false;
    timer_cancel(&race->net->loop->timers, &race->timer);
    race->on_end(race);
}

/* The timer runs when an attempt has had its time, or another one is due. */
static void race_arm(struct connect_race *race) {
    uint64_t at = TIMER_NEVER;
    for (unsigned i = 0; i < race->count; i++) {
        const struct connect_attempt *attempt = &race->attempts[i];
        if (attempt->state == CONNECT_TRYING && attempt->started + race->terms.patience < at)
            at = attempt->started + race->terms.patience;
    }
    if (race->next_at < at && next_untried(race) != NULL)
        at = race->next_at;
    timer_set(&race->net->loop->timers, &race->timer, at);
}

/* An attempt is to follow when one has failed, or when its time has come. */
static void race_go_on(struct connect_race *race, bool another) {
    if (another || race->trying == 0)
        start_another(race);
    if (race->trying > 0)
        race_arm(race);
    else if (race->complete)
        race_end(race);
    else /* more addresses may come */
        timer_set(&race->net->loop->timers, &race->timer, TIMER_NEVER);
}

static void race_on_timeout(struct timer *timer) {
    struct connect_race *race = CONTAINER_OF(timer, struct connect_race, timer);
    CHECK_OBJ(race, CONNECT_RACE_MAGIC);
    uint64_t now = race->net->loop->now;
    for (unsigned i = 0; i < race->count; i++) {
        struct connect_attempt *attempt = &race->attempts[i];
        if (attempt->state != CONNECT_TRYING || now < attempt->started + race->terms.patience)
            continue;
        attempt_note_failure(race, attempt, ETIMEDOUT);
        attempt_close(race, attempt, CONNECT_TRIED);
    }
    race_go_on(race, now >= race->next_at);
}

/* Those that were tried before the winner did not answer in time. */
static void note_winner(struct connect_race *race, const struct connect_attempt *winner) {
    struct net_context *net = race->net;
    bool fallback = false;
    for (unsigned i = 0; i < race->count; i++) {
        const struct connect_attempt *other = &race->attempts[i];
        if (other->state != CONNECT_TRYING || other->started >= winner->started)
            continue;
        slow_addresses_note(&net->slow_addresses, &other->address,
                            net->loop->now + SLOW_ADDRESS_FOR);
        fallback = true;
    }
    net->counters.connect_fallbacks += fallback;
    slow_addresses_forget(net->slow_addresses, &winner->address);
}

static void race_win(struct connect_race *race, struct connect_attempt *winner) {
    if (race->count > 1)
        note_winner(race, winner);
    race->connection = winner->connection;
    race->address = winner->address;
    winner->connection = NULL;
    winner->state = CONNECT_TRIED;
    race->trying--;
    for (unsigned i = 0; race->trying > 0 && i < race->count; i++)
        if (race->attempts[i].state == CONNECT_TRYING)
            attempt_close(race, &race->attempts[i], CONNECT_UNTRIED);
    race_end(race);
}

static struct connect_attempt *attempt_of(struct connect_race *race,
                                          const struct connection *connection) {
    for (unsigned i = 0; i < race->count; i++)
        if (race->attempts[i].connection == connection)
            return &race->attempts[i];
    return NULL;
}

static void on_attempt_ready(struct connection *connection) {
    struct connect_race *race;
    CAST_OBJ(race, connection->event.owner, CONNECT_RACE_MAGIC);
    struct connect_attempt *attempt = attempt_of(race, connection);
    int error = 0;
    socklen_t length = sizeof error;
    if (attempt == NULL || !connection->writable)
        return;
    if (getsockopt(connection->event.fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if (error == 0) {
        race_win(race, attempt);
        return;
    }
    attempt_note_failure(race, attempt, error);
    attempt_close(race, attempt, CONNECT_TRIED);
    race_go_on(race, true);
}

void connect_race_init(struct connect_race *race, struct net_context *net,
                       const struct connect_race_terms *terms,
                       void (*on_end)(struct connect_race *race)) {
    memset(race, 0, offsetof(struct connect_race, attempts));
    race->magic = CONNECT_RACE_MAGIC;
    race->net = net;
    race->terms = *terms;
    race->on_end = on_end;
    race->error = "no address";
    timer_init(&race->timer, race_on_timeout);
}

static bool race_has(const struct connect_race *race, const struct address *address) {
    for (unsigned i = 0; i < race->count; i++)
        if (address_equal(&race->attempts[i].address, address))
            return true;
    return false;
}

/* Is it tried, or has it been? */
static bool has_begun(const struct connect_race *race, const struct address *address) {
    for (unsigned i = 0; i < race->count; i++)
        if (race->attempts[i].state != CONNECT_UNTRIED &&
            address_equal(&race->attempts[i].address, address))
            return true;
    return false;
}

static bool has_route(const struct net_context *net, sa_family_t family) {
    return net->no_route_until[family == AF_INET6] <= net->loop->now;
}

/* The family that is tried next: after an attempt the other one, at first that of the address which
 * the connection is to come from, or IPv6 where there is a route. */
static sa_family_t next_family(const struct connect_race *race) {
    if (race->tried)
        return race->address.any.sa_family == AF_INET6 ? AF_INET : AF_INET6;
    if (race->terms.from != NULL)
        return race->terms.from->any.sa_family;
    return has_route(race->net, AF_INET6) || !has_route(race->net, AF_INET) ? AF_INET6 : AF_INET;
}

static void order_untried(struct connect_race *race) {
    struct address list[ADDRESS_ORDER_MAX];
    unsigned count = 0, next = 0;
    for (unsigned i = 0; i < race->count; i++)
        if (race->attempts[i].state == CONNECT_UNTRIED)
            list[count++] = race->attempts[i].address;
    if (count < 2)
        return;
    address_order(list, count, next_family(race), race->net->slow_addresses, race->net->loop->now);
    for (unsigned i = 0; i < race->count; i++)
        if (race->attempts[i].state == CONNECT_UNTRIED)
            race->attempts[i].address = list[next++];
}

/* Only these are tried from now on, in this order. */
static void race_take_order(struct connect_race *race, const struct resolution *found) {
    struct connect_attempt *slot = race->attempts, *end = race->attempts + race->count;
    for (unsigned i = 0; i < found->count; i++) {
        struct address address = found->addresses[i];
        address_set_port(&address, race->terms.port);
        if (has_begun(race, &address))
            continue;
        while (slot < end && slot->state != CONNECT_UNTRIED)
            slot++;
        if (slot < end)
            (slot++)->address = address;
    }
    for (; slot < end; slot++)
        if (slot->state == CONNECT_UNTRIED)
            slot->state = CONNECT_TRIED;
}

void connect_race_add(struct connect_race *race, const struct resolution *found, bool complete) {
    CHECK_OBJ(race, CONNECT_RACE_MAGIC);
    race->complete = complete;
    for (unsigned i = 0; i < found->count && race->count < ADDRESS_ORDER_MAX; i++) {
        struct address address = found->addresses[i];
        address_set_port(&address, race->terms.port);
        if (race_has(race, &address))
            continue;
        race->attempts[race->count++] =
            (struct connect_attempt){.state = CONNECT_UNTRIED, .address = address};
    }
    if (race->count == 0 && found->error != NULL)
        race->error = found->error;
    if (found->ordered)
        race_take_order(race, found);
    else
        order_untried(race);
    if (race->running)
        race_go_on(race, race->net->loop->now >= race->next_at);
}

void connect_race_go(struct connect_race *race) {
    CHECK_OBJ(race, CONNECT_RACE_MAGIC);
    race->running = true;
    race->next_at = TIMER_NEVER;
    race_go_on(race, true);
}

void connect_race_set_patience(struct connect_race *race, uint64_t patience) {
    CHECK_OBJ(race, CONNECT_RACE_MAGIC);
    race->terms.patience = patience;
    if (race->trying > 0)
        race_arm(race);
}

void connect_race_stop(struct connect_race *race) {
    if (race->magic != CONNECT_RACE_MAGIC)
        return;
    timer_cancel(&race->net->loop->timers, &race->timer);
    for (unsigned i = 0; i < race->count; i++)
        attempt_close(race, &race->attempts[i], CONNECT_TRIED);
    connection_close(&race->connection);
    race->running = false;
}
