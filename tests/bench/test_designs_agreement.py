import json
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from outlay.bench.designs.agreement import (
    Judgement,
    agreement,
    ranks_from_pairs,
    spearman,
)
from outlay.bench.designs.candidates import with_candidates
from outlay.bench.designs.ranking import parse_ranking, ranking_prompt, rotated, spellings
from outlay.bench.designs.scenarios import read_scenario, scenarios
from outlay.cli.bench_designs import command
from outlay.designs.catalogue import catalogue, fits
from outlay.designs.readings import readings
from outlay.errors import InputError
from tests.bench.scripted_server import Script, serving

PAIRS = with_candidates(scenarios())


def test_twelve_scenarios_of_three_fields_with_their_sources():
    found = scenarios()
    fields = [scenario.field for scenario in found]
    assert {field: fields.count(field) for field in fields} == {
        "machine learning": 4,
        "systems": 4,
        "AI for science": 4,
    }
    assert len({scenario.source.id for scenario in found}) == 11
    for scenario in found:
        assert scenario.source.observation_at
        assert scenario.source.conclusion_at


def test_a_judge_sees_no_source_and_no_label():
    for scenario, four in PAIRS:
        text = ranking_prompt(scenario, four)
        source = scenario.source
        hidden = (source.id, source.title, source.conclusion, source.observation_at)
        assert not any(words in text for words in hidden)
        assert not any(candidate.label in text for candidate in four[:3])
        assert all(m.mechanism in text and m.intervention in text for m in scenario.mechanisms)


def test_candidates_follow_the_rules():
    for scenario, four in PAIRS:
        state = scenario.state
        *complete, name_only = four
        used = [arm for candidate in complete for arm in candidate.action.arms]
        assert sorted(used) == list(range(6))
        assert {candidate.label for candidate in complete} == {"replicated", "moderate", "minimal"}
        for candidate in complete:
            (design,) = readings(state, candidate.action)
            assert fits(state, design)
            table = catalogue(state)
            assert candidate.value == pytest.approx(table.efficiency.flat[table.place(design)])
        assert len(readings(state, name_only.action)) == 4
        assert len({candidate.value for candidate in four}) == 4


def test_192_spellings_of_75_weak_orders():
    found = spellings()
    assert len(found) == 192
    assert len(set(found.values())) == 75
    assert found["B>A=D>C"] == (2.5, 1, 4, 2.5)
    assert found["A=B=C=D"] == (2.5, 2.5, 2.5, 2.5)
    assert all(sum(ranks) == 10 for ranks in found.values())


@pytest.mark.parametrize(
    ("answer", "ranks"),
    [
        ('{"ranking": "D>C>B>A"}', (4, 3, 2, 1)),
        (" A > B = C > D ", (1, 2.5, 2.5, 4)),
        ('{"ranking": "D>C>B"}', None),
        ('{"ranking": 3}', None),
        ("[]", None),
        ("{" * 1000, None),
        ("A>B>C>D>A", None),
        ("", None),
    ],
)
def test_rankings_are_parsed_strictly(answer, ranks):
    assert parse_ranking(answer) == ranks


def test_every_candidate_stands_in_every_position_once():
    for candidate in range(4):
        places = [p for r in range(4) for p in range(4) if rotated(p, r) == candidate]
        assert sorted(places) == [0, 1, 2, 3]


def test_spearman_against_scipy():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, (20, 6)).astype(float), rng.random((20, 6))
    found = spearman(first, second)
    for a, b, value in zip(first, second, found, strict=True):
        assert value == pytest.approx(spearmanr(a, b).statistic)


def test_a_constant_vector_is_undefined_and_stays_in_the_pooled_figure():
    values = np.array([[1.0, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1]])
    ranks = np.array([[4.0, 3, 2, 1], [2.5, 2.5, 2.5, 2.5], [1, 2, 3, 4]])
    found = agreement(ranks, values)
    assert found.defined == 2
    assert found.scenarios == 3
    assert found.within.value == 1
    assert found.within[1:] == (1, 1)
    assert found.pooled.value == pytest.approx(
        float(spearman(-ranks.reshape(1, -1), values.reshape(1, -1))[0])
    )
    assert found.pooled.low <= found.pooled.value <= found.pooled.high


def test_agreement_bootstrap_equals_an_independent_loop():
    rng = np.random.default_rng(1)
    values, ranks = rng.random((6, 4)), rng.permuted(np.tile([1.0, 2, 3, 4], (6, 1)), axis=1)
    indices = np.random.default_rng(2).integers(0, 6, (40, 6))
    found = agreement(ranks, values, indices)
    pooled = [
        float(spearman(-ranks[row].reshape(1, -1), values[row].reshape(1, -1))[0])
        for row in indices
    ]
    within = [
        float(np.mean([spearman(-ranks[[i]], values[[i]])[0] for i in row])) for row in indices
    ]
    assert found.pooled.low == pytest.approx(np.percentile(pooled, 2.5))
    assert found.within.high == pytest.approx(np.percentile(within, 97.5))


def judgement(left, right, choice, **changes):
    fields = {"participant": "p", "scenario": "s", "order": 0, "seconds": 3.0}
    return Judgement(left=left, right=right, choice=choice, **(fields | changes))


def test_ranks_from_pairwise_judgements():
    order = [2, 0, 3, 1]  # best first
    pairs = [
        judgement(a, b, "left" if order.index(a) < order.index(b) else "right")
        for a, b in combinations(range(4), 2)
    ]
    assert ranks_from_pairs(pairs) == (2, 4, 1, 3)
    check = judgement(1, 2, "left", check=True)
    assert ranks_from_pairs([*pairs, check]) == (2, 4, 1, 3)
    assert ranks_from_pairs([judgement(0, 1, "equal")]) == (1.5, 1.5, 3.5, 3.5)
    with pytest.raises(InputError, match="found 2 against 2"):
        ranks_from_pairs([judgement(2, 2, "left")])


def test_models_from_ranking_to_report(tmp_path):
    by_text = {c.text: c.value for _, four in PAIRS for c in four[:3]}
    name_values = {s.question: four[3].value for s, four in PAIRS}

    def answer(request):
        text = request["messages"][0]["content"]
        if request["model"] == "constant":
            return '{"ranking": "A=B=C=D"}'
        question = text.splitlines()[0].removeprefix("Question: ")
        shown = {line[0]: line[3:] for line in text.splitlines() if line[1:3] == ". "}
        values = {k: by_text.get(v, name_values[question]) for k, v in shown.items()}
        ranked = sorted("ABCD", key=lambda letter: -values[letter])
        return json.dumps({"ranking": ">".join(ranked)})

    script = Script(answer)
    runner = CliRunner()
    with serving(script) as url:
        for model in ("perfect", "constant"):
            result = runner.invoke(
                command,
                ["rank", str(tmp_path), "--url", url, "--model", model, "--name", model, "--json"],
                catch_exceptions=False,
            )
            assert json.loads(result.stdout)["answered"] == 48
    body = json.loads(script.requests[0][2])
    assert (
        len(body["response_format"]["json_schema"]["schema"]["properties"]["ranking"]["enum"])
        == 192
    )
    result = runner.invoke(command, ["agreement", str(tmp_path), "--json"], catch_exceptions=False)
    data = json.loads(result.stdout)
    assert data["perfect"]["within"]["value"] == pytest.approx(1)
    assert data["perfect"]["defined"] == 12
    assert data["constant"]["within"]["value"] is None
    assert data["constant"]["defined"] == 0
    assert data["panel"]["within"]["value"] == pytest.approx(1)
    figure = tmp_path / "agreement.svg"
    shown = runner.invoke(command, ["agreement", str(tmp_path), "--figure", str(figure)])
    assert "panel" in shown.stdout
    assert "Spearman" in figure.read_text()
    (tmp_path / "perfect.jsonl").write_text("")
    result = runner.invoke(command, ["agreement", str(tmp_path)])
    assert "a ranking is missing or invalid" in str(result.exception)


def test_an_empty_folder(tmp_path):
    result = CliRunner().invoke(command, ["agreement", str(tmp_path)])
    assert isinstance(result.exception, InputError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("budget = 4", "budget = 5"), "budget: found 5"),
        (('id = "doi:10.5281/zenodo.20533669"', 'id = "somewhere"'), "source.id"),
        (("0.3, 0.2", "0.4, 0.2"), "sums to"),
        (('observation_at = "Abstract"', 'observation_at = ""'), "need a place"),
        (('field = "systems"', 'field = "poetry"'), "field"),
        (("conclusion =", "conclusions ="), "conclusion"),
    ],
)
def test_wrong_scenarios(tmp_path, change, message):
    from importlib.resources import files

    text = (files("outlay.bench.designs") / "scenarios" / "team_coordination.toml").read_text()
    assert change[0] in text
    path = tmp_path / "x.toml"
    path.write_text(text.replace(*change))
    with pytest.raises(InputError, match=message):
        read_scenario(path)
