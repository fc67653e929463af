"""The rules, pure: no disk, no network, no clock. `now` is always an argument."""
