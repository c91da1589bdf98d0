"""Which agreed tensor is which of the module, where one institution's program is not written like another's:
names, wrappers, and the columns of rows."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, draw, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional


def named_attention(names, applied="qkv"):
    """Attention whose projections are defined in this order: each word says what it is."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            for name in names:
                setattr(self, name, nn.Linear(4, 4))
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            made = {one: next(getattr(self, name) for name in names if name[0] == one)(x) for one in applied}
            q, k, v = (made[one] for one in "qkv")
            return self.out((q @ k.mT).softmax(-1) @ v).mean(1)

    return Attention()


def learner_of(model, **options):
    data = (draw(10, 3, 4), draw(10, 1))
    return rota.torch.Learner(model, F.mse_loss, data, data, device="cpu", **options)


FIRST = ("query", "key", "value")


def federation(models, **options):
    """A simulation in which the program of each silo has a module of its own."""
    task = external(learner_of(models[0]()))
    make = lambda silo: learner_of(models[silo.place](), silo=silo, **options.get(str(silo.place), {}))  # noqa: E731
    return rota.simulate(scenario(task, rounds=1, silos=len(models)), learner=make, references=False)


def test_other_names_go_together_in_the_order_of_definition():
    """By the alphabet, `key` would be taken for the query of a module that calls it `q_proj`."""
    first = learner_of(named_attention(FIRST))
    layout = list(first.tensors())
    assert [tensor.name for tensor in layout][:3] == ["query.weight", "query.bias", "key.weight"]
    other = learner_of(named_attention(("q_proj", "k_proj", "v_proj")), silo=silo(layout=layout))
    start = values(first)
    assert [tensor.name for tensor in other.tensors()] == [tensor.name for tensor in layout]
    assert np.array_equal(*(one.evaluate(start, "test", {})["loss"] for one in (first, other)))
    assert all(np.array_equal(*pair) for pair in zip(*(list(one.train(start, training()).model.values()) for one in (first, other))))


def test_the_same_order_with_other_names_learns_together():
    found = federation([lambda: named_attention(FIRST), lambda: named_attention(("q_lin", "k_lin", "v_lin"))])
    assert not found["training_failed"]


SWAPPED = [("k_proj", "q_proj", "v_proj"), ("v", "k", "q"), ("q2", "v2", "k2")]


@pytest.mark.parametrize("order", SWAPPED)
def test_another_order_of_definition_learns_together(order):
    first, layout = learner_of(named_attention(FIRST)), list(learner_of(named_attention(FIRST)).tensors())
    other = learner_of(named_attention(order), silo=silo(layout=layout))
    start = values(first)
    assert np.array_equal(*(one.evaluate(start, "test", {})["loss"] for one in (first, other)))
    found = federation([lambda: named_attention(FIRST), lambda: named_attention(order)])
    assert not found["training_failed"]


@pytest.mark.parametrize("order", SWAPPED)
def test_another_order_and_names_are_refused_by_what_is_computed(order):
    applied = "".join(name[0] for name in order)
    with pytest.raises(rota.RotaError, match="computes something else.*(say by `names`|names).*"):
        federation([lambda: named_attention(FIRST), lambda: named_attention(order, applied)])


@pytest.mark.parametrize("order", SWAPPED)
def test_names_say_which_is_which(order):
    agreed = {one: next(name for name in order if name[0] == one[0]) for one in FIRST} | {"out": "out"}
    names = {f"{one}.{part}": f"{mine}.{part}" for one, mine in agreed.items() for part in ("weight", "bias")}
    found = federation([lambda: named_attention(FIRST), lambda: named_attention(order)], **{"1": {"names": names}})
    assert not found["training_failed"]


def test_the_same_names_with_another_meaning_are_refused():
    """The shapes, the names and the order are the same, and the network is not."""

    class Other(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.query, self.key, self.value, self.out = inner.query, inner.key, inner.value, inner.out

        def forward(self, x):
            q, k, v = self.key(x), self.query(x), self.value(x)
            return self.out((q @ k.mT).softmax(-1) @ v).mean(1)

    with pytest.raises(rota.RotaError, match='"silo 2": its program computes something else'):
        federation([lambda: named_attention(FIRST), lambda: Other(named_attention(FIRST))])
    for change in (nn.ReLU, nn.GELU, nn.Sigmoid):
        with pytest.raises(rota.RotaError, match="its network is another"):
            federation([lambda: stack(nn.Tanh), lambda change=change: stack(change)])


def stack(between):
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 5), between(), nn.Linear(5, 1))


def test_alphabetical_names_are_no_order_of_definition():
    """A layout that is sorted, as files are, does not say which of three equal layers is which."""
    model = named_attention(("q_proj", "k_proj", "v_proj"))
    layout = {tensor.name: tensor.shape for tensor in learner_of(named_attention(FIRST)).tensors()}
    by_letter = {name: layout[name] for name in sorted(layout)}
    with pytest.raises(ValueError, match="key, query, value is which of the module's q_proj, k_proj, v_proj.*`names`"):
        rota.torch.match(model, by_letter)
    # Shapes that tell which is which need no order, and counted layers say theirs.
    other = {"z.weight": (5, 12), "z.bias": (5,), "a.weight": (1, 5), "a.bias": (1,)}
    assert rota.torch.match(stack(nn.Tanh), other)["z.weight"] == "1.weight"
    deep = nn.Sequential(*(nn.Linear(4, 4) for _ in range(11)))
    counted = {f"dense{at}.{part}": shape for at in range(1, 12) for part, shape in [("weight", (4, 4)), ("bias", (4,))]}
    found = rota.torch.match(deep, {name: counted[name] for name in sorted(counted)})
    assert found["dense2.weight"] == "1.weight" and found["dense11.bias"] == "10.bias"


def test_layers_that_do_not_correspond_are_refused():
    model = stack(nn.Tanh)
    with pytest.raises(ValueError, match="are not those of the agreed model"):
        rota.torch.match(model, {"a.weight": (5, 12), "a.bias": (5,), "b.weight": (2, 5), "b.bias": (2,)})
    with pytest.raises(ValueError, match="give `names`"):
        rota.torch.match(model, {"a.weight": (5, 12), "a.bias": (5,), "b.kernel": (1, 5), "b.bias": (1,)})


def test_other_shapes_under_the_agreed_names_are_named():
    model = nn.Sequential(nn.Linear(4, 13), nn.ReLU(), nn.Linear(13, 2))
    layout = {"0.weight": (12, 4), "0.bias": (12,), "2.weight": (2, 12), "2.bias": (2,)}
    why = r"other shapes: 0.weight \(13, 4\), agreed \(12, 4\); 0.bias \(13,\), agreed \(12,\); 2.weight \(2, 13\), agreed \(2, 12\)$"
    with pytest.raises(ValueError, match=why):
        rota.torch.match(model, layout)
    with pytest.raises(ValueError, match=r"; and 1 more$"):
        rota.torch.match(nn.Sequential(nn.Linear(4, 13), nn.ReLU(), nn.Linear(13, 3)), layout)


class Centred(nn.Module):
    """A network that takes the mean of the silo's own rows away, and keeps it to itself."""

    def __init__(self, mean):
        super().__init__()
        self.dense = nn.Linear(12, 1)
        self.register_buffer("mean", torch.full((1,), float(mean)), persistent=False)

    def forward(self, x):
        return self.dense(x.flatten(1) - self.mean)


def test_what_is_meant_to_differ_need_not_be_compared():
    models = [lambda: Centred(0), lambda: Centred(0.5)]
    with pytest.raises(rota.RotaError, match="computes something else"):
        federation(models)
    found = federation(models, **{"1": {"compared": False}})
    assert not found["training_failed"]
    assert any("it was not compared what the program" in note for note in found["notes"])


def test_outputs_that_are_not_finite_are_reported_not_compared(capsys):
    class Growing(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(12, 1)

        def forward(self, x):
            return self.dense(x.flatten(1)).exp().exp().exp() - 1

    learner = learner_of(stack(nn.Tanh))
    grown = rota.torch.Learner(Growing(), lambda y, t: (y.clamp(-1, 1) - t).abs().mean(), (draw(10, 3, 4), draw(10, 1)), device="cpu")
    inputs, outputs = grown.tried({"dense.weight": np.full((1, 12), 9.0), "dense.bias": np.full(1, 9.0)})
    assert len(inputs) == len(outputs) == 0 and "not finite" in capsys.readouterr().err
    assert len(learner.tried(values(learner))[1]) == 2


# What wraps a module.


class Wrapped(nn.Module):
    """A part of a module in a wrapper, and a layer that is called as wrappers call theirs."""

    def __init__(self, wrap=lambda module: module):
        super().__init__()
        torch.manual_seed(2)
        self.body, self.module = wrap(nn.Sequential(nn.Flatten(), nn.Linear(12, 4))), nn.Linear(4, 1)
        self.register_buffer("table", torch.arange(4.0))
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.module(self.body(x) + self.table)


def checkpointed(module):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    return checkpoint_wrapper(module)


def compiled(module):
    return torch.compile(module, backend="eager")


WRAPPERS = {
    "compiled": lambda: compiled(Wrapped()),
    "in parallel": lambda: nn.DataParallel(Wrapped()),
    "compiled in parallel": lambda: nn.DataParallel(compiled(Wrapped())),
    "parallel, then compiled": lambda: compiled(nn.DataParallel(Wrapped())),
    "a part is compiled": lambda: Wrapped(compiled),
    "a part is checkpointed": lambda: Wrapped(checkpointed),
    "a part of both": lambda: compiled(Wrapped(lambda module: checkpointed(module))),
}


@pytest.mark.parametrize("kind", WRAPPERS)
@pytest.mark.parametrize("shared", ["all", "trainable"])
def test_names_and_digests_are_the_same_with_wrappers(kind, shared):
    plain = learner_of(Wrapped(), shared=shared)
    wrapped = learner_of(WRAPPERS[kind](), shared=shared)
    assert [tensor.document() for tensor in wrapped.tensors()] == [tensor.document() for tensor in plain.tensors()]
    assert wrapped.frozen() == plain.frozen() and wrapped.held() == plain.held()
    assert "table" in plain.held() and "module.weight" in values(plain)
    start = values(plain)
    one, other = (learner.train(start, training(batch=4)).model for learner in (plain, wrapped))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    # An agreement that was made before names were stripped.
    layout = [rota.Tensor(f"_orig_mod.{tensor.name}", tensor.shape, tensor.role) for tensor in plain.tensors()]
    again = learner_of(WRAPPERS[kind](), shared=shared, silo=silo(layout=layout))
    assert [tensor.name for tensor in again.tensors()] == [tensor.name for tensor in layout]


def test_a_wrapped_program_learns_with_a_plain_one():
    found = federation([lambda: Wrapped(), lambda: compiled(Wrapped()), lambda: nn.DataParallel(Wrapped())])
    assert not found["training_failed"]


# The columns of rows.

pandas = pytest.importorskip("pandas")
NAMES = ["age", "height", "weight"]


def table(columns=NAMES, rows=20, seed=1):
    found = pandas.DataFrame(draw(rows, 3, seed=seed).numpy(), columns=NAMES)
    return found[list(columns)] if set(columns) <= set(NAMES) else found


def target(frame):
    return (frame["age"] - 2 * frame["height"]).to_numpy()[:, None]


def of_table(frame, test=None, model=None, **options):
    test = frame if test is None else test
    torch.manual_seed(1)
    model = model or nn.Linear(3, 1)
    return rota.torch.Learner(model, F.mse_loss, (frame, target(frame)), (test, target(test)), device="cpu", **options)


def simulated(orders, told=True):
    task = external(of_table(table()))
    make = lambda silo: of_table(table(orders[silo.place]), **({"silo": silo} if told else {}))  # noqa: E731
    how = {"name": "fedavg", "training": {"epochs": 5, "batch": 4, "optimiser": {"name": "sgd", "rate": 0.1}}}
    changes = dict(rounds=4, strategy=how, silos=len(orders))
    return rota.simulate(scenario(task, **changes), learner=make, references=False)


ORDERS = [NAMES, ["weight", "age", "height"], NAMES[::-1]]


def test_columns_in_another_order_are_put_into_the_agreed_one():
    found, same = simulated(ORDERS), simulated([NAMES] * 3)
    assert found["means"] == same["means"]


def test_columns_in_another_order_are_refused_if_none_is_agreed():
    with pytest.raises(rota.RotaError, match="in another order; agreed are age, height, weight.*silo=silo"):
        simulated(ORDERS, told=False)


@pytest.mark.parametrize("name, other", [("weight", "mass"), ("age", "Age"), ("height", " height"), ("weight", "weight_kg")])
def test_another_column_is_refused(name, other):
    renamed = table().rename(columns={name: other})
    data = (renamed, draw(20, 1).numpy())
    with pytest.raises(ValueError, match=f"has no column '{name}', which was agreed on"):
        rota.torch.Learner(nn.Linear(3, 1), F.mse_loss, data, data, device="cpu", silo=silo(columns=NAMES))
    more = table().assign(more=1.0)
    with pytest.raises(ValueError, match="a column 'more' that nobody agreed on"):
        of_table(more, silo=silo(columns=NAMES))
    with pytest.raises(ValueError, match="two columns 'age'"):
        doubled = pandas.concat([table(), table()[["age"]]], axis=1)
        rota.torch.Learner(nn.Linear(4, 1), F.mse_loss, (doubled, draw(20, 1).numpy()), device="cpu")


def test_held_out_columns_follow_those_of_the_training_rows():
    plain, mixed = of_table(table()), of_table(table(), test=table(ORDERS[1]))
    start = values(plain)
    assert plain.evaluate(start, "test", {}) == mixed.evaluate(start, "test", {})
    assert list(plain.columns()) == NAMES


def test_rows_without_names_have_no_columns():
    unnamed = pandas.DataFrame(draw(20, 3).numpy())
    data = (unnamed, draw(20, 1).numpy())
    assert list(rota.torch.Learner(nn.Linear(3, 1), F.mse_loss, data, data, device="cpu").columns()) == []
    arrays = (draw(20, 3), draw(20, 1))
    assert list(rota.torch.Learner(nn.Linear(3, 1), F.mse_loss, arrays, arrays, device="cpu").columns()) == []


def test_targets_of_several_columns_have_an_order_too():
    pair = pandas.DataFrame({"low": [1.0, 2.0], "high": [3.0, 4.0]})
    rows = pandas.DataFrame({"a": [0.5, 1.0], "b": [1.0, 2.0]})
    learner = rota.torch.Learner(nn.Linear(2, 2), F.mse_loss, (rows, pair), (rows, pair), device="cpu")
    agreed = ["a", "b", "target low", "target high"]
    assert list(learner.columns()) == agreed
    data = (rows[["b", "a"]], pair[["high", "low"]])
    again = rota.torch.Learner(nn.Linear(2, 2), F.mse_loss, data, data, device="cpu", silo=silo(columns=agreed))
    start = values(learner)
    assert learner.evaluate(start, "test", {}) == again.evaluate(start, "test", {})


def test_linear_models_of_scikit_learn_take_columns_by_name():
    linear = pytest.importorskip("sklearn.linear_model")
    sklearn = pytest.importorskip("rota.sklearn")

    def learner(order, **options):
        frame = table(order)
        return sklearn.Learner(linear.Ridge(), (frame, target(frame)[:, 0]), (frame, target(frame)[:, 0]), **options)

    plain = learner(NAMES)
    start = {"coef": np.zeros((1, 3), np.float32), "intercept": np.zeros(1, np.float32)}
    expected = plain.train(start, training()).model["coef"]
    assert list(plain.columns()) == NAMES
    told = learner(ORDERS[1], silo=silo(columns=NAMES))
    assert np.allclose(told.train(start, training()).model["coef"], expected, atol=1e-6)
    assert not np.allclose(learner(ORDERS[1]).train(start, training()).model["coef"], expected, atol=1e-2)
    with pytest.raises(ValueError, match="no column 'age'"):
        sklearn.Learner(
            linear.Ridge(), (table()[["height", "weight"]], target(table())[:, 0]), (table(), target(table())[:, 0]),
            silo=silo(columns=NAMES),
        )  # fmt: skip


def test_the_trial_is_the_same_for_texts_of_other_lengths():
    def make(length):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
        tokens = classes(9, 6, length)
        data = (tokens, tokens)

        def forward(model, batch):
            return model(batch[0]).movedim(-1, 1), batch[1]

        return rota.torch.Learner(model, F.cross_entropy, data, data, device="cpu", forward=forward)

    one, other = make(20), make(31)
    model = values(one)
    (inputs, outputs), (further, again) = one.tried(model), other.tried(model)
    assert list(inputs) == list(further) and len(outputs) == 16 and np.array_equal(outputs, again)
