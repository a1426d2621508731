#!/usr/bin/env python3
"""Holds what the comments of headers say to the API below them.

    headers.py [TOP-OF-THE-TREE]

Each header opens with a comment, with an example if it declares three functions or more. Examples are the lines of comments
that are indented by five blanks or more. In these

- a function that the tree declares is called with as many arguments as it takes, and with the structs that it takes; "..."
  stands for any,
- a function or a constant whose name begins with the same word as others of the tree do exists,
- a struct that is named exists, and has the members that are asked of it: of variables that the example declares, of what a
  function of the tree returned, and behind "->" anywhere.

Prints FILE:LINE: what does not fit. One check a header.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from c_source import KEYWORDS, Declarations, arguments, closing, comments, files, read  # noqa: E402

# Structs of programs that examples make up.
INVENTED = {"feed", "pipe", "upper"}


# A header that declares fewer functions may do without an example.
FEW = 3


class Example:
    """One block of indented lines: its text with blanks in place of strings, and where it stands."""

    def __init__(self, path, lines):
        self.path, self.first = path, lines[0][0]
        self.text = "\n".join(text for _, text in lines)
        self.code = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', lambda found: '"' + "s" * (len(found.group(0)) - 2) + '"', self.text)

    def line(self, at):
        return self.first + self.code.count("\n", 0, at)


def examples(path, number, comment):
    """The blocks of indented lines of a comment that begins at that line."""
    block = []
    for offset, line in enumerate(comment.split("\n")):
        text = re.sub(r"^\s*(/\*+|\*/|\*)", "", line).rstrip()
        text = re.sub(r"\s*\*/$", "", text)
        if re.match(r" {5,}\S", text):
            block.append((number + offset, text))
        elif text.strip() and block:
            yield Example(path, block)
            block = []
        elif block:
            block.append((number + offset, ""))
    if block:
        yield Example(path, block)


class Checker:
    def __init__(self, top):
        self.top, self.known = top, Declarations(top, files(top, (".h", ".c", ".def")))
        self.found = []
        self.first_words = {kind: {name.split("_")[0] for name in names if "_" in name.strip("_")}
                            for kind, names in (("function", self.known.functions), ("constant", self.known.constants))}

    def say(self, example, at, text):
        self.found.append((example.path, example.line(at), text))

    def check_calls(self, example):
        for match in re.finditer(r"(?<![\w.>])([A-Za-z_]\w*)\(", example.code):
            name, end = match.group(1), closing(example.code, match.end() - 1)
            if name in KEYWORDS:
                continue
            if name not in self.known.functions:
                if self.is_of_the_tree(name, "function") and name not in self.known.private | self.known.all_members \
                        and not self.is_declared_here(example, name):
                    self.say(example, match.start(), "%s is not declared anywhere" % name)
                continue
            given = example.code[match.end():end] if end >= 0 else "..."
            if "..." in given or re.search(r"\b(?:struct \w+ \*?\w+|const \w+ \w+)\b", given):
                continue  # any; or a declaration
            count = len(arguments(given))
            if count == 0 and example.code[end + 1:end + 2] != ";":
                continue  # its name, in a sentence
            sizes = self.known.functions[name]
            if not any(least <= count and (most is None or count <= most) for least, most in sizes):
                wanted = " or ".join(sorted("%d" % least if most else "%d or more" % least for least, most in sizes))
                self.say(example, match.start(), "%s is given %d arguments, and takes %s" % (name, count, wanted))
            self.check_kinds(example, match.start(), name, arguments(given))

    def check_kinds(self, example, at, function, given):
        variables = self.tags_of_variables(example)
        tags = [self.tag_of(argument, variables) for argument in given]
        unfit = [next(((tag, wanted) for tag, wanted in zip(tags, takes) if tag and wanted and tag != wanted), None)
                 for takes in self.known.takes.get(function, [])]
        if unfit and all(unfit):
            self.say(example, at, "%s is given a struct %s, and takes a struct %s" % ((function,) + unfit[0]))

    def tag_of(self, expression, variables):
        """The tag of the struct that a variable, or a member of one, is or points to; None when that is not known."""
        steps = re.fullmatch(r"&?(\w+)((?:(?:->|\.)\w+)*)", expression)
        if not steps:
            return None
        tag = variables.get(steps.group(1))
        if steps.group(2) and not tag and steps.group(1) in self.known.members:
            tag = steps.group(1)  # as variables are named in this project
        for member in re.findall(r"\w+", steps.group(2)):
            tag = self.known.member_tags.get((tag, member))
        return tag

    def is_of_the_tree(self, name, kind):
        """Does it begin as others of the tree do? Then it is to be one of them, and not of a library or made up."""
        return "_" in name and name.split("_")[0] in self.first_words[kind]

    @staticmethod
    def is_declared_here(example, name):
        """A function that the example itself defines, or hands over as its own callback."""
        return re.search(r"(?:static|void|int|bool)\s+\**%s\(" % name, example.code)

    def tags_of_variables(self, example):
        """What the example declares, and what it gets of functions that return a struct: variable -> tag."""
        tags = {}
        for tag, names in re.findall(r"\bstruct (\w+) \**((?:\w+(?:\[\w*\])?)(?:, \**\w+)*)(?= =|[;,)])", example.code):
            for name in re.findall(r"\w+", re.sub(r"\[.*?\]", "", names)):
                tags[name] = tag
        for name, function in re.findall(r"\b(\w+) = (\w+)\(", example.code):
            if function in self.known.returns:
                tags.setdefault(name, self.known.returns[function])
        return tags

    def check_members(self, example):
        tags = self.tags_of_variables(example)
        for name, tag in tags.items():
            if tag not in self.known.tags and tag not in INVENTED:
                self.say(example, example.code.index(name), "there is no struct %s" % tag)
        for match in re.finditer(r"(?<![\w.>/\"-])(\w+)((?:(?:->|\.)[a-z_]\w*)+)(?![\w/]|\.\w|\()(?<!\.h)", example.code):
            base, steps = match.group(1), re.findall(r"(->|\.)(\w+)", match.group(2))
            if base not in tags and "->" not in match.group(2):
                continue
            tag = tags.get(base)
            for _, member in steps:
                members = self.known.members.get(tag)
                if members and member not in members:
                    self.say(example, match.start(), "struct %s has no member %s" % (tag, member))
                    break
                if not members and member not in self.known.all_members and member not in self.known.listed:
                    self.say(example, match.start(), "no struct has a member %s" % member)
                    break
                tag = self.known.member_tags.get((tag, member))
        for match in re.finditer(r"\bstruct (\w+) \w+ = \{", example.code):
            end = closing(example.code, match.end() - 1)
            members = self.known.members.get(match.group(1))
            for member in re.findall(r"(?:^|[{,\s])\.(\w+)", example.code[match.end():end]):
                if members and member not in members:
                    self.say(example, match.start(), "struct %s has no member %s" % (match.group(1), member))

    def check_constants(self, example):
        for match in re.finditer(r"(?<![\w./%-])([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?![\w./*(-])", example.code):
            name = match.group(1)
            if self.is_of_the_tree(name, "constant") and name not in self.known.constants and not self.is_pasted(name):
                self.say(example, match.start(), "there is no constant %s" % name)

    def is_pasted(self, name):
        return any(name.startswith(front) and name[len(front):] in self.known.listed
                   for front in self.known.listed if front.endswith("_"))

    def check_header(self, path):
        text, own = read(self.top, path), Declarations(self.top, [path])
        if not text.startswith("/*"):
            self.found.append((path, 1, "does not open with a comment that says what it is for"))
            return
        for number, comment in comments(text):
            blocks = list(examples(path, number, comment))
            if number == 1 and not blocks and len(own.functions) >= FEW:
                self.found.append((path, 1, "declares %d functions, and its opening comment has no example" % len(own.functions)))
            for example in blocks:
                self.check_calls(example)
                self.check_members(example)
                self.check_constants(example)


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    checker = Checker(top)
    headers = list(files(top, (".h",)))
    for path in headers:
        checker.check_header(path)
    bad = {path for path, _, _ in checker.found}
    for path, line, text in checker.found:
        print("%s:%d: %s" % (path, line, text))
    print("%d passed, %d failed" % (len(headers) - len(bad), len(bad)))
    return 1 if bad or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
