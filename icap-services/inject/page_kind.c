#include "inject/page_kind.h"

#include "service/adapted_head.h"

/* The Fetch standard's destinations that are shown as a page. */
static bool is_shown(struct slice destination) {
    static const char *const shown[] = {"document", "iframe", "frame", "embed", "object"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (slice_equal_nocase(destination, slice_from(shown[i])))
            return true;
    return false;
}

static bool names_html(struct slice accept) {
    struct slice element;
    while (slice_next_element(&accept, &element))
        if (slice_starts_with_nocase(element, SLICE("text/html")) ||
            slice_starts_with_nocase(element, SLICE("application/xhtml+xml")))
            return true;
    return false;
}

static bool is_for_document(const struct http_head *request) {
    const struct http_field *destination = http_head_find_text(request, SLICE("Sec-Fetch-Dest"));
    if (destination != NULL)
        return is_shown(destination->value);
    bool has_accept = false, accepts = false;
    for (unsigned i = 0; i < request->field_count; i++)
        if (slice_equal_nocase(request->fields[i].name, SLICE("Accept"))) {
            has_accept = true;
            accepts |= names_html(request->fields[i].value);
        }
    return (accepts || !has_accept) &&
           http_head_find_text(request, SLICE("X-Requested-With")) == NULL;
}

static bool is_xml(struct slice type) {
    static const char ending[] = "xml";
    size_t length = sizeof ending - 1;
    return type.length > length && memchr("+/", type.base[type.length - length - 1], 2) != NULL &&
           slice_equal_nocase(slice_make(type.base + type.length - length, length),
                              slice_from(ending));
}

enum scanner_page page_kind(const struct http_head *request, const struct http_head *response) {
    if (is_xml(media_type_of(response)))
        return SCANNER_XML;
    return is_for_document(request) ? SCANNER_DOCUMENT : SCANNER_FRAGMENT;
}
