#include "match/literals.h"

/* A walk through an expression. `lost`: the walk has found something that it does
 * not understand. */
struct walk {
    const char *at;
    unsigned depth;
    bool lost;
};

enum { DEPTH_MAX = 20 };

/* One branch: the part of an expression between two bars. */
struct branch {
    struct literal run; /* the text that is being read */
    struct literals best;
};

enum quantity { ONCE, SOME, PERHAPS_NONE };

static void walk_branches(struct walk *walk, struct literals *literals);

static bool literals_is_one_of(char c, const char *set) {
    return c != '\0' && strchr(set, c) != NULL;
}

static bool literals_is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The length of the shortest text; 0: there are no texts. The longer this text is, the less often
 * it is found. */
static unsigned shortest(const struct literals *literals) {
    unsigned least = literals->count == 0 ? 0 : LITERAL_MOST;
    for (unsigned i = 0; i < literals->count; i++)
        if (literals->each[i].length < least)
            least = literals->each[i].length;
    return least;
}

static void literals_consider(struct branch *branch, const struct literals *literals) {
    if (shortest(literals) > shortest(&branch->best))
        branch->best = *literals;
}

static void literals_end_run(struct branch *branch) {
    struct literals literals = {.count = branch->run.length > 0, .each = {branch->run}};
    literals_consider(branch, &literals);
    branch->run.length = 0;
}

/* "{n}", "{n,}", "{n,m}"; a brace that is none of these stands for itself. */
static enum quantity read_braces(struct walk *walk) {
    const char *at = walk->at + 1;
    bool none = true;
    if (literals_is_one_of(*at, ", ")) /* in newer versions of PCRE2 these mean something */
        walk->lost = true;
    if (!literals_is_digit(*at))
        return ONCE;
    for (; literals_is_digit(*at); at++)
        none = none && *at == '0';
    if (*at == ',')
        for (at++; literals_is_digit(*at);)
            at++;
    if (*at != '}') {
        walk->lost = true;
        return ONCE;
    }
    walk->at = at + 1;
    return none ? PERHAPS_NONE : SOME;
}

/* Reads how often the last element may occur. */
static enum quantity read_quantity(struct walk *walk) {
    enum quantity quantity = ONCE;
    if (literals_is_one_of(*walk->at, "?*+"))
        quantity = *walk->at++ == '+' ? SOME : PERHAPS_NONE;
    else if (*walk->at == '{')
        quantity = read_braces(walk);
    if (quantity != ONCE && literals_is_one_of(*walk->at, "?+")) /* lazy, possessive */
        walk->at++;
    return quantity;
}

static void literals_take_byte(struct walk *walk, struct branch *branch, char byte) {
    enum quantity quantity = read_quantity(walk);
    if (branch->run.length == LITERAL_MOST)
        literals_end_run(branch);
    if (quantity != PERHAPS_NONE)
        branch->run.bytes[branch->run.length++] = (char)ascii_lower((unsigned char)byte);
    if (quantity != ONCE)
        literals_end_run(branch);
}

/* Skips an element that does not stand for one certain byte. */
static void take_other(struct walk *walk, struct branch *branch) {
    read_quantity(walk);
    literals_end_run(branch);
}

static void literals_take_escape(struct walk *walk, struct branch *branch) {
    char next = walk->at[1];
    bool is_word =
        literals_is_digit(next) || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (next == '\0' || (is_word && !literals_is_one_of(next, "dDwWsShHvVNRbBAzZG"))) {
        walk->lost = true;
        return;
    }
    walk->at += 2;
    if (is_word)
        take_other(walk, branch);
    else
        literals_take_byte(walk, branch, next);
}

static void take_set(struct walk *walk, struct branch *branch) {
    const char *at = walk->at + 1;
    at += *at == '^';
    at += *at == ']';
    for (; *at != ']'; at++) {
        if (*at == '\\')
            at++;
        /* The set has a class such as "[:alpha:]", or a quotation. */
        if (*at == '\0' || (*at == '[' && literals_is_one_of(at[1], ":.=")) ||
            (at[-1] == '\\' && literals_is_one_of(*at, "QE"))) {
            walk->lost = true;
            return;
        }
    }
    walk->at = at + 1;
    take_other(walk, branch);
}

/* Skips the options behind "(?", such as "i)" or "i:". False: no options stand there. */
static bool skip_options(struct walk *walk, bool *is_group) {
    const char *at = walk->at + 2;
    while (literals_is_one_of(*at, "imsnUJ^-"))
        at++;
    if (*at != ':' && *at != ')')
        return false;
    *is_group = *at == ':';
    walk->at = at + 1;
    return true;
}

static void take_group(struct walk *walk, struct branch *branch) {
    struct literals inside;
    bool is_group = true, counts = true;
    literals_end_run(branch);
    if (walk->at[1] != '?') {
        walk->lost = walk->at[1] == '*';
        walk->at++;
    } else if (!skip_options(walk, &is_group)) {
        /* This walk does not know the rules of comments and (?x). */
        walk->lost = !literals_is_one_of(walk->at[2], "=!<>");
        walk->at += 3;
        counts = false;
    }
    if (!is_group)
        return;
    walk_branches(walk, &inside);
    if (walk->lost || *walk->at != ')') {
        walk->lost = true;
        return;
    }
    walk->at++;
    if (read_quantity(walk) != PERHAPS_NONE && counts)
        literals_consider(branch, &inside);
}

static void take_atom(struct walk *walk, struct branch *branch) {
    switch (*walk->at) {
    case '\\': literals_take_escape(walk, branch); return;
    case '[': take_set(walk, branch); return;
    case '(': take_group(walk, branch); return;
    case '.':
    case '^':
    case '$':
        walk->at++;
        take_other(walk, branch);
        return;
    case '?':
    case '*':
    case '+': walk->lost = true; return;
    case '{': walk->lost = literals_is_digit(walk->at[1]) || literals_is_one_of(walk->at[1], ", ");
    }
    literals_take_byte(walk, branch, *walk->at++);
}

static void walk_branch(struct walk *walk, struct literals *literals) {
    struct branch branch = {0};
    while (!walk->lost && *walk->at != '\0' && *walk->at != '|' && *walk->at != ')')
        take_atom(walk, &branch);
    literals_end_run(&branch);
    *literals = branch.best;
}

/* Each branch adds its texts. One branch without texts spoils the result for all. */
static void literals_join(struct literals *all, const struct literals *more, bool *spoiled) {
    *spoiled = *spoiled || more->count == 0 || all->count + more->count > LITERALS_MAX;
    if (*spoiled) {
        all->count = 0;
        return;
    }
    memcpy(all->each + all->count, more->each, more->count * sizeof *more->each);
    all->count += more->count;
}

static void walk_branches(struct walk *walk, struct literals *literals) {
    struct literals one;
    bool spoiled = false;
    literals->count = 0;
    walk->lost = walk->lost || ++walk->depth > DEPTH_MAX;
    for (; !walk->lost; walk->at++) {
        walk_branch(walk, &one);
        literals_join(literals, &one, &spoiled);
        if (*walk->at != '|')
            break;
    }
    walk->depth--;
}

bool literals_of(const char *regex, struct literals *literals) {
    struct walk walk = {.at = regex};
    walk_branches(&walk, literals);
    return !walk.lost && *walk.at == '\0' && shortest(literals) >= LITERAL_LEAST;
}
