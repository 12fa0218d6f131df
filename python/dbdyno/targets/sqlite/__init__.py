"""SQLite: a file in this process, through Python's sqlite3."""
