"""Scripts that were written for `nvflare.client`, unchanged, beside plain loops."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.flare  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario  # noqa: E402
from plain import classes, draw  # noqa: E402

torch.set_num_threads(1)
F = nn.functional

SCRIPT = """
import torch
from torch import nn
import nvflare.client as flare
from plain import classes, draw

def main():
    model = nn.Linear(4, 3)
    flare.init()
    place = int(flare.get_site_name().split()[-1]) - 1
    x, y = draw(12, 4, seed=place), classes(3, 12, seed=place)
    while flare.is_running():
        input_model = flare.receive()
        model.load_state_dict(input_model.params)
        with torch.no_grad():
            outputs = model(x)
            accuracy = float((outputs.argmax(1) == y).float().mean())
        ASK_EVALUATE
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for some in torch.randperm(12).split(4):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x[some]), y[some]).backward()
                optimizer.step()
        flare.send(flare.FLModel(params=PARAMS, metrics={"accuracy": accuracy}, meta={"NUM_STEPS_CURRENT_ROUND": 6} MORE))

if __name__ == "__main__":
    main()
"""
EVALUATES = 'if flare.is_evaluate():\n            flare.send(flare.FLModel(metrics={"accuracy": accuracy}))\n            continue'
DIFFERENCE = "{name: value - input_model.params[name] for name, value in model.state_dict().items()}"
SPELLINGS = {
    "as in the tutorial": ("", "model.cpu().state_dict()", ""),
    "with evaluation": (EVALUATES, "model.state_dict()", ""),
    "differences": (EVALUATES, DIFFERENCE, ', params_type="DIFF"'),
    "arrays": ("", "{name: value.numpy() for name, value in model.state_dict().items()}", ""),
}


def start():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(4, 3).state_dict()


def plain(model, place, seed):
    net = nn.Linear(4, 3)
    net.load_state_dict({name: torch.tensor(value) for name, value in model.items()})
    x, y = draw(12, 4, seed=place), classes(3, 12, seed=place)
    torch.manual_seed(seed)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for some in torch.randperm(12).split(4):
            optimiser.zero_grad()
            F.cross_entropy(net(x[some]), y[some]).backward()
            optimiser.step()
    return {name: value.numpy() for name, value in net.state_dict().items()}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_script_is_a_learner_unchanged(spelling, tmp_path):
    asks, params, more = SPELLINGS[spelling]
    path = tmp_path / "client.py"
    path.write_text(SCRIPT.replace("ASK_EVALUATE", asks).replace("PARAMS", params).replace(" MORE", more))
    make = rota.flare.script(path, start, rota.Rows(12, test=12), loss=lambda metrics: 1 - metrics["accuracy"])
    asked = []

    def watched(silo):
        made = make(silo)
        trained = made.train

        def train(begin, training):
            found = trained(begin, training)
            begin = {name: np.array(value) for name, value in begin.items()}
            asked.append((silo.place, begin, training.seed % (1 << 63), found))
            return found

        made.train = train
        return made

    task = external(make(rota.Silo("silo 1", 0, 2, 0, [])), metric="accuracy")
    summary = rota.simulate(scenario(task, rounds=2, silos=2), learner=watched, references=False)
    assert len(asked) == 4
    for place, begin, seed, found in asked:
        expected = plain(begin, place, seed)
        for name, value in expected.items():
            close = np.allclose(found.model[name], value, atol=1e-7) if spelling == "differences" else np.array_equal(found.model[name], value)
            assert close, name
        assert found.metrics["steps"] == 6
    mean = np.mean([found.model["weight"] for _, _, _, found in asked[:2]], axis=0)
    assert np.allclose(asked[2][1]["weight"], mean, atol=1e-6)
    assert all(0 <= one["coalition"] <= 1 for one in summary["silos"])


def learner(function, **options):
    return rota.flare.script(function, start, rota.Rows(12, test=12), **options)(rota.Silo("silo 1", 0, 1, 0, []))


def test_what_a_script_does_not_do_is_said():
    learner(lambda: None)
    import nvflare.client as flare

    def ends():
        flare.init()
        flare.receive()

    def raises():
        flare.receive()
        raise ZeroDivisionError("mine")

    def sends(model):
        def function():
            while flare.is_running():
                flare.receive()
                flare.send(model)

        return function

    for function, why in [(ends, "the script ended"), (raises, "mine")]:
        with pytest.raises((RuntimeError, ZeroDivisionError), match=why):
            learner(function).evaluate(learner(function).initial(0), "test", {})
    from conftest import training

    with pytest.raises(ValueError, match="without `params`"):
        made = learner(sends(flare.FLModel(metrics={"loss": 1.0})))
        made.train(made.initial(0), training())
    with pytest.raises(ValueError, match="sent no 'bias'; it sent weight"):
        made = learner(sends(flare.FLModel(params={"weight": np.zeros((3, 4))})))
        made.train(made.initial(0), training())
    with pytest.raises(RuntimeError, match="rota.flare.script"):
        flare.init()
