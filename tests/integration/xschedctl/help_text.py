"""What --help lists, in the words of CLI11 2.3 (Debian 12) and of later releases, which begin headings and lines otherwise."""

import re
from typing import List, Set


def options(said: str) -> Set[str]:
    """Every name of each option: "  -h,--help  TEXT", or "  -h,     --help" and "          --version"."""
    lines = re.findall(r"^ {2,10}(-{1,2}[a-z][\w-]*(?:, *--[a-z][\w-]*)*)", said, re.MULTILINE)
    return {name for line in lines for name in re.findall(r"-{1,2}[a-z][\w-]*", line)}


def option_text(said: str, option: str) -> str:
    """The line of an option, with those that it is continued on."""
    return re.search(rf"^ {{2,10}}(?:\S+, *)?{option}\b.*(?:\n {{20,}}.*)*", said, re.MULTILINE).group()


def subcommands(said: str) -> List[str]:
    below = re.split(r"(?im)^subcommands:\n", said)
    return re.findall(r"^  (\S+)", below[1].split("\n\n")[0], re.MULTILINE) if len(below) > 1 else []
