"""A module of Lightning, trained by its own Trainer in every round.

"""

import logging
import warnings

import lightning
import rota
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ward(lightning.LightningModule):
    """As it was written for one hospital."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        self.rate = 0.1

    def training_step(self, batch, place):
        x, y = batch
        loss = nn.functional.cross_entropy(self.layers(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


def rows(place):
    draw = torch.Generator().manual_seed(place)
    x = torch.randn(120, 6, generator=draw)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).long()
    return TensorDataset(x[:90], y[:90]), (x[90:], y[90:])


def learner(silo: rota.Silo) -> rota.Learner:
    train_rows, (x, y) = rows(silo.place)
    lightning.seed_everything(silo.seed % (1 << 32), verbose=False)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    module = Ward()

    def put(model):
        module.load_state_dict({name: torch.from_numpy(value) for name, value in model.items()})

    def arrays():
        return {name: value.numpy().copy() for name, value in module.state_dict().items()}

    def train(model, training):
        put(model)
        module.rate = training.rate
        torch.manual_seed(training.seed % (1 << 63))
        trainer = lightning.Trainer(
            max_epochs=training.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )
        with warnings.catch_warnings():
            # About workers of loaders and intervals of logs, in every round anew.
            warnings.simplefilter("ignore")
            trainer.fit(module, DataLoader(train_rows, batch_size=training.batch, shuffle=True))
        loss = float(trainer.callback_metrics["train_loss"])
        return rota.Update(arrays(), {"loss": loss})

    def evaluate(model, split):
        put(model)
        module.eval()
        with torch.no_grad():
            outputs = module.layers(x)
        right = (outputs.argmax(1) == y).float().mean()
        return {"loss": float(nn.functional.cross_entropy(outputs, y)), "accuracy": float(right)}

    return rota.FunctionLearner(arrays(), train, evaluate, rota.Rows(train=len(train_rows), test=len(y)))


if __name__ == "__main__":
    rota.serve(learner)
