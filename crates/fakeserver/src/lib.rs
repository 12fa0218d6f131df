//! A scripted server for the MySQL and PostgreSQL protocols.
