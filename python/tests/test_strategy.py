"""Strategies of one's own: coefficients in, models out, in simulations and comparisons."""

import importlib.util

import numpy as np
import pytest

import rota
from rota._strategy import PARTS, parts

from conftest import EXAMPLES

spec = importlib.util.spec_from_file_location("strategies", EXAMPLES / "strategies.py")
examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(examples)


class Watched:
    """The learner of the examples, which writes down what it was asked and answered, by silo."""

    def __init__(self, epochs=None):
        self.asked, self.epochs = {}, epochs or {}

    def __call__(self, silo):
        made = examples.learner(silo)
        plain = made.train

        def train(start, training):
            start = {name: np.array(value, float) for name, value in start.items()}
            changed = rota.Training(**{**vars(training), "epochs": self.epochs.get(silo.place, training.epochs)})
            found = plain({name: value.astype(np.float32) for name, value in start.items()}, changed)
            rows = made.rows().train
            self.asked.setdefault(silo.place, []).append((start["weight"], found.model["weight"].astype(float), rows, found.metrics["steps"]))
            return found

        made.train = train
        return made


def simulated(own, learner=None, **changes):
    scenario = examples.SCENARIO | changes
    return rota.simulate(scenario, learner=learner or Watched(), strategy=own, references=False, keep="models")


class Rows(rota.Strategy):
    def settle(self, round):
        return round.row(entries=round.rows)


class Equal(rota.Strategy):
    needs = []

    def settle(self, round):
        return round.row(entries=np.full(round.entries, 1 / round.entries))


def final(summary):
    return [summary.model(one["name"])["weight"] for one in summary["silos"]]


def test_an_own_fedavg_is_fedavg_to_the_bit():
    own, fedavg = simulated(Rows()), simulated("fedavg")
    assert own["strategy"] == "custom" or own["strategy"]["name"] == "custom"
    assert all(np.array_equal(one, other) for one, other in zip(final(own), final(fedavg), strict=True))
    assert [one["coalition"] for one in own["silos"]] == [one["coalition"] for one in fedavg["silos"]]


def test_rounded_coefficients_are_nearly_those_of_equal_weights():
    strategy = {"name": "fedavg", "weight": "equal", "training": examples.SCENARIO["strategy"]["training"]}
    own, fedavg = simulated(Equal()), rota.simulate(examples.SCENARIO | {"strategy": strategy}, learner=Watched(), references=False, keep="models")
    assert np.allclose(final(own), final(fedavg), atol=1e-6, rtol=0)


def test_fednova_is_its_formula():
    watched = Watched({0: 5, 3: 2})
    simulated(examples.FedNova(), watched, rounds=3)
    for turn in range(2):
        start = watched.asked[0][turn][0]
        share = np.array([one[turn][2] for one in watched.asked.values()], float)
        share /= share.sum()
        steps = np.array([one[turn][3] for one in watched.asked.values()], float)
        assert len(set(steps)) > 2
        ends = np.array([one[turn][1] for one in watched.asked.values()])
        expected = start + (share @ steps) * ((share / steps) @ (ends - start))
        for one in watched.asked.values():
            assert np.allclose(one[turn + 1][0], expected, atol=2e-7)
    # A silo with five times the steps pulls the mean of FedAvg further.
    plain = share @ ends
    assert not np.allclose(plain, expected, atol=1e-3)


def test_k_means_finds_planted_groups():
    summary = simulated(examples.KMeans(groups=2), rounds=30)
    groups = [one["coalition_index"] for one in summary["silos"]]
    assert groups in ([0, 1] * 3, [1, 0] * 3)
    alone = simulated("fedavg", rounds=30)
    mean = np.mean([one["coalition"] for one in summary["silos"]])
    assert mean < 0.2 * np.mean([one["coalition"] for one in alone["silos"]])
    # Each group's model is the truth of its silos.
    for nth, model in enumerate(final(summary)):
        assert np.allclose(model, np.array([1.0, -2.0, 0.5]) * (-1) ** nth, atol=0.3)


@pytest.mark.parametrize("groups", [1, 3])
def test_k_means_takes_any_number_of_groups(groups):
    found = examples.KMeans(groups).grouped(np.diag([1.0, 4.0, 9.0]) + 0.1)
    assert len(set(found)) == groups


def test_momentum_is_that_of_the_catalogue():
    strategy = {"name": "fedavg", "momentum": 0.5, "training": examples.SCENARIO["strategy"]["training"]}
    own = simulated(examples.Momentum(0.5))
    built_in = rota.simulate(examples.SCENARIO | {"strategy": strategy}, learner=Watched(), references=False, keep="models")
    plain = simulated("fedavg")
    assert np.allclose(final(own), final(built_in), atol=1e-5)
    assert not np.allclose(final(own), final(plain), atol=1e-3)


def test_what_a_strategy_keeps_comes_back_and_nothing_else():
    seen = []

    class Keeping(rota.Strategy):
        needs = ["rows", "state", "updates", "gram", "scores", "names", "numbers:steps"]

        def settle(self, round):
            seen.append((round.number, round.kept, list(round.state), len(round.entry_models())))
            assert round.entry_models()[0]["weight"].shape == (3,)
            assert len(round.start_models()) == round.starts and len(round.kept_models()) == round.kept
            changes = np.array([model["weight"].astype(float) - round.start_models()[0]["weight"] for model in round.entry_models()])
            assert np.allclose(round.gram, changes @ changes.T, rtol=1e-6)
            assert round.scores.shape == (6, 6) and (np.diag(round.scores) > 0).all()
            assert sorted(round.members) == list(range(6)) and (round.numbers["steps"] >= 2).all()
            return rota.Settled(round.row(entries=round.rows), keep=[round.row(entries=round.rows), round.row(starts=[1])], state=[round.number / 3])

    simulated(Keeping(), rounds=3)
    assert seen == [(1, 0, [], 6), (2, 2, [1 / 3], 6), (3, 2, [2 / 3], 6)]


@pytest.mark.parametrize("needs", [["rows", "scores"], ["rows", "numbers:steps"], ["rows", "names", "gram"], ["rows", "scores", "numbers:steps"]])
def test_what_a_strategy_needs_goes_together(needs):
    class Seeing(Rows):
        pass

    Seeing.needs = needs
    assert np.array_equal(final(simulated(Seeing(), rounds=2)), final(simulated("fedavg", rounds=2)))


def broken(found, needs=("rows",)):
    class Broken(rota.Strategy):
        def settle(self, round):
            return found(round)

    Broken.needs = list(needs)
    return Broken()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (lambda round: [1.0], "a row has 7 numbers: 1 start models, 0 kept models and 6 entries"),
        (lambda round: round.row(entries=[0.1] * 6), "row 0 of `coefficients` sums to 0.6"),
        (lambda round: round.row(entries=[np.nan] * 6), "not finite"),
        (lambda round: round.row(entries=[1, 2]), "there are 2 coefficients for 6 models"),
        (lambda round: round.row(entries=[0] * 6), "sums to 0"),
        (lambda round: rota.Settled(round.row(entries=round.rows), assignment=[0] * 5), "for each of the 6 entries"),
        (lambda round: rota.Settled(round.row(entries=round.rows), assignment=[1] * 6), "names group 1"),
        (lambda round: rota.Settled(round.row(entries=round.rows), state=[1]), 'write "state" into `needs`'),
        (lambda round: round.entry_models(), 'write "updates" into `needs`'),
        (lambda round: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_strategy_without_coefficients_is_the_errors_cause(found, why):
    with pytest.raises(rota.RotaError, match=why) as caught:
        simulated(broken(found))
    assert isinstance(caught.value.__cause__, (ValueError, ZeroDivisionError))


def test_unknown_needs_are_refused_before_anything_is_trained():
    watched = Watched()
    with pytest.raises(rota.RotaError, match="numbers:NAME"):
        simulated(broken(lambda round: None, ["everything"]), watched)
    with pytest.raises(rota.RotaError, match="cost"):
        simulated(broken(lambda round: None, ["numbers:cost"]), watched)
    with pytest.raises(TypeError, match="make one of it, Rows\\(\\)"):
        simulated(Rows)
    with pytest.raises(TypeError, match="derives from rota.Strategy"):
        simulated(object())


def test_where_only_sums_are_opened_a_strategy_is_refused():
    with pytest.raises(rota.RotaError, match="its rule gives every single model a coefficient"):
        equal = examples.SCENARIO["strategy"] | {"weight": "equal"}
        simulated(Rows(), privacy={"mode": "secure-aggregation"}, strategy=equal)


def test_a_rule_that_nobody_has_is_refused_with_why():
    strategy = examples.SCENARIO["strategy"] | {"name": "custom", "rule": "theirs"}
    with pytest.raises(rota.RotaError, match="the rule \"theirs\" .* is not known in this process.*rota.Strategy"):
        rota.simulate(examples.SCENARIO | {"strategy": strategy}, learner=examples.learner)


def test_a_comparison_has_own_strategies_beside_others():
    found = rota.compare(
        examples.SCENARIO | {"rounds": 2},
        strategies=["fedavg, by rows", Rows(), examples.KMeans(2), Rows()],
        learner=examples.learner, seeds=2, tuned=False,
    )
    rows = {row["strategy"]: row["silos"] for row in found._rows()}
    assert list(rows) == ["fedavg, by rows", "rows", "k-means", "rows 2"]
    assert rows["fedavg, by rows"] == rows["rows"] == rows["rows 2"] != rows["k-means"]


def test_coefficients_are_parts_that_sum_to_one():
    draw = np.random.default_rng(1)
    for count in (1, 2, 3, 7, 100):
        row = draw.dirichlet(np.full(count, 0.3))
        row = row + draw.normal(size=count)
        row = row + (1 - row.sum()) / count
        found = parts("row", row)
        assert sum(found) == PARTS or sum(found) == 1
        assert np.abs(np.array(found) / sum(found) - row).max() <= 2.0**-24
    assert parts("row", np.array([3.0, 0.0, 5.0])) == [3, 0, 5]
    assert parts("row", np.array([0.25, 0.75])) == [PARTS // 4, 3 * PARTS // 4]


def test_the_example_runs(capsys):
    examples.main()
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == ["fedavg", "fednova", "k-means", "momentum"]
