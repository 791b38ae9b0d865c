"""The commands that a reader calls, and which of the reader's parts go into a program."""
