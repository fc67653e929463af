from slurm_budget.core.weights import rate, rates


def test_a_type_without_weight_counts_as_one_gpu() -> None:
    assert rate({"h100": 4, "": 1}, {"h100": 1500}) == 7000


def test_a_mig_slice_is_a_type_of_its_own() -> None:
    assert rate({"a100_3g.20gb": 2, "a100": 1}, {"a100_3g.20gb": 400}) == 1800


def test_a_budget_for_one_type_counts_that_type_alone() -> None:
    gpus = {"h100": 2, "h200": 3, "": 1}
    assert rate(gpus, {}, "gres/gpu:h200") == 3000
    assert rate(gpus, {}, "gres/gpu:b200") == 0
    assert rate(gpus, {}) == sum(rates(gpus, {}).values()) == 6000
