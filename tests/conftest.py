"""For all tests: property tests have no deadline, since the machine may be busy with a cluster."""

import pytest
from hypothesis import settings

settings.register_profile("sbudget", deadline=None)
settings.load_profile("sbudget")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate", action="store_true", help="write the golden reports in tests/data anew"
    )
