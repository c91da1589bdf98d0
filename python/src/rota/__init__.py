"""Rota from Python: learners of a silo's own code, simulations, and a lead's mathematics.

- `Learner`: the base class of a learner; `rota.torch`, `rota.sklearn` and `FunctionLearner` are
  ready-made ones. `serve` runs a learner as the program of a silo.
- `simulate` and `compare` run whole federations in one process and give plain data.
- `ask` asks all sites for one statistic, from sums alone; `answers` are those of a running federation.
- `solve`: what a lead computes, on arrays.

The program itself, `rota`, is part of the package: `python -m rota` runs it.
"""

from ._stdio import take_where_started

# Before anything else of a program can print.
take_where_started()

from ._answer import Answer
from ._ask import answers, ask, explain
from ._binary import RotaError, binary, command
from ._learner import (
    Given,
    Learner,
    Modifier,
    Outputs,
    Rows,
    Silo,
    Stopped,
    Tensor,
    Training,
    Update,
    digest,
)
from ._functions import FunctionLearner
from ._caller import RoundDone
from ._run import compare, merge, simulate, task
from ._strategy import Round, Settled, Strategy
from ._summary import Comparison, Summary
from ._talk import serve
from ._tensors import read_tensors, write_tensors
from . import solve

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Comparison",
    "FunctionLearner",
    "Given",
    "Learner",
    "Modifier",
    "Outputs",
    "RotaError",
    "Round",
    "RoundDone",
    "Rows",
    "Settled",
    "Silo",
    "Stopped",
    "Strategy",
    "Summary",
    "Tensor",
    "Training",
    "Update",
    "answers",
    "ask",
    "binary",
    "command",
    "compare",
    "digest",
    "explain",
    "merge",
    "read_tensors",
    "serve",
    "simulate",
    "solve",
    "task",
    "write_tensors",
]
