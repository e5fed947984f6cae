"""Reads SQL statements from the Rust sources, and expands the macros that they are composed of.

Supports what the statements use: string literals, `concat!`, and `macro_rules!` with one arm, whose parameters are
`$name:kind` and a final `$($name:tt)*`. Macros are looked up in the same file, in `subscription_row.rs` and `table.rs` beside it, and in `db/`.
"""

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "crates/server/src"
TOKEN = re.compile(r'\s+|//[^\n]*|(?P<token>"(?:\\.|[^"\\])*"|\$?\w+|::|.)', re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}"}


def tokens(text):
    return [match.group("token") for match in TOKEN.finditer(text) if match.group("token")]


def group(code, start):
    """Returns the tokens between the bracket at `start` and its closing bracket, and the position after it."""
    depth = 0
    for position in range(start, len(code)):
        if code[position] in CLOSING:
            depth += 1
        elif code[position] in CLOSING.values():
            depth -= 1
            if not depth:
                return code[start + 1 : position], position + 1
    raise SystemExit("unbalanced brackets: " + " ".join(code[start : start + 20]))


def arguments(code):
    """Splits tokens at the commas outside of brackets."""
    parts, position = [[]], 0
    while position < len(code):
        if code[position] in CLOSING:
            _, end = group(code, position)
            parts[-1] += code[position:end]
            position = end
            continue
        if code[position] == ",":
            parts.append([])
        else:
            parts[-1].append(code[position])
        position += 1
    return [part for part in parts if part]


def macros(path):
    """Returns the macros that a file can use: {name: (parameters, body)}."""
    found = {}
    for file in [*sorted((SOURCE / "db").glob("*.rs")), path.with_name("subscription_row.rs"), path.with_name("table.rs"), path]:
        code = tokens(file.read_text()) if file.exists() else []
        for position, token in enumerate(code):
            if token == "macro_rules":
                arm, _ = group(code, position + 3)
                parameters, end = group(arm, 0)
                body, _ = group(arm, end + 2)
                found[code[position + 2]] = (parameters, body)
    return found


def expand(name, given, known):
    """Returns the body of a macro with its parameters replaced."""
    parameters, body = known[name]
    values, rest = {}, given
    for parameter in arguments(parameters):
        if parameter[0] == "$":
            values["repeated"] = rest
            break
        first, *_ = arguments(rest)
        values[parameter[0]] = first
        rest = rest[len(first) + 1 :]
    code, position = [], 0
    while position < len(body):
        if body[position : position + 2] == ["$", "("]:
            _, position = group(body, position + 1)
            position += 1  # the asterisk
            code += values["repeated"]
        else:
            code += values.get(body[position], [body[position]])
            position += 1
    return code


def evaluate(code, known):
    """Returns the text of an expression that consists of string literals and macros."""
    if len(code) == 1 and code[0].startswith('"'):
        return code[0][1:-1]
    if code[1:2] == ["!"]:
        given, end = group(code, 2)
        if end == len(code):
            if code[0] == "concat":
                return "".join(evaluate(part, known) for part in arguments(given))
            return evaluate(expand(code[0], given, known), known)
    raise SystemExit("cannot evaluate: " + " ".join(code))


def statement(path, name):
    """Returns the text of `static NAME: Sql`, or for NAME.FIELD that of a field of a static."""
    path = SOURCE / path
    name, _, field = name.partition(".")
    known, code = macros(path), tokens(path.read_text())
    for position, token in enumerate(code):
        if token == "static" and code[position + 1] == name:
            start = code.index("=", position) + 1
            code = code[start : code.index(";", start)]
            break
    else:
        raise SystemExit(f"{path} has no static {name}")
    if field:
        while code[1:2] == ["!"]:
            code = expand(code[0], group(code, 2)[0], known)
        code = code[next(index for index in range(len(code)) if code[index : index + 2] == [field, ":"]) :]
    start = next(index for index in range(len(code)) if code[index : index + 3] == ["Sql", "::", "new"])
    text, _ = group(code, start + 3)
    return evaluate([token for part in arguments(text) for token in part], known)
