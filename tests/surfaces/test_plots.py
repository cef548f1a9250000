from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from outlay.errors import InputError
from outlay.surfaces.calling import ablate


def program(config):
    if config["a"] and config["b"]:
        raise RuntimeError("boom")
    return 2.0 * config["a"] - config["b"] + config["c"] * config["a"]


@pytest.fixture(scope="module")
def surface():
    return ablate(program, ["a", "b", "c"], 6)


@pytest.mark.parametrize("kind", ["effects", "interactions", "surface"])
def test_every_picture_is_drawn(surface, kind, tmp_path):
    file = tmp_path / f"{kind}.png"
    surface.plot(kind).savefig(file)
    assert file.stat().st_size > 5000


def test_pictures_show_every_factor_and_mark_what_is_known(surface):
    axes = surface.plot("effects").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert "value" in axes.get_xlabel()
    dots, crosses = surface.plot("surface").axes[0].collections
    assert len(dots.get_offsets()) == surface.table().measured.sum()
    assert len(crosses.get_offsets()) == (surface.table().failed != "").sum()
    assert crosses.get_path_effects()  # a light rim, so that dark tiles show them, too


def test_a_large_space_shows_the_effects_from_measured_backgrounds():
    names = [f"f{i}" for i in range(10)]
    large = ablate(lambda c: 1.0 * c["f0"] + c["f1"] * c["f2"], names, 6)
    axes = large.plot("effects").axes[0]
    assert "measured backgrounds" in axes.get_title()
    dots = [len(c.get_offsets()) for c in axes.collections if isinstance(c, PathCollection)]
    assert len(dots) == 10
    assert max(dots) <= 6


def test_interactions_that_are_not_told_from_0_are_faded_and_levels_are_named():
    def by_model(config):
        return 2.0 * (config["model"] == "svm") * config["a"] + config["b"]

    factors = {"a": [0, 1], "b": [0, 1], "model": ["lr", "rf", "svm"]}
    axes = ablate(by_model, factors, 12).plot("interactions").axes[0]
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts[2, 0] == texts[0, 2] == "2*\nsvm"
    assert "svm" not in texts[1, 0]
    alpha = axes.images[0].get_alpha()
    assert alpha[0, 2] == 1
    assert alpha[0, 1] < 0.3
    noise = np.random.default_rng(0)
    nothing = ablate(lambda c: noise.normal(), list("abc"), 8, noise=1.0)
    assert not any("*" in text.get_text() for text in nothing.plot("interactions").axes[0].texts)
    assert (nothing.plot("interactions").axes[0].images[0].get_alpha() < 0.3).all()


def test_names_are_no_mathematics_and_a_notebook_shows_the_picture():
    odd = ablate(lambda c: 1.0 * c["$a_{$"], ["$a_{$", "b$"], 4)
    for kind in ("effects", "interactions", "surface"):
        assert odd.plot(kind)._repr_png_().startswith(b"\x89PNG")


def test_wrong_kinds_and_too_many_tiles_are_refused(surface):
    with pytest.raises(InputError, match="effects, interactions, surface"):
        surface.plot("cube")
    large = ablate(lambda c: float(c["f0"]), [f"f{i}" for i in range(11)], 4)
    with pytest.raises(InputError, match="1024"):
        large.plot("surface")


def test_pyplot_is_not_touched(surface):
    surface.plot("effects")
    assert "matplotlib.pyplot" not in sys.modules
