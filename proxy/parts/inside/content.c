#include "inside/content.h"

#include "base/assert.h"
#include "inside/instance.h"
#include "part.h"

/* NULL: nobody gives the content of the cache. */
static const struct content_class *content_class(void) {
    PARTS_FOR_EACH (number, content)
        return part_table[number]->content;
    return NULL;
}

struct content_account *inside_content_open(const struct service_settings *settings,
                                            struct content_numbers *numbers) {
    const struct content_class *class = content_class();
    return class != NULL ? class->open(settings, numbers) : NULL;
}

void inside_content_close(struct content_account **accountp) {
    if (*accountp != NULL)
        content_class()->close(accountp);
}

static struct service_content *inside_content_start(void *context,
                                                    const struct service_content_order *order) {
    struct inside_instance *instance;
    CAST_OBJ(instance, context, INSIDE_INSTANCE_MAGIC);
    return instance->content == NULL ? NULL : content_class()->start(instance->content, order);
}

const struct service_content_calls inside_content_calls = {.start = inside_content_start};
