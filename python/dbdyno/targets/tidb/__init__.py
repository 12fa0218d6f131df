"""TiDB: the MySQL protocol, with conflicts found at COMMIT and errors of its own."""
