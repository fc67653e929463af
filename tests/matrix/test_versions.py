"""What holds on this machine's Slurm holds on the others."""

import pytest
from rings import PATIENCE, VERSIONS, Ring


@pytest.mark.matrix
@pytest.mark.parametrize("version", VERSIONS)
def test_the_cluster_tests_pass_on_this_version(rings: dict[str, Ring], version: str) -> None:
    ring = rings[version]
    assert ring.said.wait(PATIENCE), f"Slurm {version} has not ended in {PATIENCE} s"
    assert ring.code == 0, ring.output[-20000:]
    assert " passed" in ring.figures
