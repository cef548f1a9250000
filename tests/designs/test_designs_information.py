import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.designs.costs import Design, arms_of
from outlay.designs.information import entropy, information, information_table, panel_information
from outlay.designs.outcomes import GaussianOutcomes, GridOutcomes
from outlay.designs.states import ResearchState, paper_limit
from outlay.errors import InputError
from tests.designs.twins import array_sum, bits, literal, random_state, sampled_designs, zeta_grid

SKEWED = (0.3, 0.2, 0.2, 0.1, 0.1, 0.1)
UNIFORM = (1 / 6,) * 6
SIX = tuple(range(6))


def state_of(prior, signatures, **changes):
    signatures = tuple(tuple(float(mean) for mean in row) for row in signatures)
    fields = {
        "hypotheses": tuple(f"h{h}" for h in range(len(prior))),
        "prior": tuple(float(p) for p in prior),
        "arms": tuple(f"a{j}" for j in range(len(signatures[0]))),
        "signatures": signatures,
        "limits": (paper_limit(8),),
    }
    return ResearchState(**(fields | changes))


@pytest.mark.parametrize(
    ("prior", "arms", "seeds", "expected"),
    [
        (UNIFORM, (0,), 2, 0.014040581318476),
        (UNIFORM, (0,), 4, 0.050225361548149),
        (UNIFORM, (0, 1), 8, 0.298136011669085),
        (UNIFORM, SIX, 5, 0.431438663648869),
        (UNIFORM, SIX, 12, 1.283500779445887),
        (SKEWED, (0,), 2, 0.021139974671315),
        (SKEWED, (0, 3, 5), 9, 0.480319221600620),
        (SKEWED, SIX, 12, 1.216803045472163),
    ],
)
def test_published_vectors(prior, arms, seeds, expected):
    state = state_of(prior, np.eye(6))
    design = Design(arms, seeds)
    table = information_table(state).gain
    assert abs(information(state, design).value - expected) < 1e-12
    assert abs(table[design.mask, seeds - 2] - expected) < 1e-12
    assert abs(array_sum(prior, np.eye(6), arms, seeds) - expected) < 1e-12


@pytest.mark.parametrize("overlap", [0.0, 0.2])
@pytest.mark.parametrize("concentration", [1.0, 5.0])
def test_independent_computations_agree(overlap, concentration):
    rng = np.random.default_rng(int(100 * overlap + concentration))
    for arms in (2, 3, 4, 5, 6):
        prior, signatures = random_state(rng, arms, overlap, concentration)
        table = information_table(state_of(prior, signatures)).gain
        zeta = np.stack([zeta_grid(prior, signatures, n) for n in range(2, 13)], axis=1)
        assert np.abs(table - zeta).max() < 1e-12
        designs = sampled_designs(rng, arms)
        for index in rng.choice(len(designs), size=8):
            mask, n = designs[index]
            assert abs(table[mask, n - 2] - literal(prior, signatures, bits(mask), n)) < 1e-12
            assert abs(table[mask, n - 2] - array_sum(prior, signatures, bits(mask), n)) < 1e-12


def test_a_panel_equals_its_states():
    rng = np.random.default_rng(1)
    states = [state_of(rng.dirichlet(np.ones(4)), np.eye(4)) for _ in range(3)]
    gains = panel_information(states)
    for state, gain in zip(states, gains, strict=True):
        assert np.abs(gain - information_table(state).gain).max() < 1e-14


def test_panel_refuses_overlaps():
    with pytest.raises(InputError, match="disjoint"):
        panel_information([state_of((0.5, 0.5), [[1, 1], [0, 1]])])


def test_a_top_prior_of_nine_tenths_stays_exact():
    prior = (0.9, 0.04, 0.03, 0.01, 0.01, 0.01)
    table = information_table(state_of(prior, np.eye(6))).gain
    for n in (2, 7, 12):
        assert np.abs(table[:, n - 2] - zeta_grid(prior, np.eye(6), n)).max() < 1e-12


@pytest.mark.parametrize(("seeds", "error"), [(20, 1e-12), (60, 1e-12), (200, 5e-12)])
def test_many_seeds_stay_exact(seeds, error):
    prior = (0.7, 0.2, 0.1)
    gain = information_table(state_of(prior, np.eye(3), seeds=(seeds, seeds))).gain[:, 0]
    for mask in (1, 3, 7):
        assert abs(gain[mask] - array_sum(prior, np.eye(3), bits(mask), seeds)) < error


def test_a_hypothesis_that_no_arm_touches():
    prior, signatures = (0.5, 0.3, 0.2), np.array([[1, 0], [0, 1], [0, 0]])
    table = information_table(state_of(prior, signatures)).gain
    assert abs(table[3, 3] - literal(prior, signatures, (0, 1), 5)) < 1e-12


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_bounds_and_monotony(data):
    arms = data.draw(st.integers(2, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    prior, signatures = random_state(rng, arms, data.draw(st.sampled_from([0.0, 0.3])), 1.0)
    gain = information_table(state_of(prior, signatures)).gain
    assert gain.min() > -1e-12
    assert gain.max() <= entropy(np.array(prior)) + 1e-12
    mask, arm = int(rng.integers(2**arms)), int(rng.integers(arms))
    more = gain[mask | 1 << arm] - gain[mask]
    assert more.min() > -1e-12
    alone = gain[1 << arm]
    assert (alone - more).min() > -1e-12  # submodular: an arm adds most when it is alone


def test_means_between_zero_and_one_and_another_grid():
    prior, means = (0.4, 0.6), [[0.2, 0.9], [0.7, 0.1]]
    values = (0.0, 0.1, 0.6, 1.0)
    state = state_of(prior, means, outcomes=GridOutcomes(values=values, noise=0.8))
    gain = information_table(state).gain
    for mask in (1, 2, 3):
        for n in (2, 12):
            expected = _by_definition(prior, np.array(means)[:, bits(mask)], values, 0.8, n)
            assert abs(gain[mask, n - 2] - expected) < 1e-12
            assert abs(information(state, Design(bits(mask), n)).value - expected) < 1e-12


def _by_definition(prior, means, values, noise, n):
    likelihood = np.exp(-np.square(np.array(values) - means[..., None]) * n / (2 * noise**2))
    likelihood /= likelihood.sum(axis=-1, keepdims=True)
    joint = likelihood[:, 0]
    for j in range(1, means.shape[1]):
        joint = (joint[:, :, None] * likelihood[:, j, None]).reshape(len(prior), -1)
    marginal = np.array(prior) @ joint
    return float((np.array(prior)[:, None] * joint * np.log(joint / marginal)).sum())


def test_almost_no_noise_tells_which_arm_it_is():
    prior = (0.5, 0.3, 0.2)
    state = state_of(prior, np.eye(3), outcomes=GridOutcomes(noise=1e-4))
    gain = information_table(state).gain[:, 0]
    assert abs(gain[7] - entropy(np.array(prior))) < 1e-9
    assert abs(gain[1] - np.log(2)) < 1e-9


def test_almost_no_noise_on_a_fine_grid_with_means_off_the_grid():
    prior, values = (0.5, 0.5), (0.0, 0.001, 0.002)
    for noise, means in ((1e-5, [[0.0012], [0.0]]), (1e-5, [[0.00045], [0.00055]])):
        outcomes = GridOutcomes(values=values, noise=noise)
        gain = information_table(state_of(prior, means, outcomes=outcomes)).gain[1, -1]
        assert abs(gain - np.log(2)) < 1e-12


@pytest.mark.parametrize("arms", [1, 2, 3])
def test_normal_outcomes_against_brute_force_sampling(arms):
    rng = np.random.default_rng(3)
    prior, means = rng.dirichlet(np.ones(5)), rng.normal(size=(5, arms))
    state = state_of(prior, means, outcomes=GaussianOutcomes(noise=1.7))
    found = information(state, Design(tuple(range(arms)), 4))
    h = rng.choice(5, size=400_000, p=prior)
    y = means[h] + 1.7 / 2 * rng.standard_normal((len(h), arms))
    logs = -0.5 * np.square((y[:, None] - means) / 0.85).sum(axis=2)
    tops = logs[np.arange(len(h)), h] - np.log(np.exp(logs) @ prior)
    assert found.error < 1e-7
    assert abs(found.value - tops.mean()) < 4 * tops.std() / len(h) ** 0.5 + found.error


def test_normal_outcomes_in_four_directions_state_an_error_that_holds():
    prior = np.full(6, 1 / 6)
    state = state_of(prior, np.eye(6), outcomes=GaussianOutcomes(noise=1.0))
    design = Design(SIX, 4)
    rough = information(state, design, samples=2_000)
    fine = information(state, design, samples=100_000)
    assert fine.error < rough.error < 0.05
    assert abs(rough.value - fine.value) < 2 * (rough.error + fine.error)


def test_quadrature_and_sampling_agree_where_both_apply():
    from outlay.designs import _gaussian

    prior, centres = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1.0], [1.5, 0.0], [-1.0, -1.0]])
    exact = _gaussian._quadrature(prior, centres, 0.1)
    sampled = _gaussian._sampled(prior, centres, np.random.default_rng(0), 100_000)
    assert abs(exact - sampled.value) < 2 * sampled.error


def test_hypotheses_with_equal_means_tell_nothing():
    state = state_of((0.5, 0.5), [[1, 0], [1, 0]], outcomes=GaussianOutcomes())
    assert information(state, Design((0, 1), 12)) == (0.0, 0.0)


def test_too_many_arms_for_a_table():
    signatures = np.maximum(np.eye(10), np.eye(10, k=1))
    with pytest.raises(InputError, match="search_designs"):
        information_table(state_of((0.1,) * 10, signatures))


def test_masks_and_arms():
    assert Design((0, 2, 5), 2).mask == 37
    assert arms_of(37) == (0, 2, 5)
