"""The second life of a workload: Python functions compiled to a program for the engine.

A transaction's syntax tree is followed once, from its first line: options of ``self``, capabilities and the
module's constants are folded, branches that they decide are left out, functions are compiled into their caller.
What is left are a few instructions between statements. Anything outside the language is an error with its place.

The functions called as they are remain the meaning. Where the program stops and Python would go on, it says so:
integers beyond 64 bits and decimals beyond 28 digits; lists of more than 10,000 elements, a million instructions
without a statement, more than 4,096 SQL texts; going through the characters of a string, ``sum`` of floats (its
rounding depends on Python's version), ``**`` of floats, a float compared with a decimal, a list in ``db.state``, a
list or tuple as a parameter, anything but an integer in a hole of an SQL text.
"""

from dbdyno.workload.compiler.build import check_workload, compile_workload

__all__ = ["check_workload", "compile_workload"]
