"""Learners in PyTorch: any `torch.nn.Module` with a loss, as a whole or only in part."""

from .._lora import LoRA, lora, merged
from ._learner import Learner
from ._names import load, match
from ._survival import cox

__all__ = ["Learner", "LoRA", "cox", "load", "lora", "match", "merged"]
