/* What is found by tables is what a walk through the list finds. */
#include "suites.h"

#include "base/assert.h"
#include "match/aho_corasick.h"
#include "match/class_lists.h"
#include "match/edges.h"
#include "match/literals.h"
#include "match/map_table.h"
#include "match/regex.h"

#include <stdlib.h>
#include <string.h>

/* The same numbers on every run. */
static unsigned random_below(unsigned limit) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % limit;
}

#define ONE_OF(list) (list)[random_below(COUNT_OF(list))]

/* Literals. */

static void check_literals(const char *regex, const char *wanted) {
    struct literals literals;
    char text[400] = "";
    if (literals_of(regex, &literals))
        for (unsigned i = 0; i < literals.count; i++) {
            strncat(text, literals.each[i].bytes, literals.each[i].length);
            strcat(text, " ");
        }
    ck_assert_msg(strcmp(text, wanted) == 0, "%s gives %s, not %s", regex, text, wanted);
}

START_TEST(an_expression_has_literals) {
    check_literals("banner", "banner ");
    check_literals("^/ads/", "/ads/ ");
    check_literals("\\.(jpe?g|gif|png)$", "jp gif png ");
    check_literals("(?i)\\.JPG$", ".jpg ");
    check_literals("/a(?:bc|def)+/xyz", "/xyz ");
    check_literals("ab?cd", "cd ");
    check_literals("abc*d", "ab ");
    check_literals("abc+d", "abc ");
    check_literals("abc{2}", "abc ");
    check_literals("abc{0,2}xyzz", "xyzz ");
    check_literals("ab[0-9]{2,}cde[^]x]", "cde ");
    check_literals("one|three", "one three ");
    check_literals("(one|three)x", "one three ");
    check_literals("a\\.b\\/c", "a.b/c ");
    check_literals("(?<name>long)ab", "ab ");
    check_literals("(?!never)ab", "ab ");
    check_literals("(?=perhaps)ab", "ab ");
}
END_TEST

START_TEST(what_may_be_found_anywhere_has_none) {
    static const char *const regexes[] = {
        "",           "^/[0-9]+$", "a",           "(?x) ab # cd", "ab|",
        "(ab)?",      "(ab|c?)",   "\\Qab.cd\\E", "(*UTF)ab",     "(ab)*",
        "[abc][def]", "\\x61bc",   "(?#x)abc",    "(a)\\1bc",     "[[:alpha:]]abc",
        "a{,3}bcd",   "ab|[0-9]"};
    for (size_t i = 0; i < COUNT_OF(regexes); i++)
        check_literals(regexes[i], "");
}
END_TEST

static const char *const pieces[] = {
    "a",       "b",   "ab",   "abc", "(",     "(?:",   "(?i)", "(?i:",  ")",     "|",
    "*",       "+",   "?",    "{2}", "{0,1}", "{,2}",  "{1,}", "[ab]",  "[^a]",  "[]a]",
    "\\.",     "\\d", "\\w",  "^",   "$",     ".",     "(?=",  "(?!",   "(?<n>", "\\b",
    "A",       "B",   "}",    "{",   "\\\\",  "x",     "(?>",  "(?#a)", "\\Q",   "\\E",
    "[a\\]b]", "(?|", "(?x)", " ",   "#",     "\\x61", "(?<=", "\\1",   "]",     "-"};

static bool has_any(const struct literals *literals, const char *text) {
    char literal[LITERAL_MOST + 1];
    for (unsigned i = 0; i < literals->count; i++) {
        snprintf(literal, sizeof literal, "%.*s", SLICE_PRINT(literal_text(&literals->each[i])));
        if (strcasestr(text, literal) != NULL)
            return true;
    }
    return false;
}

/* Whatever the expression is found in has one of its literals. */
static void check_finds(const char *regex, const struct literals *literals) {
    static const char letters[] = "aabbcABx. 1{}\\],2-#";
    struct regexes regexes;
    char text[16];
    regexes_compile(&regexes, (char *[]){(char *)(uintptr_t)regex, NULL});
    for (int i = 0; i < 40; i++) {
        unsigned length = random_below(sizeof text);
        for (unsigned j = 0; j < length; j++)
            text[j] = letters[random_below(sizeof letters - 1)];
        text[length] = '\0';
        if (regexes_find(&regexes, slice_from(text)) && !has_any(literals, text))
            ck_abort_msg("%s is found in %s", regex, text);
        ck_assert(regexes_may_find(&regexes, slice_from(text)) ||
                  !regexes_find(&regexes, slice_from(text)));
    }
    regexes_release(&regexes);
}

/* Given up, it may be there. */
START_TEST(a_quick_search_that_takes_long_says_maybe) {
    struct regexes regexes;
    struct slice text = SLICE("http://a.org/xxxxxxxxxxxxxx/y");
    regexes_compile(&regexes, (char *[]){"(x+x+)+[yz]$|/y$", NULL});
    ck_assert(regexes_may_find(&regexes, text));
    ck_assert(regexes_find(&regexes, text));
    ck_assert(!regexes_may_find(&regexes, SLICE("http://a.org/")));
    regexes_release(&regexes);
    regexes_compile(&regexes, (char *[]){"(x+x+)+[yz]$", NULL});
    ck_assert_msg(regexes_may_find(&regexes, text), "that it is not there takes longer to see");
    ck_assert(!regexes_find(&regexes, text));
    regexes_release(&regexes);
}
END_TEST

START_TEST(nothing_is_found_without_its_literals) {
    struct literals literals;
    char regex[100], error[400];
    unsigned checked = 0;
    for (int i = 0; i < 20000; i++) {
        regex[0] = '\0';
        for (unsigned j = 1 + random_below(8); j > 0; j--)
            strcat(regex, ONE_OF(pieces));
        if (!regex_check(regex, error, sizeof error) || !literals_of(regex, &literals))
            continue;
        check_finds(regex, &literals);
        checked++;
    }
    ck_assert_uint_gt(checked, 500);
}
END_TEST

/* Edges. */

static void check_edges(const char *regex, const char *may, const char *never) {
    struct edges edges = {0};
    edges_add(&edges, regex);
    ck_assert_msg(edges_may_find(&edges, slice_from(may)), "%s in %s", regex, may);
    ck_assert_msg(!edges_may_find(&edges, slice_from(never)), "%s in %s", regex, never);
}

START_TEST(edges_tell_what_is_not_found) {
    check_edges("\\.(jpe?g|gif|PNG)$", "/a.png", "/a.html");
    check_edges("\\.(?:jpe?g|gif)$", "/a.jpg", "/a.html");
    check_edges("\\.html$", "/a.html", "/a.png");
    check_edges("(?i)\\.HTML$", "/a.html", "/a.png");
    check_edges("^/ads/", "/ADS/x", "/x/ads/");
    check_edges("^/a+", "/aa", "/b");
    check_edges("^/[0-9]+/.*\\.js$", "/1/x.js", "/1/x.css.map");
    check_edges("[.]none$", "/x.none", "/miss");
    check_edges("a\\$$", "/$", "/a");
    check_edges("\\.html$", "/a.html\n", "/a.png");
}
END_TEST

START_TEST(edges_that_are_not_certain) {
    static const char *const regexes[] = {
        "",        "ads",      "a$|b",       "^/a|b",    "^/?a",      "^/a?b",     "^a",
        "(a|)$",   "(a?)$",    "a{2}$",      "a*$",      "(ab)+$",    "(a(b|c))$", "\\$",
        "[ab]$",   ".$",       "\\d$",       "(?x)ab $", "\\Qa$",     "(?=a)$",    "^/a*",
        "^/a{0}b", "(*UTF)a$", "(?i:a)b|c$", "a\\b$",    "(a|b[)])$", "a(?#x)$",   "(a\\d)$"};
    for (size_t i = 0; i < COUNT_OF(regexes); i++) {
        struct edges edges = {0};
        edges_add(&edges, regexes[i]);
        ck_assert_msg(edges.anywhere, "%s", regexes[i]);
    }
}
END_TEST

/* What PCRE2 finds, edges let pass: whatever the expression, whatever the text. */
START_TEST(nothing_is_found_without_its_edges) {
    static const char letters[] = "aabbcABx. 1{}\\],2-#$|)\n\r\xe9";
    static const char *const beginnings[] = {"", "", "^", "^", "(?i)", "(?i)^", "^/"};
    static const char *const ends[] = {"", "$", "$", "b$", ")$", "(a|bc)$", "(?:b?|\\.x)$", "\\$"};
    char regex[120], error[400], text[16];
    unsigned known = 0, found = 0;
    for (int i = 0; i < 40000; i++) {
        struct edges edges = {0};
        struct regexes regexes;
        strcpy(regex, ONE_OF(beginnings));
        for (unsigned j = random_below(6); j > 0; j--)
            strcat(regex, ONE_OF(pieces));
        strcat(regex, ONE_OF(ends));
        edges_add(&edges, regex);
        if (edges.anywhere || !regex_check(regex, error, sizeof error))
            continue;
        known++;
        regexes_compile(&regexes, (char *[]){regex, NULL});
        for (int j = 0; j < 40; j++) {
            unsigned length = random_below(sizeof text);
            for (unsigned k = 0; k < length; k++)
                text[k] = letters[random_below(sizeof letters - 1)];
            struct slice subject = slice_make(text, length);
            if (!regexes_find(&regexes, subject))
                continue;
            found++;
            if (!edges_may_find(&edges, subject))
                ck_abort_msg("%s is found in %.*s", regex, SLICE_PRINT(subject));
        }
        regexes_release(&regexes);
    }
    ck_assert_uint_gt(known, 500);
    ck_assert_uint_gt(found, 1000);
}
END_TEST

/* Needles. */

struct finds {
    unsigned counts[64];
};

static bool on_found(void *arg, struct numbers numbers) {
    struct finds *finds = arg;
    for (size_t i = 0; i < numbers.count; i++)
        finds->counts[numbers.each[i]]++;
    return false;
}

static void random_text(char *text, unsigned most) {
    unsigned length = 1 + random_below(most);
    for (unsigned i = 0; i < length; i++)
        text[i] = (char)('a' + random_below(3));
    text[length] = '\0';
}

static unsigned occurrences(const char *needle, const char *text) {
    unsigned count = 0;
    for (; (text = strstr(text, needle)) != NULL; text++)
        count++;
    return count;
}

static void check_needles(void) {
    enum { NEEDLES = 20 };
    char texts[NEEDLES][8], text[100];
    struct name_table table = {0};
    struct finds finds = {0};
    for (unsigned i = 0; i < NEEDLES; i++) {
        random_text(texts[i], 6);
        name_table_add(&table, slice_from(texts[i]), i);
    }
    name_table_seal(&table);
    struct aho_corasick *needles = aho_corasick_new(&table);
    random_text(text, 90);
    aho_corasick_search(needles, slice_from(text), on_found, &finds);
    for (unsigned i = 0; i < NEEDLES; i++)
        ck_assert_uint_eq(finds.counts[i], occurrences(texts[i], text));
    aho_corasick_free(&needles);
    name_table_release(&table);
}

START_TEST(all_needles_are_found) {
    for (int i = 0; i < 500; i++)
        check_needles();
}
END_TEST

/* So many that only beginnings are looked for: nothing is missed. */
START_TEST(very_many_needles_are_found) {
    enum { MANY = 100000 };
    struct name_table table = {0};
    struct finds finds = {0};
    char text[80];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%u-%020u-%u-needle", i * 7919 % MANY, i, i % 13);
        name_table_add(&table, slice_from(text), 1);
    }
    name_table_add(&table, SLICE("0123456789abcdefghijklmnopqrstuvwxyz"), 2);
    name_table_seal(&table);
    struct aho_corasick *needles = aho_corasick_new(&table);
    aho_corasick_search(needles, SLICE("...0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"), on_found,
                        &finds);
    ck_assert_uint_ge(finds.counts[2], 1);
    aho_corasick_free(&needles);
    name_table_release(&table);
}
END_TEST

/* Rules. */

static const char *const hosts[] = {"example.com",
                                    "www.example.com",
                                    "img.example.com",
                                    "a.b.c.org",
                                    "b.c.org",
                                    "c.org",
                                    "org",
                                    "x.y",
                                    "10.0.0.1",
                                    "::1",
                                    "shop.test",
                                    "localhost"};
static const char *const regexes[] = {
    "\\.(jpe?g|gif|png)$", "^/ads/",  "banner", "[0-9]{3}", "^/$",       "(?i)LOGO", "/a/.*/b",
    "track(er)?",          "x=[0-9]", "utm_",   "\\.html$", "[^/]+\\.js"};
static const char *const types[] = {"text/html", "image/*", "image/png", "Text/CSS"};
static const char *const methods[] = {"GET", "POST"};
static const char *const networks[] = {"10.0.0.0/8", "10.1.0.0/16",   "192.0.2.1",
                                       "::1",        "2001:db8::/33", "::ffff:10.0.0.0/104"};

/* Up to three of a list; often none at all. */
static char **some_of(const char *const *list, size_t count) {
    unsigned number = random_below(3) > 0 ? 0 : 1 + random_below(3);
    char **some = xcalloc(number + 1, sizeof *some);
    for (unsigned i = 0; i < number; i++)
        some[i] = xstrdup(list[random_below((unsigned)count)]);
    if (number > 0)
        return some;
    free(some);
    return NULL;
}

static void free_all(char **strings) {
    for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
        free(strings[i]);
    free(strings);
}

static void add_stars(char **names) {
    for (; names != NULL && *names != NULL; names++)
        if (random_below(3) == 0 && strchr(*names, ':') == NULL) {
            char *star;
            ck_assert_int_gt(asprintf(&star, "*.%s", *names), 0);
            free(*names);
            *names = star;
        }
}

#define SOME_OF(list) some_of(list, COUNT_OF(list))

/* Some classes of before that any_of and not may name: those that state no content_type. */
static struct class_names {
    struct url_class *const *made;
    size_t count;
} named;

static struct url_class *find_made(void *arg, const char *name) {
    const struct class_names *names = arg;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(url_class_name(names->made[i]), name) == 0)
            return names->made[i];
    return NULL;
}

static char **some_classes(void) {
    char **names = xcalloc(3, sizeof *names);
    size_t count = 0;
    for (int i = 0; i < 2 && named.count > 0; i++) {
        struct url_class *one = named.made[random_below((unsigned)named.count)];
        const struct url_class_conditions *stated = url_class_conditions(one);
        bool deep = stated->any_ofs != NULL || stated->nots != NULL;
        if (stated->content_types == NULL && (!deep || one == named.made[named.count / 2]))
            names[count++] = xstrdup(url_class_name(one));
    }
    if (count > 0 && random_below(4) == 0)
        return names;
    free_all(names);
    return NULL;
}

static void link_class(struct url_class *url_class) {
    char error[400] = "";
    struct class_lists *lists = class_lists_new(false);
    struct url_class_surroundings around = {lists, find_made, &named};
    ck_assert_msg(url_class_link(url_class, &around, error, sizeof error), "%s", error);
    ck_assert_msg(url_class_settle(url_class, error, sizeof error), "%s", error);
    class_lists_free(&lists);
}

static struct url_class *random_class(void) {
    static const char *const ports[] = {"80", "443", "1-1024", "8000-8010"};
    static const char *const listeners[] = {"Guests", "staff", ":3128"};
    static const char *const users[] = {"alice", "bob", "*"};
    static const char *const groups[] = {"staff", "admins"};
    static const char *const times[] = {"mon-fri 08:00-17:00", "sat,sun", "22:00-06:00"};
    static const char *const fields[] = {"User-Agent: curl", "X-Other: 1"};
    char error[400] = "", name[20];
    static unsigned numbers;
    bool rare = random_below(2) == 0;
    struct url_class_conditions c = {
        .hosts = SOME_OF(hosts),
        .domains = SOME_OF(hosts),
        .path_regexes = SOME_OF(regexes),
        .url_regexes = SOME_OF(regexes),
        .methods = SOME_OF(methods),
        .content_types = SOME_OF(types),
        .clients = SOME_OF(networks),
        .ports = rare ? SOME_OF(ports) : NULL,
        .listeners = rare ? SOME_OF(listeners) : NULL,
        .users = rare ? SOME_OF(users) : NULL,
        .groups = rare ? SOME_OF(groups) : NULL,
        .times = rare ? SOME_OF(times) : NULL,
        .request_headers = rare ? SOME_OF(fields) : NULL,
        .destinations = rare ? SOME_OF(networks) : NULL,
        .any_ofs = some_classes(),
        .nots = some_classes(),
    };
    snprintf(name, sizeof name, "class%u", numbers++);
    add_stars(c.hosts);
    struct url_class *url_class = url_class_new(name, &c, error, sizeof error);
    ck_assert_msg(url_class != NULL, "%s", error);
    url_class_conditions_release(&c);
    link_class(url_class);
    return url_class;
}

static void add_facts(struct class_subject *subject) {
    static const uint16_t ports[] = {0, 80, 443, 8005};
    static const char *const listeners[] = {"guests", ":3128", "other", ""};
    static const struct slice groups[] = {SLICE("staff"), SLICE("others")};
    static const struct class_user users[] = {{SLICE("alice"), groups, 2},
                                              {SLICE("carol"), NULL, 0}};
    static struct http_head head;
    static struct address destinations[2];
    subject->port = ONE_OF(ports);
    subject->listener = slice_from(ONE_OF(listeners));
    if (random_below(3) > 0)
        subject->user = &users[random_below(2)];
    if (random_below(3) > 0) {
        head_from(&head, random_below(2) == 0 ? "User-Agent: curl/8\n" : "x-other: 12\n");
        subject->head = &head;
    }
    if (random_below(3) > 0) {
        ck_assert(address_parse_ip(&destinations[0], SLICE("192.0.2.1"), 80));
        ck_assert(address_parse_ip(&destinations[1], SLICE("::ffff:10.0.0.1"), 80));
        subject->destinations = destinations;
        subject->destination_count = 1 + random_below(2);
    }
    subject->wall = random_below(4) == 0 ? 0 : 1700000000 + (int64_t)random_below(1000000);
}

static struct class_subject random_subject(char *url, struct address *client) {
    static const char *const paths[] = {
        "/",          "/ads/x.gif", "/a/q/b",       "/Logo.PNG", "/static/app.js",  "/track/123",
        "/tracker/9", "/x.jpeg",    "/banners/ads", "/x.html",   "/deep/a/b/c.html"};
    static const char *const queries[] = {"", "?x=1", "?utm_source=a", "?banner=123"};
    static const char *const clients[] = {"10.2.3.4",    "192.0.2.1", "192.0.2.2",      "::1",
                                          "2001:db8::7", "10.1.9.9",  "::ffff:10.0.0.1"};
    const char *host = ONE_OF(hosts), *path = ONE_OF(paths);
    static const char *const before[] = {"", "", "a.", "www.", "d.e."};
    static char name[80];
    snprintf(name, sizeof name, "%s%s%s", strchr(host, ':') != NULL ? "" : ONE_OF(before), host,
             random_below(8) == 0 ? "." : "");
    sprintf(url, "http://%s%s%s", name, path, ONE_OF(queries));
    ck_assert(address_parse_ip(client, slice_from(ONE_OF(clients)), 80));
    return (struct class_subject){.method = slice_from(ONE_OF(methods)),
                                  .host = slice_from(name),
                                  .url = slice_from(url),
                                  .path = slice_from(path),
                                  .client = random_below(9) > 0 ? client : NULL};
}

static bool has(const uint64_t *bits, size_t rule) {
    return (bits[rule / 64] >> rule % 64 & 1) != 0;
}

enum { RULES_MAX = 300 };
static unsigned glances; /* that were enough */

static void compare_rules(const struct rules *rules, struct url_class *const *classes,
                          size_t count) {
    static const char *const answers[] = {
        "text/html; charset=utf-8", "image/gif", "IMAGE/PNG", "", "text/css", "image"};
    char url[200];
    struct address client;
    struct arena arena;
    struct class_subject subject = random_subject(url, &client);
    if (random_below(4) > 0)
        add_facts(&subject);
    arena_init(&arena);
    const uint64_t *bits = rules_find(rules, &subject, &arena), *narrowed;
    struct url parts = {.host = subject.host,
                        .path_query = slice_from(strstr(url, subject.path.base))};
    const uint64_t *glance = rules_glance(rules, &parts, subject.url);
    ck_assert(glance == NULL || glance == bits);
    glances += glance != NULL;
    subject.response_pending = true;
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(has(bits, i), url_class_matches(classes[i], &subject));
    subject.response_pending = false;
    narrowed = rules_without_type(rules, bits, &arena);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(has(narrowed, i), url_class_matches(classes[i], &subject));
    subject.content_type = slice_from(ONE_OF(answers));
    narrowed = rules_with_type(rules, bits, subject.content_type, &arena);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(has(narrowed, i), url_class_matches(classes[i], &subject));
    arena_release(&arena);
}

static void check_rules(size_t count) {
    struct url_class *made[RULES_MAX], *classes[RULES_MAX];
    struct rules *rules = rules_new();
    for (size_t i = 0; i < count; i++) {
        named = (struct class_names){made, i};
        made[i] = random_class();
        /* Several rules may be for one class. */
        classes[i] = random_below(4) == 0 ? made[random_below((unsigned)i + 1)] : made[i];
        rules_add(rules, classes[i]);
    }
    rules_seal(rules);
    for (int i = 0; i < 50; i++)
        compare_rules(rules, classes, count);
    rules_free(&rules);
    for (size_t i = 0; i < count; i++)
        url_class_free(&made[i]);
}

START_TEST(rules_are_found_as_by_a_walk) {
    static const size_t counts[] = {0, 1, 2, 5, 63, 64, 65, RULES_MAX};
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < COUNT_OF(counts); i++)
            check_rules(counts[i]);
    ck_assert_uint_gt(glances, 0);
}
END_TEST

START_TEST(bits_are_walked_both_ways) {
    uint64_t bits[3] = {0};
    static const size_t set[] = {0, 5, 63, 64, 130};
    for (size_t i = 0; i < COUNT_OF(set); i++)
        bits[set[i] / 64] |= UINT64_C(1) << set[i] % 64;
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(set); i++, at++) {
        at = rules_next(bits, at, 140);
        ck_assert_uint_eq(at, set[i]);
    }
    ck_assert_uint_eq(rules_next(bits, at, 140), 140);
    ck_assert_uint_eq(rules_next(bits, 65, 130), 130);
    at = 140;
    for (size_t i = COUNT_OF(set); i-- > 0;) {
        at = rules_before(bits, at) - 1;
        ck_assert_uint_eq(at, set[i]);
    }
    ck_assert_uint_eq(rules_before(bits, 0), 0);
    ck_assert_uint_eq(rules_before(bits + 1, 0), 0);
}
END_TEST

/* A URL full of what a class is filed under costs no more than one search. */
START_TEST(a_hostile_url_costs_little) {
    enum { LENGTH = 8000 };
    char error[400], *path = xcalloc(1, LENGTH + 2);
    struct url_class_conditions c = {.path_regexes = (char *[]){"/ads(a+)+b$", NULL}};
    struct url_class *url_class = url_class_new("test", &c, error, sizeof error);
    struct rules *rules = rules_new();
    struct arena arena;
    arena_init(&arena);
    rules_add(rules, url_class);
    rules_seal(rules);
    for (size_t i = 0; i < LENGTH; i += 4)
        memcpy(path + i, "/ads", 4);
    struct class_subject subject = {.path = slice_from(path), .host = SLICE("a")};
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(rules_find(rules, &subject, &arena)[0], 0);
    arena_release(&arena);
    rules_free(&rules);
    url_class_free(&url_class);
    free(path);
}
END_TEST

/* Many expressions of one class, of which a filter leaves few. */
START_TEST(many_expressions_find_what_each_finds) {
    char *texts[40] = {NULL};
    for (int round = 0; round < 200; round++) {
        struct regexes all, each;
        size_t count = 4 + random_below(30);
        for (size_t i = 0; i < count; i++)
            texts[i] = (char *)(uintptr_t)ONE_OF(regexes);
        texts[count] = NULL;
        regexes_compile(&all, texts);
        for (int i = 0; i < 10; i++) {
            char url[200];
            struct address client;
            struct class_subject subject = random_subject(url, &client);
            bool found = false;
            for (size_t j = 0; j < count; j++) {
                regexes_compile(&each, (char *[]){texts[j], NULL});
                found = found || regexes_find(&each, subject.url);
                regexes_release(&each);
            }
            ck_assert_int_eq(regexes_find(&all, subject.url), found);
            ck_assert(regexes_may_find(&all, subject.url) || !found);
        }
        regexes_release(&all);
    }
}
END_TEST

/* Maps. */

enum { MAPS_MAX = 60 };

static bool host_has_port(const char *host) {
    const char *bracket = strrchr(host, ']');
    return strchr(bracket != NULL ? bracket : host, ':') != NULL;
}

static bool map_matches(const struct map_settings *map, const char *host, const char *path) {
    if (strncmp(path, map->path, strlen(map->path)) != 0)
        return false;
    if (map->host == NULL || strcmp(map->host, host) == 0)
        return true;
    size_t length = strlen(map->host);
    return !host_has_port(map->host) && strncmp(map->host, host, length) == 0 &&
           host[length] == ':';
}

/* 1: a goes before b, where both match. */
static bool goes_before(const struct map_settings *a, const struct map_settings *b) {
    if (b == NULL || (a->host == NULL) != (b->host == NULL))
        return b == NULL || a->host != NULL;
    if (strlen(a->path) != strlen(b->path))
        return strlen(a->path) > strlen(b->path);
    return a->host != NULL && host_has_port(a->host) && !host_has_port(b->host);
}

static void random_path(char *path, unsigned most) {
    static const char *const parts[] = {"/", "/a", "/ab", "/abc", "/b", "/b/", "x"};
    strcpy(path, "/");
    for (unsigned i = random_below(most); i > 0; i--)
        strcat(path, ONE_OF(parts));
}

static bool stands_already(const struct map_settings *maps, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(maps[i].path, maps[count].path) == 0 &&
            strcmp(maps[i].host != NULL ? maps[i].host : "",
                   maps[count].host != NULL ? maps[count].host : "") == 0)
            return true;
    return false;
}

static void check_maps(size_t count) {
    static const char *const names[] = {"", "a.org", "a.org:81", "b.org", "[::1]", "[::1]:81"};
    static const char *const asked[] = {"",      "a.org",    "a.org:80", "a.org:81", "a.org.x",
                                        "b.org", "b.org:81", "[::1]",    "[::1]:81", "c"};
    static char paths[MAPS_MAX][80];
    struct map_settings maps[MAPS_MAX] = {0};
    for (size_t i = 0; i < count;) {
        const char *name = ONE_OF(names);
        random_path(paths[i], 5);
        maps[i].path = paths[i];
        maps[i].host = name[0] == '\0' ? NULL : (char *)(uintptr_t)name;
        i += !stands_already(maps, i);
    }
    struct map_table *table = map_table_new();
    for (size_t i = 0; i < count; i++)
        map_table_add(table, slice_from(maps[i].host), slice_from(maps[i].path), i);
    map_table_seal(table);
    for (int i = 0; i < 200; i++) {
        const struct map_settings *best = NULL;
        const char *host = ONE_OF(asked);
        char path[80];
        random_path(path, 7);
        for (size_t j = 0; j < count; j++)
            if (map_matches(&maps[j], host, path) && goes_before(&maps[j], best))
                best = &maps[j];
        size_t found = map_table_find(table, slice_from(host), slice_from(path));
        ck_assert_ptr_eq(found == MAP_TABLE_NONE ? NULL : &maps[found], best);
    }
    map_table_free(&table);
}

START_TEST(maps_are_found_as_by_a_walk) {
    for (int round = 0; round < 100; round++)
        check_maps(random_below(MAPS_MAX));
}
END_TEST

Suite *rules_suite(void) {
    const TTest *const tests[] = {
        an_expression_has_literals,
        what_may_be_found_anywhere_has_none,
        a_quick_search_that_takes_long_says_maybe,
        nothing_is_found_without_its_literals,
        edges_tell_what_is_not_found,
        edges_that_are_not_certain,
        nothing_is_found_without_its_edges,
        all_needles_are_found,
        very_many_needles_are_found,
        rules_are_found_as_by_a_walk,
        bits_are_walked_both_ways,
        a_hostile_url_costs_little,
        many_expressions_find_what_each_finds,
        maps_are_found_as_by_a_walk,
    };
    return suite_of("rules", tests, COUNT_OF(tests));
}
