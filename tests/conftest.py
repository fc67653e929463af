"""For all tests: property tests have no deadline, since the machine may be busy with a cluster."""

from hypothesis import settings

settings.register_profile("sbudget", deadline=None)
settings.load_profile("sbudget")
