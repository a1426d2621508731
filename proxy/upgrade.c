#include "upgrade.h"

#include "transaction/purge_orders.h"
#include "transaction/told_removals.h"

static bool upgrade_sockets(void *context, handover_pass_fn *pass, void *arg) {
    const struct upgrade *upgrade = context;
    int admin = admin_socket(upgrade->admin);
    return server_each_socket(upgrade->server, pass, arg) && (admin < 0 || pass(arg, &admin, 1));
}

static void upgrade_forbid_reload(void *context, bool forbidden) {
    const struct upgrade *upgrade = context;
    server_forbid_reload(upgrade->server, forbidden);
}

static bool upgrade_is_ending(void *context) {
    const struct upgrade *upgrade = context;
    return atomic_load(&upgrade->server->draining);
}

static void upgrade_retire(void *context) {
    const struct upgrade *upgrade = context;
    admin_give_away(upgrade->admin);
    server_retire(upgrade->server);
    server_ask_to_end(upgrade->server);
}

static void upgrade_note_removals(void *context) {
    const struct upgrade *upgrade = context;
    purge_orders_note(upgrade->server->purge_orders);
}

static bool upgrade_tell_removals(void *context, int fd) {
    const struct upgrade *upgrade = context;
    return purge_orders_tell(upgrade->server->purge_orders, fd);
}

static void upgrade_forget_removals(void *context) {
    const struct upgrade *upgrade = context;
    purge_orders_forget(upgrade->server->purge_orders);
}

static unsigned upgrade_hears_removals(void *context, int *fds) {
    const struct upgrade *upgrade = context;
    _Static_assert((int)TOLD_PROCESSES <= (int)HANDOVER_HEARS, "there is room");
    return told_removals_copy(upgrade->server->told_removals, fds);
}

struct handover_calls upgrade_calls(struct upgrade *upgrade) {
    return (struct handover_calls){
        .context = upgrade,
        .disk = upgrade->server->disk,
        .sockets = upgrade_sockets,
        .forbid_reload = upgrade_forbid_reload,
        .is_ending = upgrade_is_ending,
        .note_removals = upgrade_note_removals,
        .tell_removals = upgrade_tell_removals,
        .forget_removals = upgrade_forget_removals,
        .hears_removals = upgrade_hears_removals,
        .retire = upgrade_retire,
    };
}
