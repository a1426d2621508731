#include "part.h"

#include "admin/admin.h"
#include "admin/server_calls.h"
#include "admin/settings.h"
#include "base/assert.h"
#include "base/version.h"
#include "net/inherited.h"

#include <jansson.h>
#include <microhttpd.h>

/* The part admin: what operators see and steer. server->parts[PART_ADMIN] is the admin plane. */

static void plane_is_possible(const struct settings *settings, struct findings *findings) {
    char error[SETTINGS_ERROR];
    if (!admin_possible(settings, error))
        findings_add(findings, "%s", error);
}

/* Settings that are loaded before are not written as JSON. */
static void plane_prepare(struct server *server) {
    (void)server;
    json_set_alloc_funcs(xmalloc, free);
}

static const struct address *plane_address(const struct settings *settings) {
    const struct admin_settings *mine = admin_settings_of(settings);
    return mine->listen != NULL ? &mine->address : NULL;
}

static bool plane_open(struct server *server, struct inherited *inherited, char *error) {
    const struct settings *settings = server->settings;
    const struct admin_calls calls = server_calls_of(server);
    const struct address *address = plane_address(settings);
    int fd = -1;
    if (address != NULL)
        inherited_take(inherited, address, &fd, 1);
    server->parts[PART_ADMIN] = admin_start(settings, &calls, fd, error);
    return server->parts[PART_ADMIN] != NULL;
}

static int plane_socket(struct server *server) {
    return admin_socket(server->parts[PART_ADMIN]);
}

static void plane_own(struct server *server) {
    admin_own_file(server->parts[PART_ADMIN], server->settings);
}

static void plane_give_away(struct server *server) {
    admin_give_away(server->parts[PART_ADMIN]);
}

static void plane_close(struct server *server) {
    struct admin *admin = server->parts[PART_ADMIN];
    server->parts[PART_ADMIN] = NULL;
    admin_stop(&admin, atomic_load(&server->hurried));
}

static const struct version_library *plane_libraries(void) {
    static struct version_library list[3];
    list[0] = (struct version_library){"libmicrohttpd", MHD_get_version()};
    list[1] = (struct version_library){"jansson", jansson_version_str()};
    return list;
}

const struct part part_admin = {
    .process = {.is_possible = plane_is_possible, .open = plane_prepare},
    .socket =
        {
            .address = plane_address,
            .open = plane_open,
            .number = plane_socket,
            .own = plane_own,
            .give_away = plane_give_away,
            .close = plane_close,
        },
    .settings = &admin_part_settings,
    .libraries = plane_libraries,
};
