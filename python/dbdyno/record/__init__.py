"""The store: campaigns, trials and samples as they were measured. Imports only ``dbdyno.model``."""
