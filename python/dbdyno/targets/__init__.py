"""Databases as addressed by a URL: one folder a family, all with the same file names, found by registry.py."""
