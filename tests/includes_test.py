#!/usr/bin/env python3
"""Each source file must include what it uses, itself or through the project's headers.

The precompiled headers would hide a missing line here until someone builds without them. So each name
below, where a file uses it, must come from one of the headers beside it. Names of the other libraries
and of the project need no check: a missing line there stops the build.
"""
import re
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PROVIDERS = {  # a name, as a regular expression: the headers that promise it
    r"std::vector\b": ["vector"],
    r"std::(string|to_string|stoi|stof|getline)\b": ["string", "filesystem"],
    r"std::optional\b|std::nullopt\b": ["optional"],
    r"std::variant\b|std::visit\b|std::get_if\b": ["variant"],
    r"std::function\b": ["functional"],
    r"std::filesystem\b": ["filesystem"],
    r"std::(sort|fill|copy|count|find|any_of|all_of|clamp|min|max|max_element)(_if|_n)?\(":
        ["algorithm", "tensor.hpp", "filesystem"],
    r"std::(sqrt|exp|log|pow|cos|sin|tanh|abs|isnan|isfinite)\(": ["cmath", "tensor.hpp"],
    r"std::(array|to_array)\b": ["array", "tensor.hpp"],
    r"std::(accumulate|iota|inner_product)\b": ["numeric", "tensor.hpp"],
    r"std::(unique_ptr|shared_ptr|make_unique|make_shared)\b": ["memory"],
    r"std::(map|multimap)\b": ["map"],
    r"std::unordered_map\b": ["unordered_map"],
    r"std::u?int\d+_t\b": ["cstdint", "tensor.hpp"],
    r"std::span\b": ["span"],
    r"std::numeric_limits\b": ["limits", "tensor.hpp"],
    r"\bfmt::": ["fmt/format.h", "fmt/core.h", "fmt/ranges.h"],
    r"\bxsimd::": ["xsimd/xsimd.hpp"],
    r"\bTensor<\d>|\bxt::": ["tensor.hpp"],
}


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def included(path, seen):
    """The headers that path includes, also through the project's own."""
    if path in seen:
        return set()
    seen.add(path)
    headers = set()
    for kind, name in re.findall(r'^#include ([<"])([^>"]+)[>"]', path.read_text(), flags=re.M):
        headers.add(name if kind == "<" else Path(name).name)
        for folder in (path.parent, HOME / "chapters", HOME / "common", HOME / "tests"):
            if kind == '"' and (folder / name).exists():
                headers |= included((folder / name).resolve(), seen)
                break
    return headers


def missing(path):
    text = without_comments(path.read_text())
    headers = included(path, set()) | {path.name}
    for name, providers in PROVIDERS.items():
        used = re.search(name, text)
        if used and not headers.intersection(providers):
            yield f"{path.relative_to(HOME)} uses {used[0]} without #include of {providers[0]}"


files = [file for folder in ("common", "chapters", "tests") for ending in ("*.hpp", "*.cpp", "*.cu")
         for file in sorted((HOME / folder).rglob(ending))]
found = [line for file in files for line in missing(file)]
print("\n".join(found) or f"{len(files)} files include what they use")
sys.exit(bool(found) or not files)
