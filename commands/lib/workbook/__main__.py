"""What ./learn runs in Python: python3 workbook MODULE WORDS… calls main of that module, in
whichever folder of this package it is."""
import importlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent

sys.path[0] = str(HERE.parent)
sys.argv.pop(0)
[file] = HERE.rglob(f"{sys.argv[0]}.py")
name = ".".join(file.with_suffix("").relative_to(HERE.parent).parts)
importlib.import_module(name).main(*sys.argv[1:])
