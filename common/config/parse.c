/* The grammar of configuration files: sections, values and included files. */
#include "config/config_file.h"
#include "config/document.h"
#include "config/tokens.h"

#include "base/assert.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that is being read, because the one around it includes it. */
struct parse {
    struct tokens tokens;
    const struct token *at; /* the next one */
    struct document *document;
    struct faults *faults;
    int file; /* its number, as bits of a place */
    const char *path;
    const struct parse *around; /* NULL: it is the main file */
    struct config_file_id id;
    unsigned depth;
};

static bool parse_statements(struct parse *parse, size_t section);
static bool parse_include(const struct parse *parse, const char *pattern, int place);

static int parse_place(const struct parse *parse, int line) {
    int most = (1 << DOCUMENT_LINE_BITS) - 1;
    return parse->file + (line < most ? line : most);
}

/* Notes a fault in a line of the file. Returns false. */
static bool parse_fail(const struct parse *parse, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool parse_fail(const struct parse *parse, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    faults_add_list(parse->faults, parse_place(parse, line), parse->path, line, format, arguments);
    va_end(arguments);
    return false;
}

/* Says in words where something stands that this file tells of. */
static const char *where_of(const struct parse *parse, int place, char *text, size_t size) {
    const char *file = document_file(parse->document, place);
    if ((place & ~((1 << DOCUMENT_LINE_BITS) - 1)) == parse->file)
        snprintf(text, size, "in line %d", document_line(place));
    else
        snprintf(text, size, "in %.300s:%d", file, document_line(place));
    return text;
}

/* The text of the next token. */
static const char *parse_text_of(const struct parse *parse) {
    return tokens_word(&parse->tokens, parse->at);
}

static bool unexpected(const struct parse *parse) {
    if (parse->at->kind == TOKEN_END)
        return parse_fail(parse, parse->at->line, "the file ends where a value was expected");
    return parse_fail(parse, parse->at->line,
                      "'%.200s' is unexpected here: write NAME = VALUE; in a list, { a, b }, "
                      "separate the values with commas",
                      parse_text_of(parse));
}

static const char *parse_section_name(const struct parse *parse, size_t section) {
    return parse->document->sections[section].kind->name;
}

/* Skips a '{' and all as far as its '}'. */
static void skip_block(struct parse *parse) {
    unsigned depth = 0;
    do {
        depth += parse->at->kind == TOKEN_OPEN;
        depth -= parse->at->kind == TOKEN_CLOSE;
        parse->at++;
    } while (depth > 0 && parse->at->kind != TOKEN_END);
}

/* Skips what follows the name of an option or a section that is not known. */
static void skip_statement(struct parse *parse) {
    if (parse->at->kind == TOKEN_EQUALS || parse->at->kind == TOKEN_PLUS_EQUALS) {
        parse->at++;
        if (parse->at->kind == TOKEN_WORD)
            parse->at++;
        else if (parse->at->kind == TOKEN_OPEN)
            skip_block(parse);
        return;
    }
    parse->at += parse->at->kind == TOKEN_WORD;
    if (parse->at->kind == TOKEN_OPEN)
        skip_block(parse);
}

/* Keeps the title of a section that the table could have: what names it is a consequence. */
static void keep_missing(struct parse *parse, const struct token *title) {
    struct document *document = parse->document;
    if (title[0].kind != TOKEN_WORD || title[1].kind != TOKEN_OPEN)
        return;
    size_t number = document_add_section(document, &document->table->sections[0],
                                         tokens_word(&parse->tokens, title), 0);
    document->sections[number].faulty = document->sections[number].dropped = true;
}

static void complain_unknown(struct parse *parse, size_t section, const char *name) {
    const struct option_table *table = parse->document->table;
    const char *inside = parse_section_name(parse, section);
    const char *meant = options_suggest(table, inside, name);
    const struct option_section *elsewhere = options_find_section(table, name);
    int line = parse->at->line;
    char place[80] = "";
    char reason[300];
    if (inside[0] != '\0')
        snprintf(place, sizeof place, " in section %s", inside);
    if (table->explain != NULL && table->explain(inside, name, reason, sizeof reason)) {
        parse_fail(parse, line, "%s", reason);
        keep_missing(parse, parse->at + 1);
    } else if (elsewhere != NULL && elsewhere->parent != NULL)
        parse_fail(parse, line,
                   "%s is in the wrong place: write it in section %s, as in: %s { %s %s { ... } }",
                   name, elsewhere->parent, elsewhere->parent, name,
                   elsewhere->title == NULL ? "" : elsewhere->title);
    else if (elsewhere != NULL)
        parse_fail(parse, line,
                   "%s is in the wrong place: it is a section of its own and belongs outside %s",
                   name, inside);
    else if (strcmp(name, "include") == 0 && options_find(table, "", name) != NULL)
        parse_fail(parse, line, "include is in the wrong place: it belongs outside all sections");
    else if (meant != NULL)
        parse_fail(parse, line, "unknown option \"%.200s\"%s; did you mean \"%s\"?", name, place,
                   meant);
    else
        parse_fail(parse, line, "unknown option \"%.200s\"%s; %s lists them all", name, place,
                   table->manual);
}

/* An element NAME = VALUE, which becomes "NAME=VALUE". One without '=' is taken as it is: the check
 * of the option has the words for it. */
static bool keep_pair(struct parse *parse, size_t section, const struct option *option, bool kept) {
    int place = parse_place(parse, parse->at->line);
    const char *name = parse_text_of(parse), *value = NULL;
    char *text;
    parse->at++;
    if (parse->at->kind == TOKEN_EQUALS) {
        parse->at++;
        if (parse->at->kind != TOKEN_WORD)
            return false;
        value = parse_text_of(parse);
        parse->at++;
    }
    ASSERT(asprintf(&text, "%s%s%s", name, value != NULL ? "=" : "", value != NULL ? value : "") >=
           0);
    if (kept)
        document_add_value(parse->document, section, option, text, place);
    free(text);
    return true;
}

/* False: what stands there is no value. */
static bool keep_value(struct parse *parse, size_t section, const struct option *option,
                       bool kept) {
    int place = parse_place(parse, parse->at->line);
    if (option->pairs)
        return keep_pair(parse, section, option, kept);
    if (kept)
        document_add_value(parse->document, section, option, parse_text_of(parse), place);
    if (kept && section == 0 && strcmp(option->name, "include") == 0)
        parse_include(parse, parse_text_of(parse), place);
    parse->at++;
    return true;
}

/* The values behind '{', as far as the '}'. */
static bool parse_list(struct parse *parse, size_t section, const struct option *option,
                       bool kept) {
    int line = parse->at->line;
    unsigned count = 0;
    parse->at++;
    while (parse->at->kind == TOKEN_WORD) {
        if (!keep_value(parse, section, option, kept))
            break;
        count++;
        if (parse->at->kind != TOKEN_COMMA)
            break;
        parse->at++;
    }
    if (parse->at->kind != TOKEN_CLOSE)
        return unexpected(parse);
    parse->at++;
    if (count > 0 || parse->document->table->lenient)
        return true;
    parse->document->sections[section].incomplete = section > 0;
    parse_fail(parse, line, "the list of %s is empty; remove the option to use its default",
               option->name);
    return true;
}

/* Whether the value of this option counts: it is set once, or a list that is continued. */
static bool may_be_set(struct parse *parse, size_t section, const struct option *option, int line) {
    char where[400];
    const struct document_value *earlier =
        document_value(&parse->document->sections[section], option->name);
    bool appends = parse->at->kind == TOKEN_PLUS_EQUALS;
    if (appends && !option_is_list(option))
        return parse_fail(parse, line, "%s takes one value: write = in place of +=", option->name);
    if (earlier == NULL || appends || strcmp(option->name, "include") == 0)
        return true;
    if (parse->document->table->lenient) {
        document_remove_values(parse->document, section, option);
        return true;
    }
    return parse_fail(parse, line, "%s is set twice; the first one is %s", option->name,
                      where_of(parse, earlier->line, where, sizeof where));
}

static bool parse_value_of(struct parse *parse, size_t section, const struct option *option) {
    int line = parse->at->line;
    if (parse->at->kind != TOKEN_EQUALS && parse->at->kind != TOKEN_PLUS_EQUALS)
        return parse_fail(parse, parse->at->line, "a '=' is missing after %s", option->name);
    bool kept = may_be_set(parse, section, option, line);
    parse->at++;
    if (parse->at->kind == TOKEN_OPEN && option_is_list(option))
        return parse_list(parse, section, option, kept);
    if (parse->at->kind != TOKEN_WORD)
        return unexpected(parse);
    return keep_value(parse, section, option, kept) || unexpected(parse);
}

static bool same_title(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_second_section(const struct parse *parse, const struct option_section *kind,
                              const char *title, int line) {
    char where[400];
    DOCUMENT_FOR_EACH_SECTION (other, parse->document, kind->name) {
        if (kind->repeats || !same_title(other->title, title))
            continue;
        where_of(parse, other->line, where, sizeof where);
        if (title == NULL)
            parse_fail(parse, line, "the section %s is defined twice; the first one is %s",
                       kind->name, where);
        else
            parse_fail(parse, line, "%s \"%.200s\" is defined twice; the first one is %s",
                       kind->name, title, where);
        return true;
    }
    return false;
}

static bool parse_section_body(struct parse *parse, const struct option_section *kind,
                               const char *title) {
    if (parse->at->kind != TOKEN_OPEN)
        return parse_fail(parse, parse->at->line, "a '{' is missing to open section %s%s",
                          kind->name, kind->title == NULL ? ", which has no title" : "");
    bool second = is_second_section(parse, kind, title, parse->at->line);
    size_t section =
        document_add_section(parse->document, kind, title, parse_place(parse, parse->at->line));
    parse->document->sections[section].blamed = second;
    parse->at++;
    if (!parse_statements(parse, section))
        return false;
    if (parse->at->kind != TOKEN_CLOSE)
        return unexpected(parse);
    parse->at++;
    return true;
}

static bool parse_section(struct parse *parse, const struct option_section *kind) {
    if (kind->title == NULL)
        return parse_section_body(parse, kind, NULL);
    if (parse->at->kind != TOKEN_WORD)
        return parse_fail(parse, parse->at->line, "%s needs a title, as in: %s %s { ... }",
                          kind->name, kind->name, kind->title);
    const char *title = parse_text_of(parse);
    parse->at++;
    return parse_section_body(parse, kind, title);
}

static const struct option_section *child_section(const struct option_table *table,
                                                  const char *inside, const char *name) {
    const struct option_section *kind = options_find_section(table, name);
    return kind != NULL && option_section_is_in(kind, inside) ? kind : NULL;
}

/* What a name begins. */
static bool parse_statement(struct parse *parse, size_t section, const char *name) {
    const struct option_table *table = parse->document->table;
    const char *inside = parse_section_name(parse, section);
    const struct option *option = options_find(table, inside, name);
    const struct option_section *child = child_section(table, inside, name);
    if (option == NULL && child == NULL) {
        complain_unknown(parse, section, name);
        parse->document->sections[section].incomplete = section > 0;
        parse->at++;
        skip_statement(parse);
        return true;
    }
    parse->at++;
    return option != NULL ? parse_value_of(parse, section, option) : parse_section(parse, child);
}

/* Statements as far as a '}' or the end of the file. False: the grammar is broken. */
static bool parse_statements(struct parse *parse, size_t section) {
    bool good = true;
    while (good && parse->at->kind == TOKEN_WORD) {
        if (parse->at->length == 0)
            return parse_fail(parse, parse->at->line, "the name of an option is missing");
        good = parse_statement(parse, section, parse_text_of(parse));
    }
    if (!good || parse->at->kind == TOKEN_END || parse->at->kind == TOKEN_CLOSE)
        return good;
    return unexpected(parse);
}

/* Is the file one of those that are being read? */
static bool is_open(const struct parse *parse) {
    for (const struct parse *open = parse->around; open != NULL; open = open->around)
        if (open->id.inode == parse->id.inode && open->id.device == parse->id.device)
            return true;
    return false;
}

static void parse_text(struct parse *parse, const char *text, size_t length) {
    struct document *document = parse->document;
    struct slice plain = text_without_mark(slice_make(text, length));
    parse->file = document_add_file(document, parse->path);
    document->bytes += length;
    parse->tokens = (struct tokens){.path = parse->path,
                                    .file = parse->file,
                                    .lenient = document->table->lenient,
                                    .faults = parse->faults};
    bool good = tokens_read(&parse->tokens, plain);
    parse->at = parse->tokens.list;
    document->broken |= !good || !parse_statements(parse, 0);
    tokens_release(&parse->tokens);
}

/* Reads the main file. */
static void parse_main(struct document *document, struct faults *faults) {
    char reason[CONFIG_FILE_ERROR];
    struct stat status = {0};
    struct parse parse = {.document = document, .faults = faults, .path = document->path};
    size_t length;
    char *text = config_file_read(document->path, DOCUMENT_BYTES, &length, NULL, reason);
    if (text == NULL) {
        faults_add(faults, 0, document->path, 0, "%s", reason);
        document->broken = true;
        return;
    }
    if (stat(document->path, &status) == 0)
        parse.id = (struct config_file_id){.device = status.st_dev, .inode = status.st_ino};
    parse_text(&parse, text, length);
    free(text);
}

/* Reads one file for the line of another one that includes it. */
static bool include_file(const struct parse *around, const char *path, int place) {
    struct parse parse = {.document = around->document,
                          .faults = around->faults,
                          .path = path,
                          .around = around,
                          .depth = around->depth + 1};
    char reason[CONFIG_FILE_ERROR] = "";
    int line = document_line(place);
    size_t length, left = DOCUMENT_BYTES - around->document->bytes;
    if (parse.depth > DOCUMENT_DEPTH)
        return parse_fail(around, line, "include: \"%.500s\": files include one another %d deep",
                          path, DOCUMENT_DEPTH);
    if (around->document->file_count == DOCUMENT_FILES)
        return parse_fail(around, line, "include: \"%.500s\": a configuration has at most %d files",
                          path, DOCUMENT_FILES);
    char *text = config_file_read(path, left, &length, &parse.id, reason);
    if (text == NULL)
        return parse_fail(around, line, "include: \"%.500s\": %s", path, reason);
    bool again = is_open(&parse);
    if (again)
        parse_fail(around, line, "include: \"%.500s\": the file includes itself", path);
    else
        parse_text(&parse, text, length);
    free(text);
    return !again;
}

/* Reads the files that a pattern stands for. */
static bool parse_include(const struct parse *parse, const char *pattern, int place) {
    char reason[CONFIG_FILE_ERROR];
    bool good = true;
    if (pattern[0] == '\0')
        return true; /* what is wrong is told when the value is set */
    char **paths = config_file_glob(parse->path, pattern, reason);
    if (paths == NULL) {
        parse->document->broken = true;
        return parse_fail(parse, document_line(place), "include: \"%.500s\": %s", pattern, reason);
    }
    for (char **path = paths; *path != NULL; path++)
        good = include_file(parse, *path, place) && good;
    config_file_free_paths(&paths);
    parse->document->broken |= !good;
    return good;
}

struct document *document_parse(const char *path, const struct option_table *table,
                                struct faults *faults) {
    struct document *document;
    ALLOC_OBJ(document, DOCUMENT_MAGIC);
    document->table = table;
    document->path = xstrdup(path);
    document_add_section(document, &table->sections[0], NULL, 1);
    parse_main(document, faults);
    if (document->broken)
        document_free(&document);
    return document;
}
