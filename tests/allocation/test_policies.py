"""Policies against hand-worked numbers and against the slow twin."""

from __future__ import annotations

from math import exp, isclose, log, sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.allocation import policies
from outlay.allocation.policies import Situation, by_name, exponent, weights
from outlay.allocation.reward import Reward, fix_scale
from outlay.allocation.tree import Tree
from outlay.errors import InputError
from outlay.events import Child
from outlay.task import Metric
from tests.allocation.slow_twin import Record, SlowTree


def situation(tree: Tree, remaining: float = 1.0, seed: str = "s", attempts: int = 1) -> Situation:
    return Situation(
        remaining=remaining, incumbent=tree.root, attempts=attempts, random=Random(seed)
    )


def grow(tree: Tree, parent: int, *priors: float, kind: str = "plan") -> list[int]:
    ids = []
    for prior in priors:
        child = Child(node=len(tree.nodes), prior=prior, kind=kind)  # type: ignore[arg-type]
        ids.append(tree.add(tree.nodes[parent], child).id)
    return ids


def run(tree: Tree, node: int, reward: float | None, attempt: int = 1) -> None:
    tree.launch(tree.nodes[node], attempt)
    if reward is None:
        tree.settle_without_score(tree.nodes[node], "failed")
    else:
        tree.score(tree.nodes[node], reward, reward)


def scored_root(reward: float = 0.5, **options: float) -> Tree:
    tree = Tree(**options)  # type: ignore[arg-type]
    tree.score_root(reward, reward)
    return tree


def test_exponent_grows_as_the_budget_runs_out_and_is_capped() -> None:
    assert [exponent(r) for r in (1.0, 0.5, 0.25, 0.1, 0.05, 0.0)] == [1, 2, 4, 10, 10, 10]


def test_weights_by_hand() -> None:
    # Root 0.5; child 1 scored 0.6; child 2 unvisited with prior 0.49.
    # Q(root) = (0.5 + 0.6) / 2 = 0.55, so w(1) : w(2) = 0.6^2 : (0.55 * 0.7)^2.
    tree = scored_root()
    grow(tree, 0, 0.9, 0.49)
    run(tree, 1, 0.6)
    first, second = weights(tree.root, [tree.nodes[1], tree.nodes[2]], 2.0)
    assert isclose(second / first, (0.55 * 0.7 / 0.6) ** 2)


def test_prior_alone_where_the_parent_is_worth_nothing() -> None:
    tree = scored_root(0.0)
    grow(tree, 0, 0.25, 1.0)
    first, second = weights(tree.root, [tree.nodes[1], tree.nodes[2]], 3.0)
    assert isclose(first / second, 0.5**3)


def test_floor_is_applied_before_the_power() -> None:
    # A child that scored zero must never outweigh one that scored 0.2.
    tree = scored_root(0.1, prune_below=0.0)
    grow(tree, 0, 0.5, 0.5)
    run(tree, 1, 0.0)
    run(tree, 2, 0.2)
    zero, fifth = weights(tree.root, [tree.nodes[1], tree.nodes[2]], 10.0)
    assert isclose(zero / fifth, (policies.FLOOR / 0.2) ** 10)


def test_load_in_flight_divides_a_branch_weight() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5, 0.5)
    run(tree, 1, 0.6)
    run(tree, 2, 0.6)
    grow(tree, 1, 0.5, 0.5)
    tree.launch(tree.nodes[3], 3)
    busy, idle = weights(tree.root, [tree.nodes[1], tree.nodes[2]], 2.0)
    assert isclose(busy / idle, 0.5)


def test_work_in_flight_is_hidden_but_counts_as_settled() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5)
    tree.launch(tree.nodes[1], 1)
    move = by_name("greedy").move(tree, situation(tree))
    assert move is not None
    assert (move.action, move.node.id) == ("reflect", 0)


def test_a_node_is_widened_only_when_its_subtree_is_settled() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5, 0.5)
    assert by_name("greedy").move(tree, situation(tree)) == ("execute", tree.nodes[1])
    run(tree, 1, 0.6)
    assert by_name("greedy").move(tree, situation(tree)) == ("reflect", tree.nodes[1])
    grow(tree, 1, 0.5, 0.5, 0.5)
    run(tree, 2, 0.6)
    move = by_name("greedy").move(tree, situation(tree))
    assert move is not None
    assert move.action == "execute"
    for node in (3, 4, 5):
        run(tree, node, 0.6)
    assert by_name("greedy").move(tree, situation(tree)) == ("reflect", tree.root)


def test_pruning_compares_with_the_branch_value_before_the_outcome() -> None:
    # Q(root) = 0.5 before; 0.45 is not below 0.5 - 0.05, 0.44 is.
    tree = scored_root()
    grow(tree, 0, 0.5)
    run(tree, 1, 0.45)
    assert not tree.nodes[1].pruned
    assert isclose(tree.root.value, 0.475)
    other = scored_root()
    grow(other, 0, 0.5)
    run(other, 1, 0.44)
    assert other.nodes[1].pruned
    assert other.root.value == 0.5


def test_a_node_whose_children_are_all_pruned_is_a_leaf_again() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5, 0.5, 0.5)
    for node in (1, 2, 3):
        run(tree, node, 0.1)
    assert by_name("uct").move(tree, situation(tree)) == ("reflect", tree.root)


def test_failed_nodes_have_no_reward_and_no_way_through() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5, 0.5, 0.5)
    run(tree, 1, None)
    assert tree.root.value == 0.5
    assert tree.nodes[1].reward is None
    assert sorted(tree.root.visible) == [2, 3]


def test_exhaustion_is_skipped_and_ends_the_walk() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5)
    tree.exhaust(tree.root)
    run(tree, 1, 0.6)
    tree.exhaust(tree.nodes[1])
    assert all(
        by_name(name).move(tree, situation(tree)) is None
        for name in ("adaptive", "fixed:3", "random", "greedy", "uct")
    )


def test_greedy_ties_go_to_the_earliest() -> None:
    tree = scored_root()
    grow(tree, 0, 0.5, 0.5, 0.5)
    assert by_name("greedy").move(tree, situation(tree)) == ("execute", tree.nodes[1])


def test_uct_visits_unvisited_children_by_prior_and_then_by_bound() -> None:
    tree = scored_root(prune_below=0.0)
    grow(tree, 0, 0.3, 0.8, 0.8)
    assert by_name("uct").move(tree, situation(tree)) == ("execute", tree.nodes[2])
    for node, reward in ((1, 0.9), (2, 0.6), (3, 0.6)):
        run(tree, node, reward)
    grow(tree, 1, 0.5)
    grow(tree, 2, 0.5)
    run(tree, 4, 0.9)
    # Root has 5 scored nodes; child 1 has 2 with mean 0.9, child 2 has 1 with 0.6.
    bounds = [0.9 + sqrt(2 * log(5) / 2), 0.6 + sqrt(2 * log(5) / 1)]
    assert bounds[1] > bounds[0]
    assert by_name("uct").move(tree, situation(tree)) == ("execute", tree.nodes[5])


def test_linear_goes_on_from_the_incumbent_and_executes_what_it_made() -> None:
    tree = scored_root()
    assert by_name("linear").move(tree, situation(tree)) == ("continue", tree.root)
    grow(tree, 0, 0.5, kind="continue")
    assert by_name("linear").move(tree, situation(tree)) == ("execute", tree.nodes[1])


def test_single_stops_after_one_attempt() -> None:
    tree = scored_root()
    assert by_name("single").move(tree, situation(tree, attempts=0)) == ("continue", tree.root)
    assert by_name("single").move(tree, situation(tree, attempts=1)) is None


def test_best_of_n_carries_the_first_plan_out_again_and_again() -> None:
    tree = Tree()
    policy = by_name("best-of-n")
    assert policy.move(tree, situation(tree)) == ("execute", tree.root)
    run(tree, 0, 0.5)
    assert policy.move(tree, situation(tree)) == ("repeat", tree.root)
    grow(tree, 0, 0.5, kind="repeat")
    assert policy.move(tree, situation(tree)) == ("execute", tree.nodes[1])
    run(tree, 1, None)
    assert policy.move(tree, situation(tree)) == ("repeat", tree.root)


def test_best_of_n_goes_on_where_the_first_attempt_failed_or_still_runs() -> None:
    tree = Tree()
    tree.launch(tree.root, 1)
    assert by_name("best-of-n").move(tree, situation(tree)) == ("repeat", tree.root)
    tree.settle_without_score(tree.root, "failed")
    assert by_name("best-of-n").move(tree, situation(tree)) == ("repeat", tree.root)


def test_a_node_is_not_reflected_on_twice_at_once() -> None:
    tree = scored_root()
    tree.reflect(tree.root, begins=True)
    assert by_name("adaptive").move(tree, situation(tree)) is None
    grow(tree, 0, 0.5)
    assert by_name("adaptive").move(tree, situation(tree)) == ("execute", tree.nodes[1])
    run(tree, 1, 0.6)
    tree.reflect(tree.nodes[1], begins=True)
    assert by_name("adaptive").move(tree, situation(tree)) is None
    tree.reflect(tree.root, begins=False)
    assert by_name("adaptive").move(tree, situation(tree)) == ("reflect", tree.root)


def test_a_failed_root_is_open_again_with_another_plan() -> None:
    tree = Tree()
    tree.draft_root(Child(node=0, plan="one"))
    run(tree, 0, None)
    assert by_name("adaptive").move(tree, situation(tree)) is None
    tree.draft_root(Child(node=0, plan="two"))
    assert by_name("adaptive").move(tree, situation(tree)) == ("execute", tree.root)
    run(tree, 0, 0.4)
    assert (tree.root.value, tree.root.unsettled) == (0.4, 0)
    assert by_name("adaptive").move(tree, situation(tree)) == ("reflect", tree.root)


def test_continue_children_do_not_count_towards_m() -> None:
    tree = scored_root(children=1)
    grow(tree, 0, 0.5, kind="continue")
    run(tree, 1, 0.6)
    assert tree.root.visible_plans == 0
    assert tree.root.self_actionable


@pytest.mark.parametrize("name", ["fixed:x", "fixed:-1", "fixed:inf", "fixed:", "best", ""])
def test_unknown_policies_are_named(name: str) -> None:
    with pytest.raises(InputError, match=r"policy: found .*allowed: "):
        by_name(name)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 4),
    delta=st.sampled_from([0.0, 0.05, 0.3]),
    policy=st.sampled_from(["adaptive", "fixed:0", "fixed:3", "random", "greedy", "uct"]),
)
def test_every_move_equals_the_slow_twins(seed: int, m: int, delta: float, policy: str) -> None:
    """Random histories with failures, load and exhaustion: same tree, same move, all along."""
    random = Random(seed)
    fast, slow = Tree(children=m, prune_below=delta), SlowTree(m, delta)
    fast.score_root(0.5, 0.5)
    slow.score(0, 0.5)
    flying: list[int] = []
    for turn in range(25):
        remaining = 1.0 - turn / 26
        move = by_name(policy).move(fast, situation(fast, remaining, f"{seed}/{turn}"))
        expected = slow.walk(_chooser(slow, policy, remaining, Random(f"{seed}/{turn}")))
        assert (None if move is None else (move.action, move.node.id)) == expected
        _compare(fast, slow)
        if move is None or (len(flying) > 2 and random.random() < 0.7):
            if not flying:
                break
            _land(fast, slow, flying.pop(random.randrange(len(flying))), random)
        elif move.action == "execute":
            fast.launch(move.node, turn + 1)
            slow.records[move.node.id].status = "running"
            flying.append(move.node.id)
        else:
            _reflect(fast, slow, move.node.id, random)


def _land(fast: Tree, slow: SlowTree, node: int, random: Random) -> None:
    if random.random() < 0.2:
        fast.settle_without_score(fast.nodes[node], "failed")
        slow.records[node].status = "failed"
    else:
        reward = random.choice([0.0, round(random.random(), 2)])
        fast.score(fast.nodes[node], reward, reward)
        slow.score(node, reward)


def _reflect(fast: Tree, slow: SlowTree, node: int, random: Random) -> None:
    plans = [c for c in slow.visible(node) if c.kind == "plan"]
    asked = fast.children - len(plans)
    came = random.randint(0, asked)
    for _ in range(came):
        prior = round(random.random(), 2)
        grow(fast, node, prior)
        slow.records.append(Record(len(slow.records), node, prior=prior))
    if came < asked:
        fast.exhaust(fast.nodes[node])
        slow.records[node].exhausted = True


def _compare(fast: Tree, slow: SlowTree) -> None:
    for node, record in zip(fast.nodes, slow.records, strict=True):
        assert isclose(node.value, slow.q(record.id), abs_tol=1e-12)
        assert node.pruned == record.pruned
        assert sorted(node.visible) == [r.id for r in slow.visible(record.id)]
        assert node.in_flight == slow.load(record.id)


def _chooser(slow: SlowTree, policy: str, remaining: float, random: Random):
    def draw(u: int, candidates: list[Record], power: float) -> int:
        shares = slow.weights(u, candidates, power)
        top = max(slow.base(u, v.id) for v in candidates) ** power
        left = random.random() * (sum(shares) / top)
        for candidate, share in zip(candidates, shares, strict=True):
            left -= share / top
            if left < 0:
                return candidate.id
        return candidates[-1].id

    def choose(u: int, candidates: list[Record]) -> int:
        if policy == "greedy":
            return max(candidates, key=lambda v: slow.base(u, v.id) / (1 + slow.load(v.id))).id
        if policy == "uct":
            return max(candidates, key=lambda v: slow.uct(u, v.id)).id
        powers = {"adaptive": min(1 / remaining, 10.0), "random": 0.0}
        power = powers[policy] if policy in powers else float(policy.partition(":")[2])
        return draw(u, candidates, power)

    return choose


def test_reward_by_hand() -> None:
    reward = Reward(identity=False, sign=-1.0, center=2.0, scale=0.5)
    assert reward(2.0) == 0.5
    assert isclose(reward(1.0), 1 / (1 + exp(-2)))
    assert reward(1e9) == 0.0
    assert Reward(identity=True, sign=1.0, center=0.0, scale=1.0)(0.25) == 0.25


def test_scale_follows_its_three_sources_in_order() -> None:
    metric = Metric(name="m", direction="maximize", low=0.0, high=4.0)
    assert fix_scale(metric, 100.0, 9.0) == 0.5
    assert fix_scale(Metric(name="m", direction="maximize"), 100.0, 9.0) == 27.0
    assert fix_scale(Metric(name="m", direction="maximize"), 100.0, 0.0) == 5.0
    assert fix_scale(Metric(name="m", direction="maximize"), 0.0, 0.0) == 1e-9
    assert fix_scale(Metric(name="m", direction="minimize", reward_scale=2.0), 1.0, 0.0) == 2.0
