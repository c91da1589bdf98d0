"""Times to an event: Cox's loss, and what Rota measures of risk scores."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario  # noqa: E402
from plain import values  # noqa: E402

torch.set_num_threads(1)


def made(place, rows=80, entry=False):
    """Rows whose hazard grows with the first column: features, and event, time and entry."""
    draw = np.random.default_rng(place)
    x = draw.normal(size=(rows, 3)).astype(np.float32)
    time = np.ceil(40 * draw.exponential(size=rows) * np.exp(-1.5 * x[:, 0])) + 1
    end = np.ceil(60 * draw.random(rows)) + 1
    event = time <= end
    columns = [event, np.minimum(time, end)]
    if entry:
        columns.append(np.floor(columns[1] * 0.5 * draw.random(rows)))
    return x, np.stack(columns, 1).astype(np.float32)


def by_hand(scores, targets):
    """The loss, sum by sum."""
    rows = [(*row, 0.0)[:3] for row in targets.tolist()]
    loss, events = 0.0, 0
    for now in sorted({time for event, time, _ in rows if event}):
        dying = [at for at, (event, time, _) in enumerate(rows) if event and time == now]
        at_risk = [at for at, (_, time, entry) in enumerate(rows) if entry < now <= time]
        hazard = sum(math.exp(scores[at]) for at in at_risk)
        own = sum(math.exp(scores[at]) for at in dying)
        for place, at in enumerate(dying):
            loss += math.log(hazard - place / len(dying) * own) - scores[at]
            events += 1
    return loss / events


@pytest.mark.parametrize("entry", [False, True])
def test_the_loss_is_the_partial_likelihood_with_efrons_ties(entry):
    x, targets = made(1, entry=entry)
    scores = torch.tensor(2 * x[:, 1], requires_grad=True)
    loss = rota.torch.cox(scores, torch.tensor(targets))
    assert float(loss) == pytest.approx(by_hand(scores.tolist(), targets), rel=1e-5)
    loss.backward()
    for at in (0, 17):
        both = []
        for by in (1e-3, -1e-3):
            moved = scores.detach().double().numpy().copy()
            moved[at] += by
            both.append(by_hand(moved, targets))
        assert float(scores.grad[at]) == pytest.approx((both[0] - both[1]) / 2e-3, abs=1e-5)


def test_a_constant_added_to_all_scores_changes_nothing():
    x, targets = made(2)
    scores, targets = torch.tensor(x[:, :1]).double(), torch.tensor(targets)
    found = float(rota.torch.cox(scores, targets))
    assert float(rota.torch.cox(scores + 500, targets)) == pytest.approx(found, abs=1e-9)


def test_rows_without_an_event_have_no_loss_and_no_slope():
    scores = torch.zeros(3, requires_grad=True)
    loss = rota.torch.cox(scores, torch.tensor([[0.0, 1.0], [0, 2], [0, 3]]))
    loss.backward()
    assert float(loss) == 0 and not scores.grad.any()


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 4)])
def test_targets_that_are_no_times_are_refused(shape):
    with pytest.raises(ValueError, match="the event, its time"):
        rota.torch.cox(torch.zeros(4), torch.ones(shape))
    with pytest.raises(ValueError, match="one risk score per row"):
        rota.torch.cox(torch.zeros(4, 2), torch.ones(4, 2))


def learner(silo, **changes):
    torch.manual_seed(0)
    x, targets = made(silo.place, **changes)
    half = len(x) // 2
    return rota.torch.Learner(
        nn.Linear(3, 1, bias=False),
        rota.torch.cox,
        (x[:half], targets[:half]),
        (x[half:], targets[half:]),
        silo=silo,
        device="cpu",
    )


def test_a_learner_says_that_its_outputs_are_risk_scores():
    one = learner(rota.Silo("north", 0, 1, 0, []))
    assert one.outputs_loss == "cox"
    found = one.outputs(values(one), "test", {})
    assert np.asarray(found.outputs).reshape(-1).shape == (40,)
    assert np.asarray(found.targets).shape == (40, 2)
    loss = one.evaluate(values(one), "test", {})["loss"]
    expected = by_hand(np.asarray(found.outputs, float).reshape(-1).tolist(), np.asarray(found.targets))
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("entry", [False, True])
def test_a_simulation_reports_the_concordance_of_programs(entry):
    def of(silo):
        return learner(silo, entry=entry)

    task = external(of(rota.Silo("first", 0, 3, 0, [])), metric="concordance")
    how = {"epochs": 5, "batch": 0, "optimiser": {"name": "sgd", "rate": 0.5}}
    given = scenario(task, rounds=6, strategy={"name": "fedavg", "training": how})
    summary = rota.simulate(given, learner=of)
    assert summary["metric"]["higher_is_better"]
    last = [line[-1] for line in summary.curves().values()]
    assert np.mean(last) > 0.7, last


def test_targets_that_rota_cannot_read_are_said():
    class Wrong(rota.Learner):
        outputs_loss = "cox"

        def tensors(self):
            return [rota.Tensor("w", (1,))]

        def rows(self):
            return rota.Rows(train=4, test=4)

        def initial(self, seed):
            return {"w": np.zeros(1)}

        def train(self, start, training):
            return rota.Update(model=start, metrics={"loss": 0.0})

        def evaluate(self, model, split, personal):
            return {"loss": 0.0}

        def outputs(self, model, split, personal):
            # Time before event.
            return rota.Outputs(np.zeros((4, 1)), np.array([[5.0, 1], [6, 1], [7, 0], [8, 1]]))

    task = external(Wrong(), metric="concordance")
    with pytest.raises(rota.RotaError, match="an event is 1, or 0 where the row is censored"):
        rota.simulate(scenario(task), learner=lambda silo: Wrong())
