/*
 * What clients write into X-Forwarded-For and Forwarded: it never changes what a trusted proxy has
 * added behind it. The input is field lines.
 */
#include "base/assert.h"
#include "lines.h"
#include "net/forwarded.h"

#include <stdlib.h>

static const char *const told[] = {
    "192.0.2.1",
    "192.0.2.1 , 10.1.1.1",
    "for=192.0.2.1;proto=http",
    "for=\"192.0.2.1:80\";host=\"a\\\"b,c\", for=10.1.1.1",
};

static void check_told(const struct http_head *head, const struct forwarded_trust *trust,
                       const struct address *peer, const struct address *expected) {
    struct address client;
    ASSERT(forwarded_client(head, trust, peer, &client));
    address_set_port(&client, 0);
    ASSERT(address_equal(&client, expected));
}

/* The proxy adds a line of its own, or goes on in the last line of the client. */
static void check_field(struct http_head *head, const struct forwarded_trust *trust,
                        const struct address *peer, const char *text) {
    bool by_x = trust->field == FORWARDED_BY_X;
    struct slice name = by_x ? SLICE("X-Forwarded-For") : SLICE("Forwarded");
    enum http_name id = by_x ? HTTP_X_FORWARDED_FOR : HTTP_FORWARDED;
    struct http_field *last = NULL;
    struct address expected, client;
    struct http_head more;
    ASSERT(address_parse_ip(&expected, SLICE("192.0.2.1"), 0));
    forwarded_client(head, trust, peer, &client);
    http_head_assign(&more, head);
    if (http_head_add(&more, name, slice_from(text)))
        check_told(&more, trust, peer, &expected);
    http_head_assign(&more, head);
    for (unsigned i = 0; i < more.field_count; i++)
        if (more.fields[i].id == id)
            last = &more.fields[i];
    if (last == NULL)
        return;
    struct arena arena;
    arena_init(&arena);
    last->value = arena_concat(&arena, last->value, SLICE(", "), slice_from(text));
    check_told(&more, trust, peer, &expected);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head head;
    struct lines lines = lines_of(data, size);
    struct network proxies;
    struct address peer;
    lines_head(&lines, &head);
    ASSERT(network_parse(&proxies, SLICE("10.0.0.0/8")));
    ASSERT(address_parse_ip(&peer, SLICE("10.9.9.9"), 1));
    for (unsigned i = 0; i < sizeof told / sizeof *told; i++) {
        const struct forwarded_trust trust = {i < 2 ? FORWARDED_BY_X : FORWARDED_BY_RFC, &proxies,
                                              1};
        check_field(&head, &trust, &peer, told[i]);
    }
    lines_head_free(&head);
    return 0;
}
