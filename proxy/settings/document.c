#include "settings/document.h"

#include "base/assert.h"
#include "base/text.h"

#include <confuse.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { DOCUMENT_MAX_BYTES = 64 << 20 };

/* Every section has one additional option, a list with a default. libconfuse parses that default
 * when it opens the section. This tells us the line of the '{', which libconfuse does not store.
 * No file can set this option, because its name can not be written without quotes. */
static const char opening_mark[] = " opening";

/* The state of libconfuse's callbacks, which take no argument of ours. The lexer is global as
 * well, so one document is parsed at a time. */
static struct {
    pthread_mutex_t lock;
    struct document *document;
    char *error; /* SETTINGS_ERROR bytes; empty: no error so far */
} parsing = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Keeps only the first error, because later ones are often its consequence. */
static void document_complain(int line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void document_complain(int line, const char *format, ...) {
    va_list arguments;
    if (parsing.error[0] != '\0')
        return;
    size_t length =
        (size_t)snprintf(parsing.error, SETTINGS_ERROR, "%s:%d: ", parsing.document->path, line);
    if (length >= SETTINGS_ERROR)
        return;
    va_start(arguments, format);
    vsnprintf(parsing.error + length, SETTINGS_ERROR - length, format, arguments);
    va_end(arguments);
}

/* libconfuse names its root "root"; values there belong to the first section, "". No section can
 * contain one of its own kind, so all other values belong to the last section of their kind. */
static struct document_section *section_of(cfg_t *cfg) {
    size_t i = parsing.document->section_count - 1;
    if (strcmp(cfg->name, "root") == 0)
        return &parsing.document->sections[0];
    while (strcmp(parsing.document->sections[i].kind->name, cfg->name) != 0)
        i--;
    return &parsing.document->sections[i];
}

static struct document_section *add_section(struct document *document,
                                            const struct option_section *kind, const char *title,
                                            int line) {
    document->sections =
        xrealloc(document->sections, (document->section_count + 1) * sizeof *document->sections);
    struct document_section *section = &document->sections[document->section_count++];
    *section = (struct document_section){.kind = kind, .line = line};
    section->title = title == NULL ? NULL : xstrdup(title);
    return section;
}

static bool same_title(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Parses the default of opening_mark: a section begins. It must not fail, because libconfuse
 * would abort. */
static int on_section(cfg_t *cfg, cfg_opt_t *option, const char *text, void *result) {
    *(void **)result = NULL;
    const struct option_section *kind = options_find_section(cfg->name);
    DOCUMENT_FOR_EACH_SECTION (other, parsing.document, cfg->name) {
        if (!same_title(other->title, cfg->title))
            continue;
        if (kind->title == NULL)
            document_complain(cfg->line,
                              "the section %s is defined twice; the first one is in line %d",
                              cfg->name, other->line);
        else
            document_complain(cfg->line, "%s \"%s\" is defined twice; the first one is in line %d",
                              cfg->name, cfg->title, other->line);
        break;
    }
    add_section(parsing.document, kind, cfg->title, cfg->line);
    return 0;
}

static int on_value(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result) {
    struct document_section *section = section_of(cfg);
    const struct option *option = options_find(section->kind->name, opt->name);
    const struct document_value *earlier = document_value(section, opt->name);
    *(void **)result = NULL;
    if (parsing.error[0] != '\0')
        return -1;
    /* A list that is continued has more values by now than the one being added. */
    if (earlier != NULL && !(option_is_list(option) && opt->nvalues > 1)) {
        document_complain(cfg->line, "%s is set twice; the first one is in line %d", opt->name,
                          earlier->line);
        return -1;
    }
    section->values =
        xrealloc(section->values, (section->value_count + 1) * sizeof *section->values);
    section->values[section->value_count++] =
        (struct document_value){.option = option, .text = xstrdup(text), .line = cfg->line};
    return 0;
}

/* "no such option 'memroy'" and the like: libconfuse gives the name only in its text. */
static bool quoted_name(const char *message, const char *begin, char *name, size_t capacity) {
    size_t length = strlen(begin);
    if (strncmp(message, begin, length) != 0)
        return false;
    snprintf(name, capacity, "%s", message + length);
    char *quote = strrchr(name, '\'');
    if (quote != NULL)
        *quote = '\0';
    return true;
}

static void complain_unknown(int line, const char *section, const char *name) {
    const char *meant = options_suggest(section, name);
    const struct option_section *elsewhere = options_find_section(name);
    char place[80] = "";
    if (section[0] != '\0')
        snprintf(place, sizeof place, " in section %s", section);
    if (elsewhere != NULL && elsewhere->parent != NULL)
        document_complain(
            line, "%s is in the wrong place: write it in section %s, as in: %s { %s %s { ... } }",
            name, elsewhere->parent, elsewhere->parent, name,
            elsewhere->title == NULL ? "" : elsewhere->title);
    else if (elsewhere != NULL && name[0] != '\0')
        document_complain(
            line, "%s is in the wrong place: it is a section of its own and belongs outside %s",
            name, section);
    else if (meant != NULL)
        document_complain(line, "unknown option \"%s\"%s; did you mean \"%s\"?", name, place,
                          meant);
    else
        document_complain(line, "unknown option \"%s\"%s; retort.conf(5) lists them all", name,
                          place);
}

static void on_confuse_error(cfg_t *cfg, const char *format, va_list arguments) {
    char message[400], name[200];
    const char *section = strcmp(cfg->name, "root") == 0 ? "" : cfg->name;
    vsnprintf(message, sizeof message, format, arguments);
    if (quoted_name(message, "no such option '", name, sizeof name))
        complain_unknown(cfg->line, section, name);
    else if (quoted_name(message, "missing equal sign after option '", name, sizeof name))
        document_complain(cfg->line, "a '=' is missing after %s", name);
    else if (quoted_name(message, "missing title for section '", name, sizeof name))
        document_complain(cfg->line, "%s needs a title, as in: %s %s { ... }", name, name,
                          options_find_section(name)->title);
    else if (quoted_name(message, "missing opening brace for section '", name, sizeof name))
        document_complain(cfg->line, "a '{' is missing to open section %s%s", name,
                          options_find_section(name)->title == NULL ? ", which has no title" : "");
    else if (strcmp(message, "premature end of file") == 0)
        document_complain(cfg->line, "the file ends where a value was expected");
    else if (quoted_name(message, "unexpected token '", name, sizeof name))
        document_complain(cfg->line,
                          "'%s' is unexpected here: write NAME = VALUE; in a list, { a, b }, "
                          "separate the values with commas",
                          name);
    else
        document_complain(cfg->line, "%s", message);
}

/* Most rows of one section: its options, the sections in it, the opening mark, the end. */
static size_t grammar_capacity(const char *section) {
    size_t count = 2;
    OPTIONS_FOR_EACH (option, section)
        count++;
    for (const struct option_section *s = option_sections; s->name != NULL; s++)
        count += option_section_is_in(s, section);
    return count;
}

/* The rows of one section as libconfuse wants them, and those of the sections in it. */
static cfg_opt_t *grammar_of(const char *section) {
    static char opening_default[] = "{x}";
    cfg_opt_t *grammar = xcalloc(grammar_capacity(section), sizeof *grammar), *at = grammar;
    OPTIONS_FOR_EACH (option, section) {
        const cfg_opt_t row = CFG_PTR_CB(option->name, NULL, CFGF_NODEFAULT, on_value, NULL);
        *at = row;
        if (option_is_list(option))
            at->flags |= CFGF_LIST;
        at++;
    }
    for (const struct option_section *s = option_sections; s->name != NULL; s++) {
        if (!option_section_is_in(s, section))
            continue;
        /* MULTI is set even for sections that may occur once; otherwise libconfuse would
         * silently use the last one. */
        cfg_flag_t flags = CFGF_MULTI | (s->title != NULL ? CFGF_TITLE : CFGF_NONE);
        const cfg_opt_t row = CFG_SEC(s->name, grammar_of(s->name), flags);
        *at++ = row;
    }
    if (section[0] != '\0') {
        const cfg_opt_t mark = CFG_PTR_LIST_CB(opening_mark, NULL, CFGF_NONE, on_section, NULL);
        *at = mark;
        at->def.parsed = opening_default;
    }
    return grammar;
}

static void free_grammar(cfg_opt_t *grammar) {
    for (cfg_opt_t *row = grammar; row->name != NULL; row++)
        if (row->type == CFGT_SEC)
            free_grammar(row->subopts);
    free(grammar);
}

static cfg_t *make_parser(void) {
    cfg_opt_t *grammar = grammar_of("");
    cfg_t *parser = cfg_init(grammar, CFGF_NONE); /* copies the grammar */
    free_grammar(grammar);
    ASSERT(parser != NULL);
    cfg_set_error_function(parser, on_confuse_error);
    return parser;
}

/* "x = {}" leaves no value, but it does not mean the default either. */
static void refuse_empty_lists(cfg_t *cfg, int line) {
    for (size_t i = 0; cfg->opts[i].name != NULL; i++) {
        const cfg_opt_t *opt = &cfg->opts[i];
        if (opt->type == CFGT_PTR && opt->nvalues == 0 && (opt->flags & CFGF_MODIFIED) != 0)
            document_complain(line, "the list of %s is empty; remove the option to use its default",
                              opt->name);
    }
}

/* libconfuse stores the subsections of a section by kind, in the order of the file. We append
 * them after `own`, the section that contains them, in the same order. */
static void refuse_empty_lists_below(cfg_t *cfg, const struct document_section *own) {
    refuse_empty_lists(cfg, own->line);
    for (size_t i = 0; cfg->opts[i].name != NULL; i++) {
        const cfg_opt_t *opt = &cfg->opts[i];
        const struct document_section *ours = own;
        for (size_t j = 0; opt->type == CFGT_SEC && j < opt->nvalues; j++) {
            ours = document_section(parsing.document, opt->name, ours);
            refuse_empty_lists_below(opt->values[j]->section, ours);
        }
    }
}

static void parse_text(char *text, size_t length) {
    FILE *file = fmemopen(text, length, "r");
    cfg_t *parser = make_parser();
    ASSERT(file != NULL);
    if (cfg_parse_fp(parser, file) == CFG_SUCCESS)
        refuse_empty_lists_below(parser, &parsing.document->sections[0]);
    else
        document_complain(parser->line, "the name of an option is missing");
    cfg_free(parser);
    fclose(file);
}

/* Reads the whole file and adds a newline if the last one is missing. Returns NULL with a
 * message on an error. */
static char *document_read_file(const char *path, size_t *length, char *error) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0, got;
    *length = 0;
    if (file == NULL) {
        snprintf(error, SETTINGS_ERROR, "%s: the file can not be opened: %s", path,
                 strerror(errno));
        return NULL;
    }
    do {
        capacity += 64 << 10;
        text = xrealloc(text, capacity + 2);
        got = fread(text + *length, 1, capacity - *length, file);
        *length += got;
    } while (got > 0 && *length == capacity && capacity < DOCUMENT_MAX_BYTES);
    if (ferror(file)) {
        snprintf(error, SETTINGS_ERROR, "%s: the file can not be read: %s", path, strerror(errno));
        free(text);
        text = NULL;
    } else if (capacity >= DOCUMENT_MAX_BYTES) {
        snprintf(error, SETTINGS_ERROR, "%s: the file is too long for a configuration file", path);
        free(text);
        text = NULL;
    } else {
        if (*length == 0 || text[*length - 1] != '\n')
            text[(*length)++] = '\n';
        text[*length] = '\0';
    }
    fclose(file);
    return text;
}

static struct document *document_new(const char *path) {
    struct document *document;
    ALLOC_OBJ(document, DOCUMENT_MAGIC);
    document->path = xstrdup(path);
    add_section(document, options_find_section(""), NULL, 1);
    return document;
}

struct document *document_parse(const char *path, char error[SETTINGS_ERROR]) {
    size_t length;
    int line;
    char reason[400];
    error[0] = '\0';
    char *text = document_read_file(path, &length, error);
    if (text == NULL)
        return NULL;
    struct document *document = document_new(path);
    struct slice plain = text_without_mark(slice_make(text, length));
    if (document_scan(plain.base, plain.length, &line, reason, sizeof reason)) {
        pthread_mutex_lock(&parsing.lock);
        parsing.document = document;
        parsing.error = error;
        parse_text(text + (length - plain.length), plain.length);
        pthread_mutex_unlock(&parsing.lock);
    } else {
        snprintf(error, SETTINGS_ERROR, "%s:%d: %s", path, line, reason);
    }
    free(text);
    if (error[0] != '\0')
        document_free(&document);
    return document;
}

void document_free(struct document **documentp) {
    struct document *document = *documentp;
    *documentp = NULL;
    if (document == NULL)
        return;
    CHECK_OBJ(document, DOCUMENT_MAGIC);
    for (size_t i = 0; i < document->section_count; i++) {
        struct document_section *section = &document->sections[i];
        for (size_t j = 0; j < section->value_count; j++)
            free(section->values[j].text);
        free(section->values);
        free(section->title);
    }
    free(document->sections);
    free(document->path);
    FREE_OBJ(document);
}

const struct document_section *document_section(const struct document *document, const char *kind,
                                                const struct document_section *after) {
    const struct document_section *end = document->sections + document->section_count;
    const struct document_section *section = after == NULL ? document->sections : after + 1;
    for (; section < end; section++)
        if (strcmp(section->kind->name, kind) == 0)
            return section;
    return NULL;
}

size_t document_section_count(const struct document *document, const char *kind) {
    size_t count = 0;
    DOCUMENT_FOR_EACH_SECTION (section, document, kind)
        count++;
    return count;
}

const struct document_value *document_value(const struct document_section *section,
                                            const char *name) {
    for (size_t i = 0; section != NULL && i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, name) == 0)
            return &section->values[i];
    return NULL;
}
