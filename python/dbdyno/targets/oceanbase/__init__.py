"""OceanBase in MySQL mode, and seekdb: the MySQL protocol with tenants, time-outs and errors of its own."""
