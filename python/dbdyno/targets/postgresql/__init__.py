"""PostgreSQL, through psycopg 3 and libpq."""
