"""What ./learn runs in Python: python3 workbook MODULE WORDS… calls main of that module."""
import importlib
import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])  # where the package lies
sys.argv.pop(0)
importlib.import_module(f"workbook.{sys.argv[0]}").main(*sys.argv[1:])
