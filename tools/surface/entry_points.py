"""Reads an entry_points.def of client-shim (hip, cuda)."""
import os
import re
from typing import NamedTuple, Optional

NOT_WRAPPED = ('XS_LISTED', 'XS_OTHER', 'XS_UNCOUNTED')
# Those whose calls an account of device memory sees (client-shim/core/memory_account.h), or leaves out for a reason.
COUNTED = ('XS_ALLOCATE', 'XS_RETAIN')
ALLOCATING = (*COUNTED, 'XS_UNCOUNTED')


class Entry(NamedTuple):
    macro: str
    name: str
    number: Optional[str] = None  # HIP: index in the dispatch table, or kNoIndex. CUDA: the version that introduced it
    parameters: Optional[str] = None  # with their parentheses; None if not wrapped
    why: Optional[str] = None  # it is not wrapped

    @property
    def is_wrapped(self):
        return self.macro not in NOT_WRAPPED


def read(path):
    """All entries, in order."""
    text = _text(path)
    entries = []
    position = 0
    while match := re.compile(r'\b(XS_\w+)\(').search(text, position):
        arguments, position = _arguments(text, match.end())
        entries += _entries(match.group(1), arguments)
    return entries


def _text(path):
    """Without comments, and with the lists that it includes, whose names begin at the root of the source."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(path))))
    with open(path, encoding='utf-8') as file:
        text = re.sub(r'//[^\n]*', '', file.read())
    return re.sub(r'#include "([^"]*)"', lambda match: _text(os.path.join(root, match.group(1))), text)


def _entries(macro, arguments):
    if macro not in NOT_WRAPPED:
        name, number, *rest = arguments
        parameters = rest[0] if rest and rest[0].startswith('(') else None
        return [Entry(macro, name, number, parameters)]
    if arguments[0].startswith('"'):  # the reason, and the names that it applies to
        return [Entry(macro, name, why=arguments[0].strip('"')) for name in arguments[1:]]
    name, number, why = arguments
    return [Entry(macro, name, number, why=why.strip('"'))]


def _arguments(text, begin):
    """The arguments of a macro, split at the commas outside parentheses and strings, and where its call ends."""
    arguments, depth, start = [], 0, begin
    for match in re.compile(r'"[^"]*"|[(),]').finditer(text, begin):
        token = match.group()
        if token == '(':
            depth += 1
        elif token == ')' and depth > 0:
            depth -= 1
        elif depth == 0 and token in ',)':
            arguments.append(' '.join(text[start:match.start()].split()))
            start = match.end()
            if token == ')':
                return arguments, start
    raise ValueError('a macro has no end')
