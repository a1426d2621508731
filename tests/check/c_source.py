"""What the checks need to know of C files, read with regular expressions: comments, declarations, members, constants.

It reads this project's sources, which clang-format has laid out, not any C: a function begins in the first column, and macros that
make names do so from lists in .def files.
"""
import os
import re

ROOMS = ("common", "proxy", "icap-services")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|_Noreturn|_Alignas\([^()]*\)")
KEYWORDS = frozenset("if while for switch return sizeof do else case goto alignof offsetof defined _Static_assert typeof".split())


def files(top, suffixes):
    """The paths of the sources below TOP that end so, relative to it."""
    for room in ROOMS:
        for folder, folders, names in os.walk(os.path.join(top, room)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(folder, name), top)


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The text with blanks in place of comments; lines keep their numbers. Strings are emptied."""
    def replace(match):
        found = match.group(0)
        return blank(found) if found[0] == "/" else found[0] + " " * (len(found) - 2) + found[0]
    return COMMENT.sub(replace, text)


def comments(text):
    """(line number, text) of each /* comment */."""
    for match in COMMENT.finditer(text):
        if match.group(0).startswith("/*"):
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


def closing(text, at):
    """Where the bracket that opens at AT closes; -1 when it does not."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return -1


def arguments(text):
    """What stands between commas that no bracket encloses; none for an empty list."""
    found, depth, word = [], 0, ""
    for char in text:
        if char == "," and depth == 0:
            found.append(word.strip())
            word = ""
            continue
        depth += (char in "([{") - (char in ")]}")
        word += char
    return [] if not found and word.strip() in ("", "void") else found + [word.strip()]


def flat(code):
    """The code with the content of all braces gone, but for those of extern "C": declarations alone."""
    result, depth = [], 0
    for char in code:
        depth -= char == "}"
        result.append(char if depth == 0 else "\n" if char == "\n" else " ")
        depth += char == "{"
    return "".join(result)


class Declarations:
    """What the sources of a tree declare.

    functions    of headers: name -> set of (least, most) numbers of arguments; most is None for those with "..."
    takes        the same -> lists, one a declaration: for each parameter the tag of the struct that it is or points to, or None
    private      names of functions that stand in .c files only
    members      tag of a struct or a union -> set of its members' names, those of unnamed inner ones included
    returns      name of a function -> tag of the struct that it returns (a pointer to), where it returns one
    member_tags  (tag, member) -> tag of the struct that the member is or points to
    """

    def __init__(self, top, paths):
        self.functions, self.takes, self.members, self.returns, self.member_tags = {}, {}, {}, {}, {}
        self.private, self.all_members, self.constants, self.listed, self.tags = set(), set(), set(), set(), set()
        for path in paths:
            text = read(top, path)
            if path.endswith(".def"):
                self.listed.update(re.findall(r"\w+", text))
                continue
            self.read_file(without_comments(text), path.endswith(".h"))
        self.private -= set(self.functions)

    def read_file(self, code, is_header):
        self.read_macros(code)
        code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda found: blank(found.group(0)), code, flags=re.M)
        code = ATTRIBUTE.sub("", code)
        for match in re.finditer(r"\b(struct|union|enum)\s+(\w+)?\s*\{", code):
            end = closing(code, match.end() - 1)
            body = code[match.end():end]
            if match.group(1) == "enum":
                self.constants.update(re.findall(r"(?:^|,)\s*([A-Z_a-z]\w*)", flat(body)))
                self.tags.add(match.group(2))
            else:
                self.read_members(match.group(2), body)
        self.tags.update(re.findall(r"\b(?:struct|union|enum)\s+(\w+)", code))
        self.read_functions(flat(code), is_header)

    def read_macros(self, code):
        for name, parameters in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?", code, re.M):
            self.constants.add(name)
            if parameters:
                names = arguments(parameters[1:-1])
                self.add_function(name, names, names and names[-1].endswith("..."))
        # What a macro pastes together may be any word with that beginning and a word of a list.
        self.listed.update(re.findall(r"\b([A-Z]\w*_)##", code))

    def add_function(self, name, parameters, is_open):
        least = len(parameters) - (1 if is_open else 0)
        self.functions.setdefault(name, set()).add((least, None if is_open else len(parameters)))

    def read_members(self, tag, body):
        own = self.members.setdefault(tag, set()) if tag else set()
        inner = re.sub(r"\b(?:struct|union)\s*\{", "{", body)
        for piece in re.split(r"[;{}]", inner):
            pointer = re.search(r"\(\*(?:const )?(\w+)(?:\[[^]]*\])?\)\s*\(", piece)
            if pointer:
                own.add(pointer.group(1))
                continue
            kind = re.match(r"\s*(?:const\s+)?struct\s+(\w+)", piece)
            for word in re.sub(r"\[[^]]*\]|:\s*\w+", "", piece).split(","):
                name = re.search(r"(\w+)\s*$", word)
                if name:
                    own.add(name.group(1))
                    if kind and tag:
                        self.member_tags[tag, name.group(1)] = kind.group(1)
        self.all_members |= own

    def read_functions(self, code, is_header):
        for match in re.finditer(r"^(?!typedef|\s)((?:[\w*]+\s+|\*+)+\**)(\w+)\(", code, re.M):
            end = closing(code, match.end() - 1)
            name, behind = match.group(2), code[end + 1:end + 2000].lstrip()[:1]
            if end < 0 or name in KEYWORDS or behind not in (";", "{", ","):
                continue
            if not is_header:
                self.private.add(name)
                continue
            parameters = arguments(code[match.end():end])
            is_open = bool(parameters) and parameters[-1] == "..."
            self.add_function(name, parameters, is_open)
            kinds = [re.match(r"(?:const )?struct (\w+)", parameter) for parameter in parameters]
            self.takes.setdefault(name, []).append([kind.group(1) if kind else None for kind in kinds])
            kind = re.match(r"(?:static |inline |extern |const )*struct (\w+)", match.group(1))
            if kind:
                self.returns[name] = kind.group(1)
        self.functions.update((name, {(0, None)}) for name in re.findall(r"^typedef[^;]*\(\*?(\w+)\)\(", code, re.M))
