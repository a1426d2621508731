#include "match/edges.h"

/* A walk through an expression. Only what is simple is understood: literals, sets, groups, and how
 * often they occur. */
struct edge_walk {
    const char *at;
    unsigned depth;
    bool branches;       /* bars outside of groups */
    const char *element; /* where the last element outside of groups begins; NULL: none */
    bool counted;        /* it occurs some times, or perhaps not at all */
};

enum { EDGES_DEPTH_MAX = 20 };

static bool edges_is_one_of(char c, const char *set) {
    return c != '\0' && strchr(set, c) != NULL;
}

static bool edges_is_quantifier(char c) {
    return edges_is_one_of(c, "?*+");
}

/* An escaped byte that stands for itself. */
static bool is_escaped_literal(const char *at) {
    return at[0] == '\\' && edges_is_one_of(at[1], "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
}

static bool is_literal(const char *at) {
    return is_escaped_literal(at) || (*at != '\0' && !edges_is_one_of(*at, "\\^$.[|()?*+{"));
}

/* Behind the literal. */
static const char *literal_end(const char *at) {
    return at + (*at == '\\' ? 2 : 1);
}

static char literal_byte(const char *at) {
    return *at == '\\' ? at[1] : at[0];
}

/* "[^ab-c]"; NULL: it has something else in it. */
static const char *set_end(const char *at) {
    at++;
    at += *at == '^';
    if (*at == ']')
        return NULL;
    for (; *at != ']'; at++)
        if (*at == '\0' || *at == '[' || *at == '\\')
            return NULL;
    return at + 1;
}

/* "(" or "(?:"; NULL: another kind of group. */
static const char *group_begin(const char *at) {
    if (at[1] == '*')
        return NULL;
    if (at[1] != '?')
        return at + 1;
    return at[2] == ':' ? at + 3 : NULL;
}

/* Behind the element or sign at `at`; NULL: it is not understood. */
static const char *element_end(struct edge_walk *walk, const char *at) {
    switch (*at) {
    case '\\': return is_escaped_literal(at) || edges_is_one_of(at[1], "dDwWsS") ? at + 2 : NULL;
    case '[': return set_end(at);
    case '(': walk->depth++; return walk->depth > EDGES_DEPTH_MAX ? NULL : group_begin(at);
    case ')': return walk->depth-- == 0 ? NULL : at + 1;
    case '|': walk->branches |= walk->depth == 0; return at + 1;
    case '{': return NULL;
    default: return at + 1;
    }
}

/* Walks to the end. False: something is not understood. */
static bool edge_walk(struct edge_walk *walk) {
    while (*walk->at != '\0') {
        const char *at = walk->at;
        if (edges_is_quantifier(*at))
            walk->counted |= walk->depth == 0;
        else if (walk->depth == 0 && strcmp(at, "$") != 0) {
            walk->element = at;
            walk->counted = false;
        }
        walk->at = element_end(walk, at);
        if (walk->at == NULL)
            return false;
    }
    return walk->depth == 0;
}

/* In either case. */
static void edges_set(struct edges *edges, char byte, unsigned where) {
    unsigned char lower = ascii_lower((unsigned char)byte);
    edges->bytes[lower] |= (unsigned char)where;
    if (lower >= 'a' && lower <= 'z')
        edges->bytes[lower - 'a' + 'A'] |= (unsigned char)where;
}

/* "$" stands before a last newline as well, and several bytes may count as one. */
static void set_newlines(struct edges *edges) {
    for (unsigned byte = 0; byte < 256; byte++)
        if (byte < ' ' || byte >= 0x7f)
            edges->bytes[byte] |= EDGES_LAST;
}

/* The last byte of each branch of a group without groups in it. False: one of them has no certain
 * one. */
static bool set_last_of_group(struct edges *edges, const char *at) {
    const char *element = NULL;
    for (at = group_begin(at); at != NULL; at = literal_end(at)) {
        if (*at == '|' || *at == ')') {
            if (element == NULL)
                return false;
            edges_set(edges, literal_byte(element), EDGES_LAST);
            element = NULL;
            if (*at == ')')
                return true;
        } else if (*at == '?' || *at == '*' || *at == '+') {
            element = NULL; /* the byte before it may be the last one */
        } else if (is_literal(at)) {
            element = at;
        } else {
            return false;
        }
    }
    return false;
}

/* The expression ends with "$", and before it stand literals. */
static bool add_last(struct edges *edges, const struct edge_walk *walk) {
    const char *element = walk->element;
    if (walk->branches || element == NULL || walk->counted || walk->at[-1] != '$')
        return false;
    if (*element == '(') {
        if (!set_last_of_group(edges, element))
            return false;
    } else if (is_literal(element) && strcmp(literal_end(element), "$") == 0) {
        edges_set(edges, literal_byte(element), EDGES_LAST);
    } else {
        return false;
    }
    set_newlines(edges);
    return true;
}

/* The expression begins with "^" and two literals. */
static bool add_second(struct edges *edges, const struct edge_walk *walk, const char *regex) {
    const char *first = regex + 1;
    if (walk->branches || *regex != '^' || !is_literal(first))
        return false;
    const char *second = literal_end(first);
    if (!is_literal(second) || edges_is_one_of(*literal_end(second), "?*"))
        return false;
    edges_set(edges, literal_byte(second), EDGES_SECOND);
    return true;
}

void edges_add(struct edges *edges, const char *regex) {
    if (strncmp(regex, "(?i)", 4) == 0)
        regex += 4;
    struct edge_walk walk = {.at = regex};
    if (!edge_walk(&walk) || (!add_last(edges, &walk) && !add_second(edges, &walk, regex)))
        edges->anywhere = true;
}
