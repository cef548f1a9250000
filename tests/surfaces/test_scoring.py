from __future__ import annotations

import numpy as np
import pytest

from outlay.errors import InputError
from outlay.surfaces.cube import conditional_effects
from outlay.surfaces.scoring import coverage, family_macro, recovery, score

TRUTH = np.array([0.1, 0.2, 0.4, 0.9])


def test_a_perfect_table_has_full_recovery_and_no_regret():
    found = score(TRUTH, TRUTH)
    assert found.recovery == 1
    assert found.exact
    assert found.near
    assert all(found.strict.values())


def test_observed_cells_count_with_their_true_value():
    found = score(TRUTH, np.zeros(4), observed=[0, 1, 2, 3])
    assert found.effect_mae == 0


def test_errors_are_means_over_effects_cells_and_pairs():
    found = score(TRUTH, np.array([0.1, 0.2, 0.4, 0.8]))
    assert found.effect_mae == pytest.approx(0.05)
    assert found.mean_effect == pytest.approx((0.3 + 0.7 + 0.1 + 0.5) / 4)
    assert found.recovery == pytest.approx(1 - 0.05 / 0.4)
    assert found.interaction_mae == pytest.approx(0.1)
    assert found.grid_mae == pytest.approx(0.025)
    assert found.strict == {0.01: False, 0.02: False, 0.05: False, 0.1: False, 0.2: True}


def test_recovery_is_never_negative_and_a_flat_table_is_all_or_nothing():
    assert recovery(3.0, 1.0) == 0
    assert recovery(0.0, 0.0) == 1
    assert recovery(1e-6, 0.0) == 0


def test_selection_ties_prefer_fewer_options_then_the_lower_mask():
    flat = np.full(8, 0.5)
    assert score(flat, flat).selected == "000"
    tied = np.array([0, 0.5, 0.5, 0, 0.1, 0, 0, 0.5])
    assert score(tied, tied).selected == "001"


def test_regret_is_the_loss_of_the_selected_configuration():
    found = score(TRUTH, np.array([0.5, 0.2, 0.4, 0.3]))
    assert found.selected == "00"
    assert found.regret == pytest.approx(0.8)
    assert not found.near


@pytest.mark.parametrize("wrong", [np.zeros(8), np.array([0, 0, np.nan, 0])])
def test_a_table_of_another_shape_or_with_nan_is_refused(wrong):
    with pytest.raises(InputError):
        score(TRUTH, wrong)


def test_coverage_counts_only_effects_with_an_unmeasured_end():
    effect = conditional_effects(TRUTH)
    low, high = effect - 0.01, effect + 0.01
    assert coverage(TRUTH, low, high, observed=[0, 1]) == (3, 3)
    assert coverage(TRUTH, low + 1, high + 1, observed=[0, 1]) == (0, 3)


def test_family_macro_weighs_families_equally():
    assert family_macro([("a", 0.0), ("a", 1.0), ("b", 1.0)]) == pytest.approx(0.75)
