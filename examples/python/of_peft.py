"""A transformer of Hugging Face with adapters of PEFT: only the adapters and the new head are trained and travel.

A real silo loads a pretrained model, `AutoModelForSequenceClassification.from_pretrained(NAME)`, and its tokenizer. Here
nothing is downloaded: the base is a small one with made-up weights, the same at every silo.
"""

import rota
import rota.torch
import torch
from peft import LoraConfig, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

WORDS, LENGTH = 40, 12


def base():
    """The pretrained model, the same everywhere."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=LENGTH, num_labels=2,
    )
    return BertForSequenceClassification(config)


def rows(place):
    """Notes as a tokenizer gives them, and whether the word 3 comes up."""
    draw = torch.Generator().manual_seed(place)
    words = torch.randint(4, WORDS, (120, LENGTH), generator=draw)
    marked = torch.rand(120, generator=draw) < 0.5
    places = torch.randint(0, LENGTH, (120,), generator=draw)
    words[marked, places[marked]] = 3
    whole = {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": marked.long()}
    return {name: value[:90] for name, value in whole.items()}, {name: value[90:] for name, value in whole.items()}


def learner(silo: rota.Silo) -> rota.Learner:
    adapters = LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=16, target_modules=["query", "value"])
    model = get_peft_model(base(), adapters)
    train, test = rows(silo.place)
    # The model has its own loss, from `labels`.
    return rota.torch.Learner(model, None, train, test, silo=silo, shared="trainable")


if __name__ == "__main__":
    rota.serve(learner)
