"""The command line: one module a sub-command. Data goes to stdout, talk to stderr.

Exit status: 0 done; 1 the run or comparison failed its own terms; 2 the words were wrong; 130 interrupted,
results kept.
"""

from __future__ import annotations

from dbdyno.cli.argv_secrets import hide_passwords


def main() -> int:
    """Entry point ``dbdyno``. Returns the exit status."""
    words = hide_passwords()  # before anything slow is imported: until here the title shows what was typed
    from dbdyno.cli.app import run_words

    return run_words(words)
