"""The workloads that ship. Each is found by its entry point; nothing imports this package."""
