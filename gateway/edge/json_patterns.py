"""JSON in regular expressions, as far as it is regular: what is whole is skipped in C.

Every repeat is possessive, so nothing is ever tried twice. Texts may be cut anywhere.
"""

import re
import sys

_WHOLE_LEVELS = 6  # of lists and objects inside a member that is read in one step
_MOST_ROUNDS = 8

_GAP = rb"[ \t\r\n]*+"
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+"  # no brackets outside strings


def _inside(levels: int) -> bytes:
    """What may stand between two brackets, so many levels of further ones included."""
    if levels == 0:
        return _FLAT
    return rb'(?:[^"\[\]{}]++|%b|[\[{]%b[\]}])*+' % (_STRING, _inside(levels - 1))


_VALUE = rb'(?:%b|[^ \t\r\n"\[\]{},:]++|[\[{]%b[\]}])' % (_STRING, _inside(_WHOLE_LEVELS))
_REST = _GAP + rb":" + _GAP + rb"%b" + _GAP + rb","
# Members, each whole with the comma behind it: those that cannot be the model's, and any one.
OTHERS = re.compile(rb'(?:%b"(?!model")[^"\\]*+"%b)*+' % (_GAP, _REST % _VALUE), re.DOTALL)
MEMBER = re.compile(rb'%b"((?:[^"\\]++|\\.)*+)"%b' % (_GAP, _REST % (b"(%b)" % _VALUE)), re.DOTALL)
_BLANK = re.compile(_GAP)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
SCALAR = re.compile(rb'[^ \t\r\n"\[\]{},:]*+')
# Brackets outside strings; what follows a quote that is not closed comes last.
OUTSIDE = re.compile(_FLAT + rb'([\[\]{}]++|\Z|"(?s:.*))', re.DOTALL)
NEXT_BRACKET = re.compile(_FLAT + rb"([\[\]{}])", re.DOTALL)
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")


def blank(data: bytes, at: int) -> int:
    """Behind the white space here."""
    return skip(_BLANK, data, at)


def skip(pattern: re.Pattern[bytes], data: bytes, at: int, end: int = sys.maxsize) -> int:
    """Behind what a pattern that may match nothing matches here."""
    found = pattern.match(data, at, end)
    return at if found is None else found.end()


def end_of_string(data: bytes, at: int) -> int:
    """Where the closing quote is, or a backslash that ends the data, or the data's end."""
    quote = data.find(b'"', at)
    end = len(data) if quote < 0 else quote
    escape = data.find(b"\\", at, end)
    return end if escape < 0 else skip(_IN_STRING, data, escape)


def may_close(brackets: bytes, closes: int, needed: int) -> bool:
    """Whether so many more may be closed than opened at some place; sure only when it says no."""
    if closes < needed:
        return False
    brackets = brackets.translate(_AS_SQUARE)
    for _ in range(_MOST_ROUNDS):
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    return brackets.count(b"]") >= needed
