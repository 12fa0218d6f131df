"""Figures from trials: sums over rounds, intervals, verdicts. Pure functions, no input and no output."""
