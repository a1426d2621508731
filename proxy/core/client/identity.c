#include "client/identity.h"

#include "base/text.h"

struct identity *identity_new(const struct identity_facts *facts) {
    size_t length = facts->name.length + facts->authenticator.length;
    for (size_t i = 0; i < facts->group_count; i++)
        length += facts->groups[i].length;
    struct identity *identity =
        xmalloc(sizeof *identity + facts->group_count * sizeof *identity->groups + length);
    INIT_OBJ(identity, IDENTITY_MAGIC);
    identity->references = 1;
    identity->method = facts->method;
    identity->groups = (struct slice *)(identity + 1);
    identity->group_count = facts->group_count;
    char *at = (char *)(identity->groups + facts->group_count), *end = slice_put(at, facts->name);
    identity->name = slice_make(at, facts->name.length);
    at = end;
    end = slice_put(at, facts->authenticator);
    identity->authenticator = slice_make(at, facts->authenticator.length);
    for (size_t i = 0; i < facts->group_count; i++) {
        at = end;
        end = slice_put(at, facts->groups[i]);
        identity->groups[i] = slice_make(at, facts->groups[i].length);
    }
    identity->as_class = (struct class_user){
        .name = identity->name, .groups = identity->groups, .group_count = identity->group_count};
    return identity;
}

void identity_free(struct identity *identity) {
    CHECK_OBJ(identity, IDENTITY_MAGIC);
    FREE_OBJ(identity);
}

bool identity_name_is_good(struct slice name) {
    if (name.length == 0 || name.length > IDENTITY_NAME_MAX ||
        slice_trim(name).length != name.length)
        return false;
    while (name.length > 0) {
        uint32_t character;
        size_t length = text_decode(name, &character);
        if (length == 0 || text_is_hidden(character))
            return false;
        name = slice_make(name.base + length, name.length - length);
    }
    return true;
}
