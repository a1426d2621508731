#include "inside/content.h"

#include "base/assert.h"
#include "inside/instance.h"

static struct content_room *the_room;

void inside_content_use(struct content_room *room) {
    the_room = room;
}

static struct content_limits inside_content_limits(const struct service_settings *settings) {
    struct content_limits limits = {
        .operations = settings->content_operations,
        .object = settings->content_object,
        .memory = settings->content_memory,
        .timeout = settings->content_timeout,
    };
    address_parse_ip(&limits.as, slice_from(settings->fetch_as), 0);
    if (settings->fetch_via != NULL)
        address_parse(&limits.via, slice_from(settings->fetch_via), 0);
    return limits;
}

struct content_account *inside_content_open(const struct service_settings *settings,
                                            struct content_numbers *numbers) {
    const struct content_limits limits = inside_content_limits(settings);
    return the_room == NULL ? NULL
                            : content_account_open(the_room, settings->name, &limits, numbers);
}

static struct service_content *inside_content_start(void *context,
                                                    const struct service_content_order *order) {
    struct inside_instance *instance;
    CAST_OBJ(instance, context, INSIDE_INSTANCE_MAGIC);
    return instance->content == NULL ? NULL : content_account_start(instance->content, order);
}

const struct service_content_calls inside_content_calls = {.start = inside_content_start};
