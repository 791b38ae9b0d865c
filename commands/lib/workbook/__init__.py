"""The tutor: what ./learn start, check, watch, hint, example, list and locate do, and what proves
the checks."""
