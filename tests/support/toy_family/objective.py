"""How toys are trained: by the trainer on stores, with the margin loss."""

from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.store_trainer import StoreTrainer
from support.toy_family.directory import ToyEncoder

HAS_HISTORY = False


def new_model(store, settings):
    return ToyEncoder.of(token_embedding(store.tokenizer(), settings.dim))


def trainer(model, store, settings, folder, evaluator=None):
    arguments = StoreTrainingArguments(
        str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=16,
        seed=settings.seed,
        use_cpu=True,
        eval_strategy="epoch" if evaluator else "no",
    )
    return StoreTrainer(model, arguments, store, MarginHardNegativeLoss(model), evaluator=evaluator)


def trained(trainer):
    return trainer.model
