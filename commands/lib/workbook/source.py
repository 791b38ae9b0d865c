"""The functions of a part, read from its source: where each begins and ends, its signature, its contract.

The book's own sources are formatted by clang-format, so that what stands outside of any function begins
at column 0. A reader's file may be formatted otherwise: of it only the names are asked for.
"""
import dataclasses
import functools
import re


@dataclasses.dataclass
class Function:
    name: str  # without its arguments: "rms_norm", "Bpe::encode"
    signature: str  # all before the body, without the comment above and without a constructor's list
    comment: str  # the comment lines directly above
    body: str  # with its braces
    line: int  # of the signature, from 1
    local: bool  # whether no other file sees it


def functions(text):
    """Every function that a file defines for others: not static ones, not those inside of a class."""
    return [f for f in definitions(text) if not f.local]


@functools.cache
def definitions(text):
    text = text.replace("\r\n", "\n").lstrip("\ufeff")
    code = without_comments(text)
    unnamed = [(m.start(), _closing(code, m.end() - 1)) for m in re.finditer(r"\bnamespace\s*\{", code)]
    found = []
    for begin, brace, end in _spans(code):
        head = code[begin:brace]
        name = _name(head)
        if name:
            comment = _comment_above(text, begin)
            signature = _without_list(text[begin:brace], head).rstrip()
            local = bool(re.search(r"\bstatic\b|^inline\b|^template\b|__(global|device)__", signature))
            local = local or any(first < begin < last for first, last in unnamed)
            found.append(Function(name, signature, comment, text[brace:end], text.count("\n", 0, begin) + 1, local))
    return found


def without_comments(text):
    """The same text, as long, with blanks for comments, strings and lines of the preprocessor."""
    pattern = (r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![\da-fA-F])\'(?:\\.|[^\'\\\n])+\'|'
               r'^[ \t]*#(?:\\\n|[^\n])*')
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)


def _spans(code):
    """(begin, brace, end) of each statement with a body; namespaces are looked into."""
    begin, at = 0, 0
    while at < len(code):
        c = code[at]
        if c == ";" or c == "}":
            begin = at + 1
        elif c == "{":
            head = code[begin:at].strip()
            if re.match(r"(inline\s+)?namespace\b[\w\s:]*$", head) or head.startswith('extern '):
                begin = at + 1
            else:
                end = _closing(code, at)
                if re.search(r"\)\s*((const|noexcept|override|try)\s*)*(->[^;=]*|:[^:].*)?$", head, re.S):
                    brace, end = _tried(code, at, end) if re.search(r"\btry$", head) else _body(code, at, end)
                    start = begin + len(code[begin:brace]) - len(code[begin:brace].lstrip())
                    yield start, brace, end
                    begin = end
                elif re.match(r"(template\b.*)?(struct|class|enum|union)\b", head, re.S) or "=" in head:
                    begin = end
                at = end - 1
        elif c == "(":
            at = _closing(code, at, "()") - 1
        at += 1


def _closing(code, at, pair="{}"):
    """The place after what closes the bracket at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == pair[0]) - (code[i] == pair[1])
        if depth == 0:
            return i + 1
    return len(code)


def _tried(code, at, end):
    """A body that begins with try: from this word to the last of its catches."""
    while after := re.match(r"\s*catch\s*\([^)]*\)\s*(?=\{)", code[end:]):
        end = _closing(code, end + after.end())
    return code.rindex("try", 0, at), end


def _body(code, at, end):
    """The last of the brace groups that follow each other: a constructor's list may have others before."""
    while True:
        after = re.match(r"\s*(,[^{};]*)?(?=\{)", code[end:])
        if not after:
            return at, end
        at = end + after.end()
        end = _closing(code, at)


def _name(head):
    """The name before the first bracket that is not part of a template's or an attribute's arguments."""
    if re.match(r"\s*(if|for|while|switch|catch|return|static_assert|namespace)\b", head):
        return None
    head = _without_attributes(head)
    found = re.search(r"(~?[A-Za-z_][\w]*(?:::~?[A-Za-z_]\w*)*|operator\s*[^\s(]+)\s*\(", head)
    return found.group(1) if found else None


def _without_attributes(head):
    while found := re.search(r"\b(__attribute__|alignas)\s*(?=\()|\[\[", head):
        end = head.find("]]", found.end()) + 2 if found.group() == "[[" else _closing(head, found.end(), "()")
        head = head[:found.start()] + head[max(end, found.end()):]
    return head


def _without_list(signature, code):
    """A constructor's signature without what follows its arguments."""
    depth = 0
    for i, c in enumerate(code):
        depth += (c == "(") - (c == ")")
        if c == ")" and depth == 0:
            rest = code[i + 1:]
            keep = re.match(r"\s*(const|noexcept|override|&|\s)*", rest).end()
            return signature[:i + 1 + keep] if rest[keep:].lstrip().startswith(":") else signature
    return signature


def _comment_above(text, begin):
    lines = text[:begin].rstrip(" ").split("\n")[:-1]
    comment = []
    while lines and lines[-1].startswith("//"):
        comment.insert(0, lines.pop())
    return "\n".join(comment)


def to_write(source):
    """The functions of a part that its reader is to write."""
    return [f for f in functions(source) if not is_constructor(f)]


def lines_to_write(source):
    """How many lines of ours the reader is to write anew: of code, and not of brackets alone."""
    def count(text):
        return sum(bool(re.search(r"\w", line)) for line in without_comments(text).splitlines())
    return count(source) - sum(map(count, _given(source).values()))


def is_constructor(function):
    words = function.name.split("::")
    return len(words) > 1 and words[0] == words[-1]


def _given(source):
    """The text of each constructor, and of the local functions that constructors call, by its line."""
    constructors = [f for f in functions(source) if is_constructor(f)]
    return {f.line: "\n".join(filter(None, [f.comment, whole(source, f)])) for f in with_helpers(source, *constructors)}


def with_helpers(source, *some):
    """These functions and the local ones that they call, in the order of the source."""
    wanted = list(some)
    for function in wanted:
        called = calls(whole(source, function))
        wanted += [f for f in definitions(source) if f.local and f.name in called and f not in wanted]
    return sorted(wanted, key=lambda f: f.line)


def whole(source, function):
    """A function as it stands in the source, a constructor's list included."""
    begin = sum(len(line) + 1 for line in source.split("\n")[:function.line - 1])
    return source[begin:source.index(function.body, begin) + len(function.body)]


def outline(function):
    """The comments inside of a function, which say what it does step by step."""
    return [m.group(1).strip() for m in re.finditer(r"^\s*// ?(.*)$", function.body, re.M)]


def calls(body):
    """The functions that a body calls, in the order of their first call."""
    code = without_comments(body)
    words = re.findall(r"\b([A-Za-z_]\w*)\s*\(", code)
    return list(dict.fromkeys(w for w in words if w not in ("if", "for", "while", "switch", "return", "sizeof")))
