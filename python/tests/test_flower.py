"""Clients that were written for Flower, unchanged, beside plain loops; with the package flwr where it is installed."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.flower  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario  # noqa: E402
from plain import classes, draw  # noqa: E402

torch.set_num_threads(1)
F = nn.functional


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def rows(place):
    return draw(12 + 4 * place, 4, seed=place), classes(3, 12 + 4 * place, seed=place)


def fitted(model, place, rate, epochs):
    x, y = rows(place)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    model.train()
    total = 0.0
    for _ in range(epochs):
        for some in torch.randperm(len(x)).split(4):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x[some]), y[some])
            loss.backward()
            optimiser.step()
            total += float(loss.detach())
    return total


def measured(model, place):
    x, y = rows(place + 5)
    model.eval()
    with torch.no_grad():
        outputs = model(x)
    return float(F.cross_entropy(outputs, y)), len(x), float((outputs.argmax(1) == y).float().mean())


class FlowerClient:
    """As the tutorials write it; `flwr.client.NumPyClient` is its base where the package is installed."""

    def __init__(self, net, partition):
        self.net, self.partition = net, partition

    def get_parameters(self, config):
        return [value.cpu().numpy() for _, value in self.net.state_dict().items()]

    def set_parameters(self, parameters):
        state = {name: torch.tensor(value) for name, value in zip(self.net.state_dict(), parameters)}
        self.net.load_state_dict(state, strict=True)

    def fit(self, parameters, config):
        self.set_parameters(parameters)
        loss = fitted(self.net, self.partition, config["lr"], config["local_epochs"])
        return self.get_parameters({}), len(rows(self.partition)[0]), {"train_loss": loss, "round": config["server_round"]}

    def evaluate(self, parameters, config):
        self.set_parameters(parameters)
        loss, count, accuracy = measured(self.net, self.partition)
        return loss, count, {"accuracy": accuracy}


def client_fn(context):
    return FlowerClient(network(), context.node_config["partition-id"])


def simulated(make, seen, **options):
    def watched(silo):
        made = make(silo)
        plain = made.train

        def train(start, training):
            found = plain(start, training)
            seen.setdefault(silo.place, []).append(({name: np.array(value) for name, value in start.items()}, training, found))
            return found

        made.train = train
        return made

    task = external(make(rota.Silo("first", 0, 2, 0, [])), metric="accuracy")
    return rota.simulate(scenario(task, rounds=2, silos=2), learner=watched, references=False, **options)


def by_name(arrays):
    """A client without names has the order of the network's state."""
    names = list(network().state_dict())
    return arrays if set(names) == set(arrays) else dict(zip(names, (arrays[key] for key in sorted(arrays)), strict=True))


def check(summary, seen):
    """Every training is that of a plain loop from the same start, and silos weigh their rows."""
    for place in range(2):
        for turn, (start, training, found) in enumerate(seen[place]):
            net = network()
            own = net.state_dict()
            net.load_state_dict({name: torch.tensor(value).reshape(own[name].shape).to(own[name].dtype) for name, value in by_name(start).items()})
            torch.manual_seed(training.seed % (1 << 63))
            fitted(net, place, training.rate, training.epochs)
            for name, value in by_name(found.model).items():
                assert np.array_equal(np.asarray(value), net.state_dict()[name].numpy()), name
            assert found.samples == 12 + 4 * place and training.round == turn + 1
    first = [seen[place][0][2] for place in range(2)]
    for name in first[0].model:
        mean = np.average([np.asarray(one.model[name], float) for one in first], axis=0, weights=[12, 16])
        assert np.allclose(seen[0][1][0][name], mean, atol=1e-6)
    assert summary.metric == "accuracy" and all(0 <= one["coalition"] <= 1 for one in summary["silos"])


def test_a_numpy_client_is_a_learner_unchanged(capsys):
    seen = {}
    summary = simulated(rota.flower.client(client_fn), seen)
    check(summary, seen)
    # Once where it is described, and once in the simulation.
    assert capsys.readouterr().err.count("trained once before the first round") == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda cid: FlowerClient(network(), int(cid)),
        lambda: FlowerClient(network(), 0),
        lambda context: SimpleNamespace(numpy_client=client_fn(context)),
    ],
)
def test_clients_are_made_by_what_their_function_takes(make):
    counts = rota.Rows(12, test=17)
    learner = rota.flower.client(make, rows=counts)(rota.Silo("first", 0, 2, 0, []))
    assert learner.rows() is counts and len(learner.tensors()) == 9
    learner.check()


def test_one_client_serves_a_silo_and_what_is_none_is_refused():
    learner = rota.flower.client(FlowerClient(network(), 0), rows=lambda silo: rota.Rows(12, test=17))
    assert learner(rota.Silo("first", 0, 1, 0, [])).rows().test == 17
    with pytest.raises(TypeError, match="has no `fit`"):
        rota.flower.client(lambda: 3)(rota.Silo("first", 0, 1, 0, []))
    with pytest.raises(ValueError, match="its test rows alone"):
        learner(rota.Silo("first", 0, 1, 0, [])).evaluate({}, "train", {})


def test_a_client_of_the_package_is_a_learner():
    flwr = pytest.importorskip("flwr.client")

    class Client(FlowerClient, flwr.NumPyClient):
        pass

    def make(context):
        return Client(network(), context.node_config["partition-id"]).to_client()

    seen = {}
    check(simulated(rota.flower.client(make, rows=lambda silo: rota.Rows(12 + 4 * silo.place, test=32 + 4 * silo.place)), seen), seen)


def test_a_client_app_is_a_learner_unchanged():
    flwr = pytest.importorskip("flwr.app")
    clientapp = pytest.importorskip("flwr.clientapp")
    app = clientapp.ClientApp()

    @app.train()
    def train(msg, context):
        model = network()
        model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
        place = context.node_config["partition-id"]
        loss = fitted(model, place, msg.content["config"]["lr"], context.run_config["local-epochs"])
        metrics = flwr.MetricRecord({"train_loss": loss, "num-examples": len(rows(place)[0])})
        content = flwr.RecordDict({"arrays": flwr.ArrayRecord(model.state_dict()), "metrics": metrics})
        return flwr.Message(content=content, reply_to=msg)

    @app.evaluate()
    def evaluate(msg, context):
        model = network()
        model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
        loss, count, accuracy = measured(model, context.node_config["partition-id"])
        metrics = flwr.MetricRecord({"eval_loss": loss, "accuracy": accuracy, "num-examples": count})
        return flwr.Message(content=flwr.RecordDict({"metrics": metrics}), reply_to=msg)

    seen = {}
    check(simulated(rota.flower.app(app, network().state_dict(), run_config={"local-epochs": 2}), seen), seen)
