"""Models of transformers, built from small configurations: their batches, their losses, their rows."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import numpy as np  # noqa: E402
import rota  # noqa: E402
import rota.torch  # noqa: E402
from torch import nn  # noqa: E402

from conftest import external, scenario, silo, training  # noqa: E402
from plain import classes, loader, loop, trained_alike, values  # noqa: E402

torch.set_num_threads(1)
F = nn.functional

SMALL = dict(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def bert(kind, **options):
    torch.manual_seed(1)
    return getattr(transformers, f"BertFor{kind}")(transformers.BertConfig(**SMALL, **NO_DROPOUT, **options))


def gpt(**options):
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return transformers.GPT2LMHeadModel(config)


def encoded(rows=13, length=9):
    """What a tokenizer with `padding=True, return_tensors="pt"` gives, with labels, batch by batch."""
    words, mask = classes(50, rows, length), torch.ones(rows, length, dtype=torch.long)
    for at in range(rows):
        mask[at, length - at % 4 :] = 0
    return words, mask


def batches_of(labels, rows=13):
    words, mask = encoded(rows)

    def collate(places):
        return transformers.BatchEncoding(
            {"input_ids": words[places], "attention_mask": mask[places], "labels": labels[places]}
        )

    return loader(list(range(rows)), 4, collate_fn=collate)


def plainly(model, batch):
    return model(**batch).loss


def alike(found, expected, loss, **changes):
    """Whether the learner trains to these parameters: to the last bit with the model's own loss, and up
    to the rounding of another order of operations with the same loss beside the model."""
    trained = found.train(values(found), training(**changes)).model
    tolerance = 0.0 if loss is None else 1e-6
    return all(np.allclose(trained[name], expected[name], rtol=0.0, atol=tolerance) for name in expected)


def measured(found, batches, hit):
    """Loss and accuracy of all rows, by hand: `hit(logits, labels)` has those that count."""
    found._set(values(found))
    model, losses, right = found.model.eval(), [], []
    with torch.no_grad():
        for batch in batches:
            output = model(**batch)
            logits, labels = hit(output.logits, batch["labels"])
            losses.append(F.cross_entropy(logits, labels, reduction="none").double())
            right.append((logits.argmax(1) == labels).double())
    return {"loss": float(torch.cat(losses).mean()), "accuracy": float(torch.cat(right).mean())}


def all_of(logits, labels):
    counted = labels != -100
    return logits[counted], labels[counted]


def following(logits, labels):
    return all_of(logits[:, :-1], labels[:, 1:])


@pytest.mark.parametrize("loss", [None, F.cross_entropy], ids=["own", "given"])
def test_a_classifier_of_texts_counts_rows_and_not_keys(loss):
    batches = batches_of(classes(3, 13))
    found = rota.torch.Learner(bert("SequenceClassification", num_labels=3), loss, batches, batches, device="cpu")
    assert found.rows() == rota.Rows(train=13, test=13)
    assert found.outputs_loss == "softmax"
    assert alike(found, loop(found.model, batches, plainly, epochs=2), loss, epochs=2)
    assert found.train(values(found), training()).samples == 13
    assert found.evaluate(values(found), "test", {}) == pytest.approx(measured(found, batches, all_of), rel=1e-5)
    given = found.outputs(values(found), "test", {})
    assert np.shape(given.outputs) == (13, 3) and np.shape(given.targets) == (13,)


@pytest.mark.parametrize("loss", [None, nn.CrossEntropyLoss()], ids=["own", "given"])
def test_a_class_per_word_leaves_out_what_is_padded(loss):
    labels = classes(4, 13, 9)
    labels[encoded()[1] == 0] = -100
    labels[5] = labels[12] = -100
    batches = batches_of(labels)
    found = rota.torch.Learner(bert("TokenClassification", num_labels=4), loss, batches, batches, device="cpu")
    assert found.outputs_loss is None
    first = list(batches)[:3]  # The last batch has no word that counts, and its loss is no number.
    train = rota.torch.Learner(bert("TokenClassification", num_labels=4), loss, first, batches, device="cpu")
    assert alike(train, loop(train.model, first, plainly), loss)
    assert train.train(values(train), training()).samples == 12
    assert found.evaluate(values(found), "test", {}) == pytest.approx(measured(found, batches, all_of), rel=1e-5)


@pytest.mark.parametrize("loss", [None, F.cross_entropy], ids=["own", "given"])
def test_a_language_model_is_measured_at_the_following_word(loss):
    words, mask = encoded()
    labels = words.masked_fill(mask == 0, -100)
    batches = batches_of(labels)
    found = rota.torch.Learner(gpt(), loss, batches, batches, device="cpu")
    assert found._pass.shift == 1 and found.outputs_loss is None
    assert alike(found, loop(found.model, batches, plainly), loss)
    assert found.train(values(found), training()).samples == 13
    assert found.evaluate(values(found), "test", {}) == pytest.approx(measured(found, batches, following), rel=1e-5)


def test_an_empty_language_model_is_measured_at_the_next_word():
    """All words are equally likely, so that the loss does not tell which word is meant."""
    model = gpt()
    nn.init.zeros_(model.lm_head.weight)
    batches = batches_of(encoded()[0])
    assert rota.torch.Learner(model, None, batches, batches, device="cpu")._pass.shift == 1


def test_hidden_words_are_measured_where_they_are():
    words, _ = encoded()
    labels = words.clone()
    labels[:, ::2] = -100
    batches = batches_of(labels)
    found = rota.torch.Learner(bert("MaskedLM"), None, batches, batches, device="cpu")
    assert found._pass.shift == 0
    assert trained_alike(found, loop(found.model, batches, plainly))
    assert found.evaluate(values(found), "test", {}) == pytest.approx(measured(found, batches, all_of), rel=1e-5)


def test_numbers_and_multiple_labels_use_the_models_own_loss():
    for options, labels in [
        (dict(num_labels=1), torch.rand(13)),
        (dict(num_labels=3, problem_type="multi_label_classification"), classes(2, 13, 3).float()),
    ]:
        batches = batches_of(labels)
        found = rota.torch.Learner(bert("SequenceClassification", **options), None, batches, batches, device="cpu")
        assert trained_alike(found, loop(found.model, batches, plainly))
        found._set(values(found))
        with torch.no_grad():
            losses = [(float(found.model(**batch).loss), len(batch["labels"])) for batch in batches]
        mean = sum(loss * rows for loss, rows in losses) / 13
        assert found.evaluate(values(found), "test", {}) == pytest.approx({"loss": mean}, rel=1e-5)


def test_a_pair_of_a_tokenizers_batch_and_labels():
    labels = classes(3, 13)
    batches = []
    for batch in batches_of(labels):
        given = batch.pop("labels")
        batches.append((batch, given))
    found = rota.torch.Learner(bert("SequenceClassification", num_labels=3), None, batches, batches, device="cpu")
    assert found.rows() == rota.Rows(train=13, test=13)
    expected = loop(found.model, batches, lambda model, batch: model(**batch[0], labels=batch[1]).loss)
    assert alike(found, expected, None)


def test_a_pair_of_images_and_labels_has_the_models_own_loss():
    torch.manual_seed(1)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4,
        num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    images, labels = torch.randn(13, 3, 8, 8), classes(3, 13)
    batches = loader(torch.utils.data.TensorDataset(images, labels))
    found = rota.torch.Learner(model, None, batches, batches, device="cpu")
    assert found.outputs_loss == "softmax"
    expected = loop(model, batches, lambda model, batch: model(batch[0], labels=batch[1]).loss)
    assert alike(found, expected, None)


def test_a_translator_is_measured_where_its_words_are():
    torch.manual_seed(1)
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0, dropout_rate=0.0
    )
    batches = batches_of(encoded()[0])
    model = transformers.T5ForConditionalGeneration(config)
    found = rota.torch.Learner(model, None, batches, batches, device="cpu")
    assert found._pass.shift == 0 and alike(found, loop(model, batches, plainly), None)


def test_questions_answered_in_a_text_are_learned_with_forward():
    words = encoded()[0]
    rows = {"input_ids": words, "start_positions": classes(9, 13), "end_positions": classes(9, 13, seed=5)}
    with pytest.raises(ValueError, match="none of them for the targets"):
        rota.torch.Learner(bert("QuestionAnswering"), None, rows, rows, device="cpu")
    found = rota.torch.Learner(
        bert("QuestionAnswering"),
        lambda loss, targets: loss,
        rows,
        rows,
        forward=lambda model, batch: (model(**batch).loss, batch["start_positions"]),
        device="cpu",
    )
    assert found.rows() == rota.Rows(train=13, test=13)
    found._set(values(found))
    with torch.no_grad():
        by_hand = float(found.model(**rows).loss)
    assert found.evaluate(values(found), "test", {}) == pytest.approx({"loss": by_hand}, rel=1e-5)


def test_rows_may_be_what_a_tokenizer_gives():
    words, mask = encoded()
    rows = transformers.BatchEncoding({"input_ids": words, "attention_mask": mask, "labels": classes(3, 13)})
    found = rota.torch.Learner(bert("SequenceClassification", num_labels=3), None, rows, rows, device="cpu")
    assert found.rows() == rota.Rows(train=13, test=13)
    order = torch.randperm(13, generator=torch.Generator().manual_seed(7))
    batches = [{name: value[some] for name, value in rows.items()} for some in order.split(4)]
    assert alike(found, loop(found.model, batches, plainly), None, batch=4)


def test_a_custom_loss_gets_logits_and_labels_of_the_model():
    """With the shift that its author wrote."""

    def loss(logits, labels):
        return F.cross_entropy(logits[:, :-1].reshape(-1, 50), labels[:, 1:].reshape(-1))

    batches = batches_of(encoded()[0])
    found = rota.torch.Learner(gpt(), loss, batches, batches, device="cpu")
    assert alike(found, loop(found.model, batches, plainly), loss)
    by_hand = measured(found, batches, following)["loss"]
    assert found.evaluate(values(found), "test", {})["loss"] == pytest.approx(by_hand, rel=1e-5)


def test_a_model_of_ones_own_around_an_encoder_gives_tensors():
    class Sentiment(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert, self.head = bert("SequenceClassification").bert, nn.Linear(16, 3)

        def forward(self, input_ids, attention_mask):
            return self.head(self.bert(input_ids, attention_mask=attention_mask).pooler_output)

    batches = batches_of(classes(3, 13))
    found = rota.torch.Learner(Sentiment(), F.cross_entropy, batches, batches, device="cpu")
    expected = loop(
        found.model,
        batches,
        lambda model, batch: F.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]),
    )
    trained = found.train(values(found), training()).model
    assert all(np.allclose(trained[name], expected[name], atol=1e-6) for name in expected)
    assert found.rows() == rota.Rows(train=13, test=13)


def test_a_model_without_labels_has_no_loss():
    words, mask = encoded()
    with pytest.raises(ValueError, match="none of them for the targets"):
        rows = {"input_ids": words, "attention_mask": mask}
        rota.torch.Learner(gpt(), None, rows, rows, device="cpu")
    with pytest.raises(ValueError, match="no loss: give `loss`"):
        rota.torch.Learner(nn.Linear(3, 2), None, (torch.randn(5, 3), classes(2, 5)), device="cpu")


def test_silos_weigh_as_many_rows_as_they_have():
    """The second round of FedAvg starts from the mean of the models of the first, by rows."""
    starts, models, weights = [], [], []

    def learner(of):
        rows = (8, 13, 17)[of.place]
        batches = batches_of(classes(3, rows, seed=of.place), rows)
        found = rota.torch.Learner(
            bert("SequenceClassification", num_labels=3), None, batches, batches, silo=of, device="cpu"
        )
        train = found.train

        def heard(start, how):
            update = train(start, how)
            starts.append({name: np.array(value) for name, value in start.items()})
            models.append(update.model)
            weights.append(rows)
            return update

        found.train = heard
        return found

    task = external(learner(silo()), metric="accuracy")
    summary = rota.simulate(scenario(task, rounds=2), learner=learner, references=False)
    assert not summary["training_failed"] and summary["usable"] and sorted(weights[:3]) == [8, 13, 17]

    def off(weigh):
        """How far the start of the second round is from the mean with these weights."""
        total = sum(weigh)
        gaps = []
        for name, second in starts[3].items():
            mean = sum(weight * model[name].astype(np.float64) for weight, model in zip(weigh, models)) / total
            gaps.append(np.abs(second - mean).max())
        return max(gaps)

    # Counted by the keys of batches, of which there are three in each.
    by_keys = [3 * -(-rows // 4) for rows in weights[:3]]
    assert off(weights[:3]) < 1e-6 < off(by_keys) < off([1, 1, 1])


def test_adapters_of_a_transformer_train_alone():
    model = rota.torch.lora(gpt(), rank=2, layers=["lm_head"])
    batches = batches_of(encoded()[0])
    found = rota.torch.Learner(model, None, batches, batches, shared="trainable", device="cpu")
    assert {tensor.name for tensor in found.tensors()} == {"lm_head.lora_A", "lm_head.lora_B"}
    assert found.frozen() is not None
    update = found.train(values(found), training())
    assert update.samples == 13 and np.any(update.model["lm_head.lora_B"])
