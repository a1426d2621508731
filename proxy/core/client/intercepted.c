#include "client/intercepted.h"

/* The members that are texts. */
static const size_t texts[] = {
    offsetof(struct intercepted_facts, name),
    offsetof(struct intercepted_facts, place),
    offsetof(struct intercepted_facts, connect),
    offsetof(struct intercepted_facts, credentials),
    offsetof(struct intercepted_facts, sni),
    offsetof(struct intercepted_facts, issuer),
    offsetof(struct intercepted_facts, verification),
    offsetof(struct intercepted_facts, page_error),
    offsetof(struct intercepted_facts, page_name),
    offsetof(struct intercepted_facts, page_location),
    offsetof(struct intercepted_facts, page_rule),
    offsetof(struct intercepted_facts, page_head),
    offsetof(struct intercepted_facts, page_body),
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static struct slice *text_of(struct intercepted_facts *facts, size_t text) {
    return (struct slice *)(void *)((char *)facts + texts[text]);
}

struct intercepted *intercepted_new(const struct intercepted_facts *facts,
                                    const struct bumped_class *class) {
    struct intercepted_facts copy = *facts;
    size_t length = 0;
    for (size_t i = 0; i < TEXTS; i++)
        length += text_of(&copy, i)->length;
    struct intercepted *intercepted = xmalloc(sizeof *intercepted + length);
    char *at = intercepted->text;
    for (size_t i = 0; i < TEXTS; i++) {
        struct slice *text = text_of(&copy, i);
        char *end = slice_put(at, *text);
        *text = slice_make(at, text->length);
        at = end;
    }
    intercepted->magic = INTERCEPTED_MAGIC;
    intercepted->references = 1;
    intercepted->class = class;
    intercepted->facts = copy;
    if (copy.identity != NULL)
        identity_reference(copy.identity);
    return intercepted;
}

void intercepted_free(struct intercepted *intercepted) {
    CHECK_OBJ(intercepted, INTERCEPTED_MAGIC);
    identity_release(&intercepted->facts.identity);
    FREE_OBJ(intercepted);
}

bool intercepted_is_for(const struct intercepted *intercepted, struct slice host, uint16_t port) {
    CHECK_OBJ(intercepted, INTERCEPTED_MAGIC);
    return port == intercepted->facts.port && slice_equal(host, intercepted->facts.name);
}
