"""The part of CEL (Common Expression Language) that deploy/kubernetes uses, evaluated on Python values.

`evaluate(text, names)` raises Wrong if the text does not parse, uses a function that is not implemented here, or fails as
in CEL: a missing key, a condition that is not a bool, an operator between different types. Implemented are && || ! ?: in,
comparisons, + -, members, calls, indices, lists, maps, messages, and the macros has, all, exists, filter and map.
"""

import re

TOKEN = re.compile(r"""\s*(?:(?P<number>\d+)|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_]\w*)
                       |(?P<mark>&&|\|\||[=!<>]=|[-+!<>?:.,()\[\]{}]))""", re.VERBOSE)
MACROS = ("all", "exists", "filter", "map")
COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


class Wrong(Exception):
    pass


def tokens(text):
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Wrong(f"no CEL at: {text[at:at + 30]}")
        found.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return found


class Parser:
    """Parses tokens, by precedence, into a function of the names' values."""

    def __init__(self, text):
        self.left = tokens(text) + [("end", "")]

    def whole(self):
        made = self.choice()
        if self.left[0][0] != "end":
            raise Wrong(f"unexpected {self.left[0][1]}")
        return made

    def at(self, *marks):
        return self.left[0][1] if self.left[0][0] in ("mark", "name") and self.left[0][1] in marks else None

    def take(self, *marks):
        if not self.at(*marks):
            raise Wrong(f"{' or '.join(marks)} expected before {self.left[0][1] or 'the end'}")
        return self.left.pop(0)[1]

    def name(self):
        kind, text = self.left.pop(0)
        if kind != "name":
            raise Wrong(f"a name expected in place of {text or 'the end'}")
        return text

    def choice(self):
        condition = self.either()
        if not self.at("?"):
            return condition
        self.take("?")
        yes = self.either()
        self.take(":")
        no = self.choice()
        return lambda names: yes(names) if boolean(condition(names)) else no(names)

    def either(self):
        parts = [self.both()]
        while self.at("||"):
            self.take("||")
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else lambda names: any(boolean(part(names)) for part in parts)

    def both(self):
        parts = [self.relation()]
        while self.at("&&"):
            self.take("&&")
            parts.append(self.relation())
        return parts[0] if len(parts) == 1 else lambda names: all(boolean(part(names)) for part in parts)

    def relation(self):
        first = self.sum()
        mark = self.at("==", "!=", "in", *COMPARE)
        if not mark:
            return first
        self.take(mark)
        second = self.sum()
        return lambda names: relate(mark, first(names), second(names))

    def sum(self):
        made = self.unary()
        while self.at("+"):
            self.take("+")
            made = (lambda first, second: lambda names: add(first(names), second(names)))(made, self.unary())
        return made

    def unary(self):
        if self.at("!"):
            self.take("!")
            inner = self.unary()
            return lambda names: not boolean(inner(names))
        if self.at("-"):
            self.take("-")
            inner = self.unary()
            return lambda names: -inner(names)
        return self.member()

    def member(self):
        made = self.primary()
        while mark := self.at(".", "["):
            self.take(mark)
            if mark == "[":
                made = (lambda of, key: lambda names: index(of(names), key(names)))(made, self.choice())
                self.take("]")
                continue
            name = self.name()
            if not self.at("("):
                made = (lambda of, key: lambda names: index(of(names), key))(made, name)
            elif name in MACROS:
                made = self.macro(made, name)
            else:
                made = (lambda of, call, given: lambda names: method(of(names), call, [one(names) for one in given]))(
                    made, name, self.arguments())
        return made

    def macro(self, of, name):
        self.take("(")
        variable = self.name()
        self.take(",")
        body = self.choice()
        self.take(")")

        def run(names):
            each = list(of(names))
            if name == "map":
                return [body({**names, variable: one}) for one in each]
            chosen = [one for one in each if boolean(body({**names, variable: one}))]
            return chosen if name == "filter" else bool(chosen) if name == "exists" else len(chosen) == len(each)
        return run

    def arguments(self):
        given = []
        self.take("(")
        while not self.at(")"):
            given.append(self.choice())
            if not self.at(")"):
                self.take(",")
        self.take(")")
        return given

    def primary(self):
        kind, text = self.left[0]
        if self.at("("):
            self.take("(")
            made = self.choice()
            self.take(")")
            return made
        if self.at("["):
            return self.list_of()
        if self.at("{"):
            return self.map_of()
        self.left.pop(0)
        if kind == "number":
            return lambda names: int(text)
        if kind == "text":
            value = re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda names: value
        if kind != "name":
            raise Wrong(f"unexpected {text or 'end'}")
        return self.named(text)

    def named(self, text):
        if text in ("true", "false"):
            return lambda names: text == "true"
        if text == "has":
            return self.presence()
        if text == "Object":
            # A message by its type's name: Object.spec.volumes{...}.
            while self.at("."):
                self.take(".")
                self.name()
            return self.map_of(names_are_keys=True)
        if self.at("("):
            given = self.arguments()
            return lambda names: function(text, [one(names) for one in given])
        if self.at("{"):
            return self.map_of(names_are_keys=True)
        return lambda names: index(names, text)

    def presence(self):
        """has(a.b): a must be there, b may be."""
        self.take("(")
        end = next((at for at, one in enumerate(self.left) if one == ("mark", ")")), 0)
        if end < 3 or self.left[end - 2] != ("mark", ".") or self.left[end - 1][0] != "name":
            raise Wrong("has() takes a field")
        key = self.left[end - 1][1]
        del self.left[end - 2:end]
        of = self.choice()
        self.take(")")
        return lambda names: key in of(names)

    def list_of(self):
        parts = []
        self.take("[")
        while not self.at("]"):
            parts.append(self.choice())
            if not self.at("]"):
                self.take(",")
        self.take("]")
        return lambda names: [part(names) for part in parts]

    def map_of(self, names_are_keys=False):
        pairs = []
        self.take("{")
        while not self.at("}"):
            key = (lambda name: lambda names: name)(self.name()) if names_are_keys else self.choice()
            self.take(":")
            pairs.append((key, self.choice()))
            if not self.at("}"):
                self.take(",")
        self.take("}")
        return lambda names: {key(names): value(names) for key, value in pairs}


def boolean(value):
    if not isinstance(value, bool):
        raise Wrong(f"{value!r} is not a bool")
    return value


def index(of, key):
    if isinstance(of, list) and type(key) is int and 0 <= key < len(of):
        return of[key]
    if not isinstance(of, dict) or key not in of:
        raise Wrong(f"no such key: {key}")
    value = of[key]
    return value() if callable(value) else value


def add(first, second):
    if type(first) is not type(second):
        raise Wrong(f"{first!r} + {second!r}")
    return first + second


def relate(mark, first, second):
    if mark == "in":
        return first in second
    if type(first) is not type(second):
        raise Wrong(f"{first!r} {mark} {second!r}")
    return first == second if mark == "==" else first != second if mark == "!=" else COMPARE[mark](first, second)


def function(name, given):
    known = {"int": int, "string": str, "size": len, "dyn": lambda value: value}
    if name not in known or len(given) != 1:
        raise Wrong(f"no function {name} of {len(given)}")
    try:
        return known[name](given[0])
    except (TypeError, ValueError) as error:
        raise Wrong(str(error)) from error


def method(of, name, given):
    known = {"startsWith": lambda: of.startswith(given[0]), "matches": lambda: re.search(given[0], of) is not None,
             "escapeKey": lambda: given[0].replace("~", "~0").replace("/", "~1")}
    if name not in known or len(given) != 1 or not (name == "escapeKey" or isinstance(of, str)):
        raise Wrong(f"no method {name} of {of!r}")
    return known[name]()


def evaluate(text, names):
    return Parser(text).whole()({"jsonpatch": {}, **names})
