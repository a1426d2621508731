#include "match/class_terms.h"

#include "base/assert.h"
#include "match/literals.h"

static void each_host(char **names, bool domains, class_terms_fn *visit, void *arg) {
    for (; *names != NULL; names++) {
        bool star = strncmp(*names, "*.", 2) == 0;
        struct slice name = slice_from(star ? *names + 2 : *names);
        if (!star)
            visit(arg, PLACE_HOSTS, name);
        if (star || domains)
            visit(arg, PLACE_BELOW, name);
    }
}

/* Networks of mapped addresses are networks of IPv4, as addresses of clients are. */
static void unmap_network(struct network *network) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (!network->v6 || network->bits < 96 || memcmp(network->prefix, mapped, sizeof mapped) != 0)
        return;
    struct network v4 = {.bits = network->bits - 96};
    memcpy(v4.prefix, network->prefix + sizeof mapped, 4);
    *network = v4;
}

static void each_client(char **texts, class_terms_fn *visit, void *arg) {
    struct network network;
    char key[CLASS_TERMS_CLIENT_KEY];
    for (; *texts != NULL; texts++) {
        ASSERT(network_parse(&network, slice_from(*texts)));
        unmap_network(&network);
        network_mask(&network, network.bits);
        class_terms_client_key(&network, key);
        visit(arg, PLACE_CLIENTS, slice_make(key, sizeof key));
    }
}

/* False: one of the expressions has no literals, so that any text may match it. */
static bool each_literal(char **regexes, enum class_place place, class_terms_fn *visit, void *arg) {
    struct literals literals;
    for (char **regex = regexes; *regex != NULL; regex++)
        if (!literals_of(*regex, &literals))
            return false;
    for (char **regex = regexes; *regex != NULL; regex++) {
        literals_of(*regex, &literals);
        for (unsigned i = 0; i < literals.count; i++)
            visit(arg, place, literal_text(&literals.each[i]));
    }
    return true;
}

/* Words in lower case; false: one of them is too long to be worth it. */
static bool each_word(char **words, enum class_place place, class_terms_fn *visit, void *arg) {
    char lower[CLASS_TERMS_WORD];
    for (char **word = words; *word != NULL; word++)
        if (strlen(*word) > sizeof lower)
            return false;
    for (char **word = words; *word != NULL; word++) {
        slice_put_lower(lower, slice_from(*word));
        visit(arg, place, slice_make(lower, strlen(*word)));
    }
    return true;
}

static void each_name(char **names, enum class_place place, class_terms_fn *visit, void *arg) {
    for (; *names != NULL; names++)
        visit(arg, place, slice_from(*names));
}

/* False: the ports are too many. */
static bool each_port(char **texts, class_terms_fn *visit, void *arg) {
    enum { MANY = 64 };
    unsigned count = 0;
    uint16_t from, to;
    for (char **text = texts; *text != NULL; text++) {
        ASSERT(url_class_parse_ports(*text, &from, &to));
        count += (unsigned)(to - from) + 1;
    }
    for (char **text = texts; count <= MANY && *text != NULL; text++) {
        ASSERT(url_class_parse_ports(*text, &from, &to));
        for (unsigned port = from; port <= to; port++) {
            uint16_t key = (uint16_t)port;
            visit(arg, PLACE_PORTS, slice_make((const char *)&key, sizeof key));
        }
    }
    return count <= MANY;
}

static void each_list(const struct class_list_array *lists, enum class_place place,
                      class_terms_fn *visit, void *arg) {
    for (size_t i = 0; i < lists->count; i++)
        visit(arg, place, slice_make((const char *)&lists->each[i], sizeof lists->each[i]));
}

static bool each_term_of_any(const struct url_class *url_class, class_terms_fn *visit, void *arg);

/* The values of a condition in the file; NULL: the class does not state it. */
static char **values_of(const struct url_class *url_class, enum class_condition condition) {
    const struct url_class_conditions *stated = url_class_conditions(url_class);
    switch (condition) {
    case BY_HOST: return stated->hosts != NULL ? stated->hosts : stated->host_files;
    case BY_DOMAIN: return stated->domains != NULL ? stated->domains : stated->domain_files;
    case BY_CLIENT: return stated->clients != NULL ? stated->clients : stated->client_files;
    case BY_PATH: return stated->path_regexes;
    case BY_URL: return stated->url_regexes;
    case BY_USER: return stated->users;
    case BY_GROUP: return stated->groups;
    case BY_URL_FILE: return stated->url_files;
    case BY_METHOD: return stated->methods;
    case BY_PORT: return stated->ports;
    case BY_LISTENER: return stated->listeners;
    case BY_ANY_OF: return stated->any_ofs;
    default: return NULL;
    }
}

static void each_host_term(const struct url_class *url_class, bool domains, class_terms_fn *visit,
                           void *arg) {
    const struct url_class_conditions *stated = url_class_conditions(url_class);
    char **names = domains ? stated->domains : stated->hosts;
    if (names != NULL)
        each_host(names, domains, visit, arg);
    each_list(url_class_lists(url_class, domains ? LISTS_OF_DOMAINS : LISTS_OF_HOSTS),
              PLACE_HOST_LISTS, visit, arg);
}

/* "*" stands for any user, which no look-up of a name finds. */
static bool is_any_user(char **users) {
    for (; *users != NULL; users++)
        if (strcmp(*users, "*") == 0)
            return true;
    return false;
}

bool class_terms_each(const struct url_class *url_class, enum class_condition condition,
                      class_terms_fn *visit, void *arg) {
    const struct url_class_conditions *stated = url_class_conditions(url_class);
    char **values = values_of(url_class, condition);
    if (values == NULL)
        return false;
    switch (condition) {
    case BY_PATH: return each_literal(values, PLACE_IN_PATHS, visit, arg);
    case BY_URL: return each_literal(values, PLACE_IN_URLS, visit, arg);
    case BY_METHOD: return each_word(values, PLACE_METHODS, visit, arg);
    case BY_LISTENER: return each_word(values, PLACE_LISTENERS, visit, arg);
    case BY_PORT: return each_port(values, visit, arg);
    case BY_ANY_OF: return each_term_of_any(url_class, visit, arg);
    case BY_CLIENT:
        if (stated->clients != NULL)
            each_client(stated->clients, visit, arg);
        each_list(url_class_lists(url_class, LISTS_OF_CLIENTS), PLACE_CLIENT_LISTS, visit, arg);
        return true;
    case BY_USER:
        if (is_any_user(values))
            return false;
        each_name(values, PLACE_USERS, visit, arg);
        return true;
    case BY_GROUP: each_name(values, PLACE_GROUPS, visit, arg); return true;
    case BY_URL_FILE:
        each_list(url_class_lists(url_class, LISTS_OF_URLS), PLACE_URL_LISTS, visit, arg);
        return true;
    default: each_host_term(url_class, condition == BY_DOMAIN, visit, arg); return true;
    }
}

static void ignore_term(void *arg, enum class_place place, struct slice term) {
    (void)arg;
    (void)place;
    (void)term;
}

/* The first condition that a class can be filed under; CONDITIONS: there is none. */
static enum class_condition first_condition(const struct url_class *url_class) {
    int condition = 0;
    while (condition < CONDITIONS &&
           !class_terms_each(url_class, (enum class_condition)condition, ignore_term, NULL))
        condition++;
    return (enum class_condition)condition;
}

/* A class with any_of is filed under the terms of all the classes that it names. */
static bool each_term_of_any(const struct url_class *url_class, class_terms_fn *visit, void *arg) {
    const struct class_references *others = url_class_any_of(url_class);
    for (size_t i = 0; i < others->count; i++)
        if (first_condition(others->each[i]) == CONDITIONS)
            return false;
    for (size_t i = 0; i < others->count; i++)
        class_terms_each(others->each[i], first_condition(others->each[i]), visit, arg);
    return others->count > 0;
}
