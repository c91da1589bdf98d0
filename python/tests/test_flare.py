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
    # The package itself says it in its own words.
    with pytest.raises(RuntimeError, match="rota.flare.script|ClientAPI"):
        flare.init()


def test_a_script_that_ends_after_its_loop_ends_in_order():
    ended = []

    def function():
        import nvflare.client as flare

        flare.init()
        while flare.is_running():
            first, again = flare.receive(), flare.receive()
            assert first is again, "until it is answered, the same model is received"
            flare.send(flare.FLModel(params=first.params, metrics={"loss": 1.0}))
        ended.append("saved")

    made = learner(function)
    first = made.initial(0)
    assert made.evaluate(first, "test", {})["loss"] == made.evaluate(first, "test", {})["loss"] == 1.0
    thread = made._talk._thread
    del made
    thread.join(10.0)
    assert ended == ["saved"]


def test_a_script_knows_the_round_as_flare_counts_it():
    from conftest import training

    seen = []

    def function():
        import nvflare.client as flare

        while flare.is_running():
            model = flare.receive()
            seen.append((model.current_round, model.total_rounds, flare.is_evaluate()))
            flare.send(flare.FLModel(params=model.params, metrics={"loss": 1.0}))

    made = learner(function)
    made.evaluate(made.initial(0), "test", {})
    made.round, made.rounds = 3, 8
    made.train(made.initial(0), training(round=3, rounds=8))
    made.evaluate(made.initial(0), "test", {})
    assert seen == [(None, None, True), (2, 8, False), (2, 8, True)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_decorators_of_the_package_learn_unchanged():
    pytest.importorskip("nvflare.client.decorator", reason="the package nvflare is not installed")
    from conftest import training

    x, y = draw(12, 4), classes(3, 12)

    def function():
        import nvflare.client as flare

        model = nn.Linear(4, 3)

        @flare.evaluate
        def measured(input_model=None):
            model.load_state_dict(input_model.params)
            return {"loss": float(F.cross_entropy(model(x), y))}

        @flare.train
        def fit(input_model=None):
            model.load_state_dict(input_model.params)
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                optimiser.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimiser.step()
            return flare.FLModel(params=model.state_dict())

        flare.init()
        while flare.is_running():
            measured()
            if flare.is_train():
                fit()

    made = learner(function)
    found = made.train(made.initial(0), training()).model
    net = nn.Linear(4, 3)
    net.load_state_dict(start())
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()
    assert all(np.array_equal(found[name], value.numpy()) for name, value in net.state_dict().items())
    assert made.evaluate(found, "test", {})["loss"] == pytest.approx(float(F.cross_entropy(net(x), y)))


@pytest.mark.filterwarnings("ignore")
def test_a_patched_lightning_trainer_learns_unchanged():
    pytest.importorskip("nvflare.client.api", reason="the package nvflare is not installed")
    lightning = pytest.importorskip("pytorch_lightning")
    from conftest import training

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def training_step(self, batch, place):
            return F.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, place):
            self.log("loss", F.cross_entropy(self.layer(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    rows = torch.utils.data.TensorDataset(draw(12, 4), classes(3, 12))
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)

    def trainer():
        return lightning.Trainer(max_epochs=2, accelerator="cpu", **quiet)

    def function():
        import nvflare.client as flare
        from nvflare.client.lightning import patch

        module, own = Module(), trainer()
        patch(own)
        while flare.is_running():
            flare.receive()
            own.validate(module, torch.utils.data.DataLoader(rows, 4), verbose=False)
            if not flare.is_evaluate():
                own.fit(module, torch.utils.data.DataLoader(rows, 4))

    make = rota.flare.script(function, lambda: {f"layer.{name}": value for name, value in start().items()}, rota.Rows(12, test=12))
    made = make(rota.Silo("silo 1", 0, 1, 0, []))
    found = made.train(made.initial(0), training())
    alone = Module()
    alone.layer.load_state_dict(start())
    trainer().fit(alone, torch.utils.data.DataLoader(rows, 4))
    assert all(np.array_equal(found.model[name], value.numpy()) for name, value in alone.state_dict().items())
    assert made.evaluate(found.model, "test", {})["loss"] < found.metrics["loss"]
