"""The learner of a PyTorch module."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from .. import _learner
from .._columns import ordered
from .._learner import Given, Outputs, Rows, Silo, Split, Tensor, Training, Update
from .._notes import note
from .._reach import seed_all
from .._shelf import Kept, Shelf
from .._tensors import Arrays
from .._traces import Traces
from .._turn import alone, seed_torch, seeded, turn
from ._batches import JOINED, last_joined, leaves, moved, picker, rows_of_batch
from ._checks import check_kinds, check_module, check_private, check_shapes, differences, notes
from ._constants import UnknownBuffer, same
from ._depth import looks_like_norm, norms_of
from ._drawn import in_layer
from ._first import Looked, look
from ._forward import Pass, Passed
from ._held import Held
from ._losses import check_loss, functional, gives_rows, has_classes, known, loss_of, targets_of
from ._made_up import MEANS, computed, dimensions, made_up, sizes
from ._measure import Measuring, batch_loss, counts, row_by_row
from ._names import names_of
from ._rest import give_back, is_large, laid_down, start_of, taken_up
from ._rows import check_order, count_of, data_of, first_of, in_order, is_batch, steps_of, targets_in
from ._state import NORMS, check_whole, exact, put, role, state_of
from ._steps import How, MakeOptimiser, MakeScheduler, Step, Steps
from ._survival import gives_times
from ._trial import ONE_ROW, Trial, unchanged
from ._types import Batch, Data, Forward, Loss, Metrics, Refused, Shared, array, tensor
from ._wrappers import modules_of

_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


class Learner(_learner.Learner):
    """A learner from a module and a loss.

    Args:
        model: The module.
        shared: What of the module travels. `"all"`: its parameters, and buffers of floats that training
            changes, such as those of batch normalisation. `"trainable"`: the parameters that require gradients, and
            the buffers of modules that have such parameters themselves. All else is frozen: it stays
            as it is, with normalisation by the running statistics that it has, and must be the same
            at every member (`frozen`).
        loss: The mean loss of a batch, `loss(outputs, targets)`, such as
            `torch.nn.functional.cross_entropy`. By default the one that the model computes itself, as
            those of `transformers` do, or the agreed one where Rota hands the rows over.
        train: Batches of the training rows: a `DataLoader` (its batches and order are its own), or
            tensors or arrays of all rows (batches and order are as agreed). Batches and rows are pairs
            `(x, y)`, longer tuples with the targets last, or dictionaries with the targets under
            `labels`, `label`, `targets`, `target` or `y`. Without it, the rows that Rota hands over.
        test, validation: The same for the held-out rows. They are measured in the order of the data
            set, all of them, whatever the loader's: results of two models are compared row by row.
        silo: The silo, as the factory of `rota.serve` gets it. Needed where Rota hands the rows
            over, or the agreed tensors have other names than the module's.
        shape: Shape of a row, such as `(1, 28, 28)`, where Rota hands over rows.
        forward: `forward(model, batch)` returns outputs and targets, where the module is not just called
            with all of a batch but its targets, or returns more than its outputs. The batch is on the
            device already.
        metrics: More metrics of all outputs and targets of a part: a function from both to numbers by name,
            which is tried on the held-out rows before the first round. Accuracy, for a loss by
            cross-entropy, is measured without it.
        keep: `"sgd"` or `"adam"`: the optimiser's state is the silo's personal state and goes on
            from round to round; the agreed optimiser must be that one. By default every training
            starts anew.
        names: For each agreed tensor its name in the module, where they cannot be matched.
        buffers: Names, or patterns of names, of buffers that travel although a step of training does not
            change them, such as tables that differ by rounding, or that change once in many steps. All
            other buffers that training does not change, such as masks, stay where they are and are
            compared between the members (`frozen`).
        compared: Whether it is compared before the first round what the program and that of the proposer
            compute for a made-up batch. `False` where they are meant to differ, such as by means of the
            silo's own rows.
        optimiser: An optimiser of the silo's own in place of the agreed one, `optimiser(model, training)`, such as
            `lambda model, training: torch.optim.AdamW(model.parameters(), lr=training.rate)`. `training` has what is
            agreed, and `training.round`, the round.
        scheduler: A schedule of rates, `scheduler(optimiser, training)`, which goes on after every step, not every epoch.
        clip: The largest norm of the gradients of all parameters together.
        accumulate: Batches whose gradients are added up to a step, of their mean.
        step: One step by hand, `step(optimiser, loss, model)`: backward, and what else belongs to it, such as a scaler of
            mixed precision. Gradients are zero before it, unless its last call left some without a step. Strategies that
            change gradients are then refused.
        device: Where it trains; by default a GPU where there is one.
        threads: Threads of PyTorch on the CPU; by default PyTorch's own choice.

    One batch of each part is tried at once, before a first round. Raises `ValueError` for what would
    fail in it or go wrong without a word, and says what works instead: the book has the list, under
    *Learners as they come*.
    """

    gradients = True
    _seeds = True

    # Nobody else changes meanwhile what is put back.
    @turn()
    def __init__(
        self,
        model: nn.Module,
        loss: Loss | None = None,
        train: Data | Batch | None = None,
        test: Data | Batch | None = None,
        *,
        validation: Data | Batch | None = None,
        silo: Silo | None = None,
        shape: tuple[int, ...] | None = None,
        forward: Forward | None = None,
        metrics: Metrics | None = None,
        keep: str | None = None,
        names: Mapping[str, str] | None = None,
        shared: Shared = "all",
        buffers: Sequence[str] = (),
        compared: bool = True,
        optimiser: MakeOptimiser | None = None,
        scheduler: MakeScheduler | None = None,
        clip: float | None = None,
        accumulate: int = 1,
        step: Step | None = None,
        device: str | torch.device | None = None,
        threads: int | None = None,
    ) -> None:
        self._how = How(optimiser, scheduler, clip, accumulate, step)
        # Nothing can be added to gradients that a step by hand computes.
        self.gradients = not self._how.by_hand
        if keep is not None and (optimiser is not None or step is not None):
            raise ValueError("`keep` goes with the agreed optimiser: leave it out, or `optimiser` and `step`")
        if shared not in ("all", "trainable"):
            raise ValueError(f'`shared` is {shared!r}, it must be "all" or "trainable"')
        if keep not in (None, "sgd", "adam"):
            raise ValueError(f'`keep` is {keep!r}, it must be "sgd", "adam" or None')
        if threads is not None:
            torch.set_num_threads(threads)
        check_module(model, loss)
        check_private(model, loss, (train, validation, test))
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.model = model.to(self.device)
        check_kinds(self.model)
        self._held = Held(self.model)
        if metrics is not None and not callable(metrics):
            raise Refused(
                f"`metrics` is {type(metrics).__name__}, it must be a function from outputs and targets to a dictionary "
                "of numbers: lambda outputs, targets: {\"mae\": …}"
            )
        if isinstance(loss, nn.Module):
            loss = loss.to(self.device)
        if loss is not None:
            check_loss(loss)
        self._silo, self._shape, self._metrics, self._keep = silo, shape, metrics, keep
        kinds = [value.dtype for value in self.model.parameters() if value.is_floating_point()]
        kind = kinds[0] if kinds else torch.float32
        self._compared = compared
        agreed_columns = silo.columns if silo is not None else []
        train, self._columns = ordered("train", train, agreed_columns)
        test, _ = ordered("test", test, self._columns)
        validation, _ = ordered("validation", validation, self._columns)
        self._parts: dict[str, Data | Batch | None] = {
            "train": data_of("train", train, kind),
            "validation": data_of("validation", validation, kind),
            "test": data_of("test", test, kind),
        }
        #: Whether the rows of a part are tensors of all of them.
        self._whole = {part: is_batch(data) for part, data in self._parts.items()}
        self._begun = False
        #: What the institution's code holds besides the module's tensors, which what is tried leaves as it is.
        self._roots: list[Any] = [step, scheduler, optimiser, metrics, forward, loss, self.model]
        traces = Traces([*self._loaders(), *self._roots])
        # Tensors of all rows are in order, and nothing is drawn for them.
        with nullcontext() if self._loaders() == [] else alone(), traces:
            ordered_parts = {part: in_order(part, data) for part, data in self._parts.items()}
        self._in_order = {part: data for part, (data, _) in ordered_parts.items()}
        #: Whether the loader draws other rows in every epoch: a silo then weighs all rows of its data set.
        self._anew = ordered_parts["train"][1]
        self._given: Given | None = silo.given if silo is not None and train is None else None
        if train is None and self._given is None:
            raise ValueError("no training rows: give `train`, or `silo` where Rota hands the rows over")
        if loss is None and self._given is not None:
            loss = loss_of(self._given)
        self._loss, self._known = loss, known(loss) if loss is not None else None
        self._by_class = has_classes(loss)
        self._pass = Pass(self.model, forward, self._known, loss is None)
        #: Whether a training fails with one row, where that is known.
        self._two: bool | None = None
        self._counted: Rows | None = None
        agreed = {tensor.name: tensor.shape for tensor in silo.layout} if silo is not None else {}
        with traces:
            looked = self._look(shared, buffers)
        self._moving = looked.moving
        self._names = names_of(self.model, shared, agreed, names, looked, self._given is not None)
        state, travels = state_of(self.model, self._moving), set(self._names.values())
        self._norms = norms_of(self.model, travels)
        self._left = {name: value for name, value in state.items() if name not in travels}
        kept = {name: value for name, value in self._left.items() if not isinstance(value, nn.Parameter)}
        #: Buffers that do not travel, counters of batches among them, with the values that they keep:
        #: a training must not depend on the one before.
        left = {name: value for name, value in self._held.buffers().items() if name not in travels}
        self._still = {name: value.detach().clone() for name, value in left.items()}
        #: Those of them that training is not to change, with their values.
        fixed = looked.constant | looked.others
        self._fixed = {name: kept for name, kept in self._still.items() if name in fixed}
        layers = modules_of(self.model)
        owned = [layers[name] for name in sorted({name.rpartition(".")[0] for name in kept})]
        self._still_norms: list[nn.Module] = [module for module in owned if isinstance(module, NORMS)]
        # What the module is before the first training, which changes it in place.
        self._first: Arrays | Kept = {name: array(value) for name, value in self._values().items()}
        #: Whether the module has no memory between the turns of a simulation; where its values are while it has
        #: none; and the model that it was last given.
        self._rests = False
        self._kept: Kept | None = None
        self._large: dict[int, bool] = {}
        self._last: Arrays | None = None
        layer = {name: layers.get(mine.rpartition(".")[0]) for name, mine in self._names.items()}
        self._drawn = {name: in_layer(layer[name], mine in self._held.parameters(), state[mine]) for name, mine in self._names.items()}
        self._generators = traces.generators()
        if self._given is None:
            with alone(), traces:
                self._try()
                for part in ("validation", "test"):
                    check_order(part, self._in_order[part], self._begin)

    def _loaders(self) -> list[Any]:
        """Rows that are not tensors of all of them."""
        return [data for part, data in self._parts.items() if data is not None and not self._whole[part]]

    def _look(self, shared: Shared, buffers: Sequence[str]) -> Looked:
        """Which buffers stay and which travel, and the order of depth."""
        if self._given is not None:
            return look(self.model, shared, buffers, None)
        passing = self._pass.state
        with alone():
            batch = first_of("train", self._parts["train"])
            if batch is None:
                return look(self.model, shared, buffers, None)
            try:
                return look(self.model, shared, buffers, lambda: batch_loss(self._loss, self._passed(batch)))
            except UnknownBuffer:
                raise
            except Exception as error:
                if isinstance(error, Refused) and "the first pass makes" in str(error) or "2^24" in str(error):
                    raise
                # The same batch is tried again below, which says what is wrong with it.
                return look(self.model, shared, buffers, None)
            finally:
                self._pass.state = passing

    def _try(self) -> None:
        """Tries a batch of each part, and learns from it what the outputs are."""
        trial = Trial(self.model, self._pass, self._loss, self._known, self.device)
        found = []
        for part, data in self._parts.items():
            if data is None:
                continue
            if (batch := first_of(part, data)) is None:
                if part == "train":
                    raise Refused("`train` has no batches: there are no rows, or `drop_last` leaves none")
                continue
            if part == "train":
                trial.trained(part, batch, self._still_norms)
                self._two = trial.needs_two(batch, self._still_norms)
            passed = trial.measured(part, batch)
            if part == "train":
                for note in notes(self._known, passed.outputs, passed.targets):
                    print(f"note: {note}", file=sys.stderr)
            same = rows_of_batch(batch) in (None, passed.rows)
            plain = known(functional.cross_entropy) if self._loss is None and self._classes() else self._known
            means = gives_rows(plain, passed.outputs, passed.targets) if same else None
            if same and means is None:
                means = gives_times(self._loss, passed.outputs, passed.targets)
            if means and not self._pass.is_own and (targets := targets_in(data)) is not None:
                ignored = plain.ignored if plain else -100
                wrong = targets == ignored if means == "softmax" else (targets != 0) & (targets != 1)
                means = None if means in ("softmax", "logistic") and bool(wrong.any()) else means
            found.append(means)
        self.outputs_loss = found[0] if found and len(set(found)) == 1 else None
        if self._metrics is not None:
            self._try_metrics()

    def _try_metrics(self) -> None:
        """Tries the learner's own metrics as they are measured in every round: on all rows of the held-out
        parts, or where there are none of the training rows. One batch may lack a class, or a shape."""
        held_out = [part for part in ("validation", "test") if self._parts[part] is not None]
        with unchanged(self.model), torch.no_grad():
            self.model.eval()
            for part in held_out or ["train"]:
                measuring = self._measured(cast(Split, part))
                if measuring.rows:
                    measuring.found(self.device, f"the {measuring.rows} rows of `{part}`")

    def check(self) -> None:
        """Nothing: a learner of a module is tried when it is made."""

    def _classes(self) -> bool:
        """Whether the largest output says the class."""
        return self._by_class or (self._loss is None and self._pass.shift is not None)

    # What the model is.

    def _values(self) -> dict[str, torch.Tensor]:
        return self._held.of("values", self._found)

    def _found(self) -> dict[str, torch.Tensor]:
        state = state_of(self.model, self._moving)
        return {name: state[mine] for name, mine in self._names.items()}

    def tensors(self) -> Iterator[Tensor]:
        parameters = set(self._held.parameters())
        state = state_of(self.model, self._moving)
        for name, mine in self._names.items():
            value, norm = state[mine], self._norms[mine]
            # Said where the name does not tell, or would tell otherwise.
            said = norm if norm or looks_like_norm(name) else None
            yield Tensor(name, tuple(value.shape), role(mine, value, parameters), self._drawn[name], said)

    def _trained(self) -> dict[str, nn.Parameter]:
        return self._held.of("trained", self._parameters)

    def _parameters(self) -> dict[str, nn.Parameter]:
        parameters = self._held.parameters()
        return {name: parameters[mine] for name, mine in self._names.items() if mine in parameters}

    def frozen(self) -> str | None:
        return _learner.digest((name, array(exact(self._left[name]))) for name in sorted(self._left))

    def held(self) -> Mapping[str, str]:
        digests = {name: _learner.digest([(name, array(exact(value)))]) for name, value in self._left.items()}
        return {name: (digest or "")[:16] for name, digest in digests.items()}

    def columns(self) -> Sequence[str]:
        return self._columns

    def tried(self, model: Arrays) -> tuple[Sequence[int], Any]:
        if not self._compared:
            return (), ()
        with self._measuring(model):
            batch = first_of("train", self._parts["train"])
            why = "there is no batch"
            for size in sizes(batch):
                made = moved(made_up(batch, size), self.device)
                outputs, why = computed(lambda: self._pass(made).outputs)
                if why == MEANS:
                    print(
                        "note: the outputs are drawn at random also where nothing is trained, as with dropout that is "
                        "left on: what is measured depends on the draws, and the programs of the members are compared "
                        "with the means of what is drawn",
                        file=sys.stderr,
                    )
                if why in ("", MEANS):
                    return dimensions(made), outputs
        print(
            f"note: no made-up batch can be computed ({why}), so it is not compared whether the programs of the "
            "members compute the same",
            file=sys.stderr,
        )
        return (), ()

    def personal(self) -> Iterator[Tensor]:
        parts = {None: (), "sgd": ("momentum",), "adam": ("first", "second")}[self._keep]
        for part in parts:
            for name, value in self._trained().items():
                yield Tensor(f"{name}.{part}", tuple(value.shape), "buffer")
        if self._keep == "adam":
            yield Tensor("step", (1,), "buffer")

    def initial(self, seed: int) -> Mapping[str, Any]:
        return self._first.read() if isinstance(self._first, Kept) else self._first

    def rows(self) -> Rows:
        if self._counted is None:
            # A plain loop would not have counted.
            with turn(), Traces(self._loaders()) if self._loaders() else nullcontext():
                self._counted = Rows(**{part: count_of(data, self._count) for part, data in self._in_order.items()})
        return self._counted

    def _count(self, batch: Batch) -> int:
        """The number of rows of a batch."""
        if (rows := rows_of_batch(batch)) is not None:
            return rows
        with torch.no_grad():
            return self._pass(moved(batch, self.device)).rows

    # The rows.

    def _all(self, split: Split) -> Batch | None:
        """All rows of a part, where they are tensors."""
        if self._given is not None:
            assert self._silo is not None
            x, y = self._silo.rows(split)
            features = torch.from_numpy(np.array(x))
            features = features.reshape(-1, *self._shape) if self._shape else features
            return features, targets_of(torch.from_numpy(np.array(y)), self._given.loss)
        data = self._parts[split]
        if data is None:
            raise ValueError(f"this silo has no {split} rows")
        return data if self._whole[split] else None

    def _batches(self, split: Split, size: int, order: torch.Generator | None) -> Iterator[Batch]:
        """Batches to train on, in this order; to measure without one."""
        rows = self._all(split)
        if rows is None:
            data: Any = (self._in_order if order is None else self._parts)[split]
            yield from last_joined(iter(data)) if order is not None and self._joins() else data
            return
        count = len(next(leaves(rows)))
        size = size or count
        places = torch.arange(count) if order is None else torch.randperm(count, generator=order)
        chosen = [places] if 0 < count <= size else list(places.split(size)) if count else []  # type: ignore[no-untyped-call, unused-ignore]
        if order is not None and len(chosen) > 1 and len(chosen[-1]) == 1 and self._joins():
            chosen[-2:] = [torch.cat(chosen[-2:])]
            note(JOINED)
        of = picker(rows)
        for some in chosen:
            yield of(some)

    def _joins(self) -> bool:
        """Whether a last batch of one row joins the one before: batch normalisation takes mean and
        variance of the rows of a batch, and one image has enough numbers for them."""
        norms = (module for module in self.model.modules() if isinstance(module, _BATCH_NORMS))
        return any(module.training for module in norms) if self._two is None else self._two

    # Training and measuring.

    def _set(self, model: Arrays) -> None:
        with torch.no_grad():
            for name, value in self._values().items():
                given = tensor(model[name])
                if self._kept is None:
                    put(value, given)
                else:
                    taken_up(value, given)
            self._kept = None
            self._last = model if self._rests else None
            if self._still:
                left = self._held.buffers()
                for name, kept in self._still.items():
                    left[name].copy_(kept)

    def train(self, start: Arrays, training: Training) -> Update:
        seed = training.seed % (1 << 63)
        with turn(), seeded(seed):
            return self._train(start, training, seed)

    def _train(self, start: Arrays, training: Training, seed: int) -> Update:
        # A data loader, its rows, or the module may draw from generators of their own.
        self._asked(seed)
        self._begun = True
        self._differences(training)
        order = torch.Generator().manual_seed(seed)
        self._set(start)
        self.model.train()
        for norm in self._still_norms:
            norm.eval()
        trained = self._trained()
        taking = Steps(self._how, self.model, trained, training, self._keep, self.device)
        steps, step, mean = steps_of(self._all("train"), self._parts["train"], training, self._joins), 0, math.nan
        for _ in range(training.epochs):
            total, told, count = 0.0, 0, 0
            for batch in self._batches("train", training.batch, order):
                rows = rows_of_batch(batch)
                taking.begin()
                try:
                    passed = self._passed(batch)
                except ValueError as error:
                    if rows != 1 or ONE_ROW not in str(error):
                        raise
                    raise ValueError(
                        f"batch normalisation cannot train on batches of one row, and the agreed size of batches is "
                        f"{training.batch}, of {self.rows().train} rows: agree on larger batches"
                    ) from error
                loss = batch_loss(self._loss, passed)
                rows, step = passed.rows if rows is None else rows, step + 1
                count += rows
                # The mean over no targets is no number, and would make none of the model.
                value = loss.item() if self._known is not None and loss.is_cpu else math.nan
                if not math.isnan(value) or counts(self._loss, self._known, self._classes(), passed) > 0:
                    taking.take(loss)
                    total, told = total + (loss.item() if math.isnan(value) else value) * rows, told + rows
                training.progress(step, max(steps, step), total / told if told else None)
            taking.end()
            if count == 0:
                raise ValueError("there are no training rows")
            mean = total / told if told else math.nan
        state = self._held.buffers() if self._fixed or self._moving else {}
        for name, kept_value in self._fixed.items():
            if name in state and not same(state[name], kept_value):
                raise Refused(
                    f"this training changed the buffer {name!r}, which two steps on one batch did not change: it "
                    f"does not travel so, and would be put back; give the learner `buffers=[{name!r}]`"
                )
        for name in self._moving:
            check_whole(name, state[name])
        taking.over()
        model = {name: array(value) for name, value in self._values().items()}
        # A loader that draws rows more than once has no more of them, and one that draws others every time has all.
        samples = count if self._given is not None else self.rows().train if self._anew else min(count, self.rows().train)
        metrics = {"loss": mean, "steps": float(taking.taken)}
        return Update(model=model, metrics=metrics, personal=taking.personal(), samples=samples)

    def _asked(self, seed: int) -> None:
        """Begins a question, whose answer depends on its seed and on nothing that was asked before."""
        seed_all(self._generators, seed)
        for part in self._parts:
            loaders: tuple[Any, ...] = () if self._whole[part] else (self._parts[part], self._in_order[part])
            for data in loaders:
                # Workers that stay go on where the question before has left them.
                if getattr(data, "persistent_workers", False):
                    data._iterator = None

    def _begin(self) -> None:
        self._asked(0)
        random.seed(0)
        np.random.seed(0)
        seed_torch(0)

    def _differences(self, training: Training) -> None:
        """Says once what is agreed and done otherwise than a plain loop would."""
        decayed = bool(training.weight_decay) and any(value.ndim < 2 for value in self._trained().values())
        own = self._given is None and not self._whole["train"]
        size = getattr(self._parts["train"], "batch_size", None) if own else None
        for one in differences(training, decayed, self.rows().train if self._anew else None, size):
            note(one)

    def _rest(self, shelf: Shelf, silos: int) -> None:
        if silos not in self._large:
            # What travels has the same shapes in all rounds.
            self._large[silos] = is_large(self._values().values(), silos)
            self._first = self._first if isinstance(self._first, Kept) else start_of(self._first, silos, shelf)
        if self._kept is not None or not self._large[silos]:
            return
        values = self._values()
        # What was learned has gone out: until its next turn the module has what its learner was given.
        given = self._last or {name: array(value) for name, value in values.items()}
        self._kept, self._last = laid_down(values, given, shelf), None
        self._rests = self._kept is not None
        if self._rests:
            give_back()

    def _passed(self, batch: Batch) -> Passed:
        passed = self._pass(moved(batch, self.device))
        check_shapes(self._known, passed.outputs, passed.targets)
        return passed

    @contextmanager
    def _measuring(self, model: Arrays) -> Iterator[None]:
        """Loads a model to be measured; what it draws is the same every time. Before the first training, what this leaves
        behind in the module and around it is put back: a plain loop would not have measured yet."""
        with turn(), seeded(0), torch.no_grad():
            tensors = [*self.model.parameters(), *self.model.buffers()] if not self._begun else ()
            with nullcontext() if self._begun else Traces([*self._loaders(), *self._roots], without=tensors):
                self._asked(0)
                self._set(model)
                self.model.eval()
                yield

    def evaluate(self, model: Arrays, split: Split, personal: Arrays) -> Mapping[str, float]:
        with self._measuring(model):
            return self._measured(split).found(self.device)

    def _measured(self, split: Split) -> Measuring:
        """What is measured of the module on a part, batch by batch."""
        measuring = Measuring(self._loss, self._known, self._metrics, self._classes, self._expected(split))
        for batch in self._batches(split, 512, None):
            measuring.add(self._passed(batch), rows_of_batch(batch))
        return measuring

    def outputs(self, model: Arrays, split: Split, personal: Arrays) -> Outputs:
        with self._measuring(model):
            passes = (self._passed(batch) for batch in self._batches(split, 512, None))
            return row_by_row(passes, self._expected(split))

    def _expected(self, split: Split) -> int:
        """How many rows of a part are expected, where that is known by now."""
        return getattr(self._counted, split) if self._counted is not None else 0
