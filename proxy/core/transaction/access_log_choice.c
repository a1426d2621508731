#include "transaction/access_log_choice.h"

#include "match/url_class.h"

#include <string.h>

unsigned access_log_choice_results(char *const *names) {
    unsigned results = 0;
    if (names == NULL)
        return ~0u;
    for (; *names != NULL; names++)
        for (unsigned i = 0; i <= RESULT_ERROR; i++)
            if (slice_equal(slice_from(*names), cache_result_name((enum cache_result)i)))
                results |= 1u << i;
    return results;
}

bool access_log_choice_has_status(const struct journal *journal,
                                  const struct log_statuses *statuses, size_t count) {
    unsigned status = journal_status(journal);
    for (size_t i = 0; i < count; i++)
        if (status >= statuses[i].from && status <= statuses[i].to)
            return true;
    return count == 0;
}

bool access_log_choice_names(char *const *names, const char *name) {
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

bool access_log_choice_has_service(const struct journal *journal, char *const *services) {
    if (services == NULL)
        return true;
    for (unsigned i = 0; i < journal->asked_count; i++)
        if (access_log_choice_names(services, journal->asked[i].service))
            return true;
    return false;
}

bool access_log_choice_is_in(const struct journal *journal, const struct url_class *url_class) {
    return url_class != NULL && journal->subject != NULL &&
           url_class_matches(url_class, journal->subject);
}
