#include "origin/scheme.h"

static const enum url_scheme_id fetched[] = {
    URL_HTTP,
    URL_HTTPS,
};

bool origin_can_fetch(struct slice scheme) {
    for (size_t i = 0; i < sizeof fetched / sizeof fetched[0]; i++)
        if (slice_equal_nocase(scheme, url_schemes[fetched[i]].name))
            return true;
    return false;
}
