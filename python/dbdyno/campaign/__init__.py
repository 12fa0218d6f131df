"""From a plan to trials in the store: reading plans, expanding them, running and resuming them."""
