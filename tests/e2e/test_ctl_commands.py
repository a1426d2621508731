"""retortctl's table of commands, and what is made from it: help, the manual, completion, the check of arguments."""

import os
import re
import shutil
import socket
import subprocess
import threading

from harness.checks import Skip, contains, equal, lacks, true

TOP = os.path.join(os.path.dirname(__file__), "../..")


def ctl(lab, *words, directory=None, given=None, environment=None):
    return subprocess.run([lab.built("proxy/retortctl"), *words], capture_output=True, text=True, timeout=20 * lab.patience,
                          check=False, cwd=directory, input=given, env={**os.environ, **lab.environment(), **(environment or {})})


def helped(lab, *words):
    done = ctl(lab, *words, "--help")
    equal((done.returncode, done.stderr), (0, ""), f"{words} --help")
    return done.stdout


def named(text):
    """What a help lists below "Commands:"."""
    part = re.search(r"^Commands:\n((?:  .*\n)+)", text, flags=re.M)
    return re.findall(r"^  ([a-z-]+) ", part[1], flags=re.M) if part else []


KNOWN = {}


def all_commands(lab):
    """Words and help of each command that can run, as the helps tell of them. They are asked once."""
    found = KNOWN
    if found:
        return found
    for first in named(helped(lab)):
        text = helped(lab, first)
        if "COMMAND [ARGUMENTS]" not in text.split("\n")[0]:
            found[(first,)] = text
        for second in named(text):
            found[(first, second)] = helped(lab, first, second)
    true(len(found) > 30, f"{found.keys()}")
    return found


def in_tree(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def test_each_help_is_a_screen(lab):
    for words, text in [((), helped(lab)), (("cache",), helped(lab, "cache")), *all_commands(lab).items()]:
        lines = text.splitlines()
        true(len(lines) <= (24 if words else 44), f"{words}: {len(lines)} lines")
        equal([line for line in lines if len(line) > 80], [], f"{words}: lines that are too long")
        true(lines[0].startswith("Usage: retortctl "), f"{words}: {lines[0]}")
        true(words == ("cache",) or "Exit status: " in text, f"{words}: exit status")


def test_manual_and_completion_are_those_of_the_table(lab):
    manual = in_tree("docs/retortctl.1")
    part = manual.split('.\\" commands: begin\n')[1].split('.\\" commands: end\n')[0]
    equal(part == ctl(lab, "--print-manual").stdout, True, 'docs/retortctl.1 is current; else: make docs')
    for shell, name in (("bash", "retortctl"), ("zsh", "_retortctl"), ("fish", "retortctl.fish")):
        equal(in_tree("conf/completion", name) == ctl(lab, "completion", shell).stdout, True,
              f"conf/completion/{name} is current; else: make docs")
    for words in all_commands(lab):
        contains(part, f"\\fB{' '.join(words)}\\fR", "the manual")


def complete(lab, lines):
    """What bash offers for the last word of each line. A line ends with a dot behind that word."""
    script = ('source "$1"; while read -r line; do line=${line%.}; read -ra COMP_WORDS <<<"$line"; '
              '[[ $line == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); '
              '_retortctl; echo "${COMPREPLY[@]}"; done')
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(TOP, "conf/completion/retortctl")],
                          input="".join(line + ".\n" for line in lines), capture_output=True, text=True,
                          timeout=20 * lab.patience, check=True, cwd=os.path.join(TOP, "conf"))
    equal(done.stderr, "", "messages of bash")
    return [line.split() for line in done.stdout.split("\n")[:-1]]


def test_bash_completes(lab):
    cases = (("retortctl cache pu", ["purge"]), ("retortctl -s x cache unp", ["unpin"]),
             ("retortctl com", ["completion"]), ("retortctl completion f", ["fish"]),
             ("retortctl cache purge --re", ["--regex"]), ("retortctl cache purge --regex x --s", ["--soft"]),
             ("retortctl cache purge --regex ", []), ("retortctl icap replay retort.c", ["retort.conf"]),
             ("retortctl icap replay x --ca retort.c", ["retort.conf"]),
             ("retortctl adlist test x --type sc", ["script"]), ("retortctl adlist test x -t sc", ["script"]),
             ("retortctl limits --section x --cl", ["--client"]), ("retortctl --he", ["--helperd", "--help"]),
             ("retortctl --socket retort.c", ["retort.conf"]), ("retortctl nothing ", []),
             ("retortctl --ca-file x --key y cache pu", ["purge"]))
    for (line, expected), offered in zip(cases, complete(lab, [line for line, _ in cases]), strict=True):
        equal(offered, expected, line)
    lines = []
    for words, text in all_commands(lab).items():
        lines += ["retortctl " + " ".join(words)]
        lines += [f"retortctl {' '.join(words)} {option}" for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, flags=re.M)]
    for line, offered in zip(lines, complete(lab, lines), strict=True):
        contains(offered, line.split()[-1], line)


# What every shell offers for these; the words of fish, of which it is told no options before the command, are the same.
SHELL_CASES = (("retortctl se", {"services", "set", "settings"}), ("retortctl cache pu", {"purge"}), ("retortctl completion f", {"fish"}),
               ("retortctl cache purge --re", {"--regex"}), ("retortctl helpers re", {"reload", "renice", "resize"}),
               ("retortctl drain x", set()))


def shell(lab, name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"there is no {name}")
    folder = lab.path("path")
    os.makedirs(folder, exist_ok=True)
    if not os.path.lexists(os.path.join(folder, "retortctl")):
        os.symlink(lab.built("proxy/retortctl"), os.path.join(folder, "retortctl"))
    return path, {**os.environ, **lab.environment(), "PATH": folder + ":" + os.environ["PATH"], "HOME": lab.path(""), "TERM": "xterm"}


def test_fish_completes(lab):
    path, environment = shell(lab, "fish")
    script = f"source {TOP}/conf/completion/retortctl.fish; " + "; echo ----; ".join(f"complete -C '{line}'" for line, _ in SHELL_CASES)
    done = subprocess.run([path, "--no-config", "-c", script], capture_output=True, text=True, timeout=30 * lab.patience, check=True,
                          env=environment, cwd=lab.path(""))
    equal(done.stderr, "", "messages of fish")
    for (line, expected), offered in zip(SHELL_CASES, done.stdout.split("----\n"), strict=True):
        typed = line.split()[-1]
        words = {row.split("\t")[0] for row in offered.splitlines() if row}
        # fish 4 also offers words that have the letters in this order somewhere.
        equal({word for word in words if word.startswith(typed) or not re.search(".*".join(typed), word)}, expected, line)


def zsh_offers(lab, path, environment, lines):
    """What a zsh at a terminal lists: compadd, which all completions end in, says what it would add."""
    script = (f'fpath=({TOP}/conf/completion $fpath); autoload -Uz compinit; compinit -u -D; '
              'zmodload zsh/zpty; zpty z zsh -f -i; '
              'zpty -w z "fpath=(' + TOP + '/conf/completion \\$fpath); autoload -Uz compinit; compinit -u -D; PS1=; '
              'bindkey \'^I\' complete-word; zstyle \':completion:*\' list-grouped false; '
              'compadd() { [[ \\${@[(I)-O|-A|-D]} -gt 0 ]] && { builtin compadd \\"\\$@\\"; return }; local -a hits; '
              'builtin compadd -O hits \\"\\$@\\"; print -r -- \\"<\\${(j:|:)hits}>\\" >>offers; }; print READY"; '
              'zpty -r z seen "*READY*READY*"; '
              + "".join(f"print -r -- '== {line}' >>offers; zpty -w -n z $'{line}\\t'; sleep 0.4; zpty -w -n z $'\\C-u'; sleep 0.1; " for line in lines)
              + "zpty -d z")
    subprocess.run([path, "-f", "-c", script], capture_output=True, text=True, timeout=60 * lab.patience, check=False, env=environment,
                   cwd=lab.path(""))
    with open(lab.path("offers"), encoding="utf-8") as offers:
        parts = offers.read().split("== ")[1:]
    return {part.split("\n")[0]: {word for found in re.findall("<(.*)>", part) for word in found.split("|") if word} for part in parts}


def test_zsh_completes(lab):
    path, environment = shell(lab, "zsh")
    offered = zsh_offers(lab, path, environment, [line for line, _ in SHELL_CASES])
    for line, expected in SHELL_CASES:
        equal(offered[line], expected, line)


def arguments_of(text):
    """As many arguments as a command needs; one that takes one of several words, gets the first one."""
    usage = re.sub(r"\[.*?\]\]?", "", text.split("\n")[0].replace("[-s WHERE] ", "")).split()[2:]
    return [re.sub(r"\.\.\.$", "", word).split("|")[0] for word in usage if word.upper() == word or "|" in word]


def test_each_command_and_option_is_known_to_its_function(lab):
    """Nobody listens there; so what is done is wrong only because of that, or of a value."""
    sockets = ("-s", lab.path("nobody"), "-H", lab.path("nobody"))
    for words, text in all_commands(lab).items():
        options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)( ?)([^ ]*)", text, flags=re.M)
        given = [word for name, blank, value in options for word in ((name, "3") if re.match("[A-Z]", value) else (name,))]
        for extra in ((), given)[bool(given):]:
            done = ctl(lab, *sockets, *words, *extra, *arguments_of(text), directory=lab.path(""), given="")
            true(done.returncode in (0, 1, 2), f"{words} {extra}: {done}")
            for complaint in ("no command", "not an option", "unrecognized", "no function", "one argument too many", "write \""):
                lacks(done.stderr if words != ("dns", "clear") else "", complaint, f"{words} {extra}")


def test_wrong_words_are_refused_before_anything_is_done(lab):
    for words, complaint in ((("cache", "show"), 'write "retortctl cache show URL"'), (("cache",), "with one of: show get"),
                             (("cache", "frob"), 'no command "cache frob"'), (("cache", "purge", "--al"), "--al is not an option"),
                             (("cache", "bans", "--limit", "3"), "--limit is not an option"),
                             (("cache", "purge", "--host"), "needs a value"), (("cache", "purge", "--all=yes"), "has no value"),
                             (("drain", "now"), 'takes no argument "now"'), (("reload", "--frob"), "--frob"),
                             (("ca", "create", "x"), 'takes no argument "x"'), (("completion", "csh"), "write bash, zsh or fish"),
                             (("helpers", "renice", "gray"), "write \"retortctl helpers renice POOL NICE\""),
                             (("services", "bump"), "services bump NAME"), (("ca", "show", "--help", "--frob"), None)):
        done = ctl(lab, "-s", lab.path("nobody"), *words)
        equal(done.returncode, 2 if complaint else 0, f"{words}: {done.stderr}")
        contains(done.stderr, complaint or "", f"{words}")
        true(done.stderr.count("\n") <= 1, f"{words}: {done.stderr}")


def test_values_have_two_forms(lab):
    for words in (("ca", "create", "--certificate=a.pem", "--key", "a.key", "--name=a=b"),
                  ("ca", "--json", "show", "--key=a.key", "--certificate=a.pem")):
        done = ctl(lab, *words, directory=lab.path(""))
        equal(done.returncode, 0, f"{words}: {done.stderr}")
        contains(done.stdout, "a=b", "the name")


def answering(lab, *answers):
    """The path of a socket that gives each connection the next of the answers, and keeps the last connection open."""
    path = lab.path(lab.unique("pretended") + ".sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    kept = []

    def run():
        for number, answer in enumerate(answers):
            peer = listener.accept()[0]
            peer.recv(65536)
            try:
                peer.sendall(answer)
            except OSError:
                pass
            if number < len(answers) - 1:
                peer.close()
            else:
                kept.append(peer)
    threading.Thread(target=run, daemon=True).start()
    return path


def json_answer(text):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(text), text.encode())


def test_a_list_that_is_none(lab):
    """What is no list of objects is no empty list."""
    for text in ("<html>", "[]", "{}", '{"objects": 1, "next": null}', '{"objects": []}', '{"objects": [], "next": 1.5}'):
        for more in ((), ("--json",)):
            done = ctl(lab, "-s", answering(lab, json_answer(text), b""), *more, "cache", "list")
            equal((done.returncode, done.stdout), (1, ""), f"{text} {more}")
            contains(done.stderr, "no list of objects" if more else "is not a text", f"{text} {more}")


def test_what_can_not_be_written_is_not_waited_for(lab):
    """The rest of the answer never comes."""
    path = answering(lab, b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + bytes(1 << 20))
    with open("/dev/full", "wb") as full:
        done = subprocess.run([lab.built("proxy/retortctl"), "-s", path, "cache", "get", "http://a/"], stdout=full, stderr=subprocess.PIPE,
                              timeout=15 * lab.patience, check=False)
    equal(done.returncode, 1, "exit status")
    contains(done.stderr.decode(), "can't be written: No space left on device", "reason")
