"""Frozen values that every other folder passes on. Imports nothing of dbdyno but its own modules."""
