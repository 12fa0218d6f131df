//! Framing and messages of the MySQL and PostgreSQL protocols: bytes in, typed messages out. No sockets.
#![forbid(unsafe_code)]
