"""The second life of a workload: Python functions compiled to a program for the engine.

A transaction's syntax tree is followed once, from its first line: options of ``self``, capabilities and the
module's constants are folded, branches that they decide are left out, functions are compiled into their caller.
What is left are a few instructions between statements. Anything outside the language is an error with its place.
"""

from dbdyno.workload.compiler.build import check_workload, compile_workload

__all__ = ["check_workload", "compile_workload"]
