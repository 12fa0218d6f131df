"""MySQL 5.7 to 9, MariaDB, Percona, GreatSQL, TDSQL: one protocol, told apart by what each alone has."""
