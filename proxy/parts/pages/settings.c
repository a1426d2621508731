/* Pages of the proxy's own: error_page sections, and the pac section. */
#include "pages/error_page.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/text.h"
#include "config/config_file.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/options.h"
#include "settings/part_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES = 128 << 10,
    PAGE_FILES = 100, /* of one section */
    PAC_BYTES = 1 << 20,
    TAG_LONGEST = 35, /* RFC 5646 §4.4.1 */
};

static const char language_mark[] = "%{language}";

static bool option_check_page_status(const char *text, char *error, size_t error_size) {
    uint64_t status;
    if (strcmp(text, "4xx") == 0 || strcmp(text, "5xx") == 0 ||
        (slice_to_uint64(slice_from(text), &status) && status >= ERROR_PAGE_STATUS_FIRST &&
         status < ERROR_PAGE_STATUS_FIRST + ERROR_PAGE_STATUSES))
        return true;
    return failure(error, error_size, "is not a status from 400 to 599, 4xx or 5xx");
}

static bool is_language_tag(struct slice text) {
    if (text.length == 0 || text.length > TAG_LONGEST)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = ascii_lower((unsigned char)text.base[i]);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && (c != '-' || i == 0))
            return false;
    }
    return true;
}

static bool option_check_language(const char *text, char *error, size_t error_size) {
    if (is_language_tag(slice_from(text)))
        return true;
    return failure(error, error_size, "is not a language tag, such as en or pt-BR");
}

static bool option_check_direct(const char *text, char *error, size_t error_size) {
    const char *bad = text + strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-._");
    if (text[0] != '\0' && text[0] != '.' && *bad == '\0')
        return true;
    return failure(
        error, error_size,
        "is not a domain: write \"example.com\", which is for the names below it as well");
}

static bool option_check_pac_proxy(const char *text, char *error, size_t error_size) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-._:[]; ");
    if (text[length] == '\0')
        return true;
    return failure(error, error_size,
                   "is not a list of proxies: write \"PROXY proxy.example.com:3128; DIRECT\"");
}

static const char *const page_purpose_words[] = {"error", "waiting", "authority", NULL};

#define ERROR_PAGE(member) ONE("error_page", struct error_page_settings, member)
#define PAC(member)        ONE("pac", struct pages_settings, pac.member)

static const struct option rows[] = {
#include "pages/options.def"
    {.name = NULL},
};

static const struct option_section sections[] = {
    {
        .name = "error_page",
        .title = "CLASS",
        .repeats = true,
        .documentation =
            "Sets the page that clients get when a request of a URL class fails or is refused. The "
            "first section in the file applies whose class matches and whose status is that of the "
            "answer. A request whose URL could not be read belongs to the class all only. Without "
            "such a section Retort sends a short page of its own, as HTML, plain text, or JSON "
            "(RFC 9457). The fields of the answer, such as Proxy-Authenticate and Retry-After, do "
            "not depend on the page. examples/pages/ has pages in English and German.",
        .example = "error_page all {\n"
                   "    status = { 403, 407 }\n"
                   "    file = \"/etc/retort/pages/%{language}/denied.html\"\n"
                   "}",
    },
    {
        .name = "pac",
        .documentation =
            "Gives browsers a file that says how they reach the proxy (proxy auto-configuration): "
            "at http://retort.internal/proxy.pac and /wpad.dat through the proxy, and, for "
            "browsers "
            "that do not know it yet, under these paths at every forward listener: "
            "http://proxy.example.com:3128/proxy.pac. Access sections decide about both as "
            "requests "
            "to the host retort.internal.",
        .example = "pac { proxy = \"PROXY proxy.example.com:3128\"  direct = \"corp.example\" }",
    },
    {.name = NULL},
};

static void note_statuses(struct error_page_settings *page) {
    uint64_t status = 0;
    bool all = page->status_texts == NULL;
    for (unsigned i = 0; i < ERROR_PAGE_STATUSES; i++)
        page->statuses[i] = all;
    for (char **text = page->status_texts; !all && *text != NULL; text++) {
        if (slice_to_uint64(slice_from(*text), &status))
            page->statuses[status - ERROR_PAGE_STATUS_FIRST] = true;
        for (unsigned i = 0; i < ERROR_PAGE_STATUSES; i++)
            page->statuses[i] |= (*text)[1] == 'x' && (*text)[0] == (i < 100 ? '4' : '5');
    }
}

static bool is_utf8(struct slice text) {
    uint32_t character;
    while (text.length > 0) {
        size_t length = text.base[0] == '\0' ? 0 : text_decode(text, &character);
        if (length == 0)
            return false;
        text = slice_make(text.base + length, text.length - length);
    }
    return true;
}

static bool type_of_path(const char *path, enum page_type *type) {
    static const char *const ends[PAGE_TYPES] = {
        [PAGE_HTML] = ".html", [PAGE_JSON] = ".json", [PAGE_TEXT] = ".txt"};
    for (int i = 0; i < PAGE_TYPES; i++) {
        if (slice_ends_with_nocase(slice_from(path), slice_from(ends[i]))) {
            *type = (enum page_type)i;
            return true;
        }
    }
    return false;
}

/* The number of the first line that is no template by itself; 1 when all are. */
static unsigned line_at_fault(const char *text) {
    char ignored[200];
    unsigned number = 0;
    bool good = true;
    struct slice rest = slice_from(text), line;
    while (good && slice_next_line(&rest, &line)) {
        char *copy = slice_dup(line);
        struct text_template *compiled = text_template_new(copy, ignored, sizeof ignored);
        good = compiled != NULL;
        text_template_free(&compiled);
        free(copy);
        number++;
    }
    return good ? 1 : number;
}

/* Reads and compiles a file. NULL: it is no page, which is noted. */
static struct text_template *load_pages_read(struct load *load, int line, const char *path) {
    char reason[CONFIG_FILE_ERROR] = "", error[600];
    struct config_file_id id;
    size_t length;
    char *text = config_file_read(path, PAGE_BYTES, &length, &id, reason);
    if (text == NULL) {
        load_fail(load, line, "file: %.500s: %s", path, reason);
        return NULL;
    }
    struct text_template *template = NULL;
    if (!is_utf8(slice_make(text, length)))
        load_fail(load, line, "file: %.500s is not text in UTF-8", path);
    else if ((template = text_template_new(text, error, sizeof error)) == NULL)
        load_fail(load, line, "file: %.500s:%u: %s", path, line_at_fault(text), error);
    free(text);
    return template;
}

static bool add_page_file(struct load *load, int line, struct error_page_settings *page,
                          const char *path, struct slice language) {
    struct error_page_file file = {.language = NULL};
    if (page->file_count == PAGE_FILES)
        return load_fail(load, line, "file: a page can have at most %d files", PAGE_FILES);
    if (!type_of_path(path, &file.type))
        return load_fail(load, line,
                         "file: \"%.500s\": the name must end with .html, .json or .txt", path);
    if (page->purpose != PAGE_FOR_ERROR && file.type != PAGE_HTML)
        return load_fail(load, line,
                         "file: \"%.500s\": such a page is for browsers: its name must end with "
                         ".html",
                         path);
    file.text = load_pages_read(load, line, path);
    if (file.text == NULL)
        return false;
    file.language = language.length > 0 ? slice_dup(language) : NULL;
    page->files = xrealloc(page->files, (page->file_count + 1) * sizeof *page->files);
    page->files[page->file_count++] = file;
    return true;
}

static char *put_literally(char *at, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("*?[\\", *text) != NULL)
            *at++ = '\\';
        *at++ = *text;
    }
    return at;
}

/* The pattern of files with any tag between these two texts. */
static char *pattern_between(const char *before, const char *behind) {
    char *pattern = xmalloc(2 * (strlen(before) + strlen(behind)) + 2);
    char *at = put_literally(pattern, before);
    *at++ = '*';
    *put_literally(at, behind) = '\0';
    return pattern;
}

/* The files with a language tag between these two texts. */
static bool add_languages(struct load *load, const struct document_value *value,
                          struct error_page_settings *page, const char *before,
                          const char *behind) {
    char reason[CONFIG_FILE_ERROR] = "";
    char *pattern = pattern_between(before, behind);
    char **paths = config_file_glob("", pattern, reason);
    size_t count = page->file_count, around = strlen(before) + strlen(behind);
    bool good = paths != NULL || load_fail(load, value->line, "file: %s", reason);
    for (char **path = paths; good && *path != NULL; path++) {
        struct slice tag = slice_make(*path + strlen(before), strlen(*path) - around);
        if (is_language_tag(tag))
            good = add_page_file(load, value->line, page, *path, tag);
    }
    if (good && page->file_count == count)
        good = load_fail(load, value->line, "file: no file is like \"%.500s\"", value->text);
    config_file_free_paths(&paths);
    free(pattern);
    return good;
}

static bool add_page_path(struct load *load, const struct document_value *value,
                          struct error_page_settings *page) {
    char *path = config_file_beside(document_file(load->document, value->line), value->text);
    char *mark = strstr(path, language_mark);
    const char *language = page->language != NULL ? page->language : "";
    bool good;
    if (mark == NULL) {
        good = add_page_file(load, value->line, page, path, slice_from(language));
    } else if (strstr(mark + 1, language_mark) != NULL) {
        good =
            load_fail(load, value->line, "file: %s can stand only once in a path", language_mark);
    } else {
        *mark = '\0';
        good = add_languages(load, value, page, path, mark + sizeof language_mark - 1);
    }
    free(path);
    return good;
}

static bool is_default(const struct error_page_settings *page, const struct error_page_file *file) {
    const char *language = page->language != NULL ? page->language : "en";
    return file->language != NULL &&
           slice_equal_nocase(slice_from(file->language), slice_from(language));
}

/* Moves the files of the default language to the front. False: there is none of the language that
 * the section names. */
static bool put_default_first(struct error_page_settings *page) {
    size_t front = 0;
    for (size_t i = 0; i < page->file_count; i++) {
        if (!is_default(page, &page->files[i]))
            continue;
        struct error_page_file file = page->files[front];
        page->files[front++] = page->files[i];
        page->files[i] = file;
    }
    return page->language == NULL || front > 0;
}

static bool load_page_files(struct load *load, const struct document_section *section,
                            struct error_page_settings *page) {
    for (size_t i = 0; i < section->value_count; i++)
        if (strcmp(section->values[i].option->name, "file") == 0 &&
            !add_page_path(load, &section->values[i], page))
            return false;
    return put_default_first(page) || load_fail(load, load_line_of(section, "language"),
                                                "language: no file is in \"%s\"", page->language);
}

static bool load_error_page(struct load *load, const struct document_section *section,
                            struct pages_settings *pages, struct error_page_settings *page) {
    if (!load_section_class(load, section, &page->url_class) ||
        !load_values(load, section, "error_page", page))
        return false;
    if (page->purpose != PAGE_FOR_ERROR && (page->status_texts != NULL || page->name != NULL))
        return load_fail(load, load_line_of(section, page->name != NULL ? "name" : "status"),
                         "%s: only pages for errors have one; remove it, or remove for",
                         page->name != NULL ? "name" : "status");
    note_statuses(page);
    for (const struct error_page_settings *other = pages->error_pages; other < page; other++)
        if (page->name != NULL && other->name != NULL && strcmp(page->name, other->name) == 0)
            return load_fail(load, load_line_of(section, "name"),
                             "name: another error_page section has the name \"%s\"", page->name);
    return load->without_files || load_page_files(load, section, page);
}

/* Retort's own pages. They are short, name the reason, and say which proxy gave it. */
static const char *const own_texts[PAGE_TYPES] = {
    [PAGE_HTML] = ("<!DOCTYPE html>\n"
                   "<html><head><title>%{status} %{reason}</title></head>\n"
                   "<body><h1>%{status} %{reason}</h1>\n"
                   "<p>%{error}.</p>\n"
                   "<p><small>%{server_name}, transaction %{id}</small></p>\n"
                   "</body></html>\n"),
    [PAGE_JSON] = ("{\"type\":\"about:blank\",\"title\":\"%{reason}\",\"status\":%{status},"
                   "\"detail\":\"%{error}\",\"instance\":\"urn:retort:%{id}\"}\n"),
    [PAGE_TEXT] = "%{status} %{reason}\n\n%{error}.\n\n%{server_name}, transaction %{id}\n",
};

static void make_own_pages(struct error_page_settings *page) {
    char error[500];
    page->files = xcalloc(PAGE_TYPES, sizeof *page->files);
    for (int i = 0; i < PAGE_TYPES; i++) {
        struct text_template *text = text_template_new(own_texts[i], error, sizeof error);
        ASSERT(text != NULL);
        page->files[page->file_count++] =
            (struct error_page_file){.type = (enum page_type)i, .text = text};
    }
}

static bool load_error_pages(struct load *load, struct pages_settings *pages) {
    size_t i = 0;
    make_own_pages(&pages->own_pages);
    pages->error_page_count = document_section_count(load->document, "error_page");
    pages->error_pages = xcalloc(pages->error_page_count + 1, sizeof *pages->error_pages);
    DOCUMENT_FOR_EACH_SECTION (section, load->document, "error_page")
        if (!load_error_page(load, section, pages, &pages->error_pages[i++]))
            return false;
    return true;
}

static void release_error_page(struct error_page_settings *page) {
    for (size_t i = 0; i < page->file_count; i++) {
        text_template_free(&page->files[i].text);
        free(page->files[i].language);
    }
    free(page->files);
    load_release_values("error_page", page);
}

/* The characters of these texts need no escape in a string of JavaScript. */
static char *write_pac(const struct pages_settings *pages) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    fputs("function FindProxyForURL(url, host) {\n"
          "    var direct = [",
          out);
    char **first = pages->pac.direct;
    for (char **domain = first; strcmp(*first, "none") != 0 && *domain != NULL; domain++)
        fprintf(out, "%s\"%s\"", domain == first ? "" : ", ", *domain);
    fprintf(out,
            "];\n"
            "    host = host.toLowerCase();\n"
            "    if (host.indexOf(\".\") < 0 && host.indexOf(\":\") < 0)\n"
            "        return \"DIRECT\";\n"
            "    for (var i = 0; i < direct.length; i++) {\n"
            "        var end = \".\" + direct[i].toLowerCase();\n"
            "        if ((\".\" + host).slice(-end.length) === end)\n"
            "            return \"DIRECT\";\n"
            "    }\n"
            "    return \"%s\";\n"
            "}\n",
            pages->pac.proxy);
    fclose(out);
    return text;
}

static bool load_pac(struct load *load, struct pages_settings *pages) {
    const struct document_section *section = document_section(load->document, "pac", NULL);
    char reason[CONFIG_FILE_ERROR] = "";
    struct config_file_id id;
    size_t length;
    if (!load_values(load, section, "pac", pages) || section == NULL)
        return section == NULL;
    if (pages->pac.file != NULL && pages->pac.proxy != NULL)
        return load_fail(load, load_line_of(section, "file"),
                         "pac: file and proxy exclude each other; remove one of them");
    if (pages->pac.file == NULL && pages->pac.proxy == NULL)
        return true;
    if (pages->pac.file == NULL) {
        pages->pac.text = write_pac(pages);
        return true;
    }
    if (load->without_files)
        return true;
    char *path = config_file_beside(document_file(load->document, load_line_of(section, "file")),
                                    pages->pac.file);
    pages->pac.text = config_file_read(path, PAC_BYTES, &length, &id, reason);
    free(path);
    return pages->pac.text != NULL ||
           load_fail(load, load_line_of(section, "file"), "file: %s: %s", pages->pac.file, reason);
}

static bool pages_load(struct load *load, void *mine) {
    struct pages_settings *pages = mine;
    bool good = load_error_pages(load, pages) && load_pac(load, pages);
    load->settings->has_pac = pages->pac.text != NULL;
    return good;
}

static void pages_release(void *mine) {
    struct pages_settings *pages = mine;
    for (size_t i = 0; i < pages->error_page_count; i++)
        release_error_page(&pages->error_pages[i]);
    release_error_page(&pages->own_pages);
    free(pages->error_pages);
    free(pages->pac.text);
}

static const struct section_place places[] = {
    {.section = "error_page",
     SECTION_LIST(struct pages_settings, error_pages, error_page_count, struct error_page_settings),
     SECTION_RULE(RULE_ERROR_PAGE, struct error_page_settings)},
    {.section = NULL},
};

const struct part_settings pages_part_settings = {
    .options = rows,
    .sections = sections,
    .places = places,
    .size = sizeof(struct pages_settings),
    .load_rules = pages_load,
    .release = pages_release,
};
