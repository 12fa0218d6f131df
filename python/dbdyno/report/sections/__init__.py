"""One module a section of the report: each turns the material into blocks."""
