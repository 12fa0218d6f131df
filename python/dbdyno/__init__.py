"""A dynamometer for OLTP databases: loads data, drives transactions, measures honestly, writes the report."""

__version__ = "0.1.0"
