"""The commands. Imports are lazy, so that `sbudget --help` and completion answer at once."""
