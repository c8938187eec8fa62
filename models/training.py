"""One optimizer step, as a textbook has it."""

from torch import Tensor, nn

from gptscope.models.prepare import PreparedModel


class TrainStep:
    """Forward, next-token cross-entropy, backward, AdamW.

    All L tokens go through the model, so that a step costs exactly batch x sequence tokens; the last one has nothing
    to predict and takes no part in the loss. Nothing in a step is random: the same weights and tokens give the same
    losses.
    """

    def __init__(self, prepared: PreparedModel, lr: float = 3e-4) -> None:
        self._prepared = prepared
        self._optimizer = prepared.make_optimizer(lr)
        self._scaler = prepared.grad_scaler()

    def __call__(self, tokens_BL: Tensor) -> Tensor:
        """Train on one batch; return the loss before the update, a scalar in FP32."""
        tokens_BL = tokens_BL.to(self._prepared.device)
        self._optimizer.zero_grad(set_to_none=True)
        with self._prepared.autocast():
            logits_BLV = self._prepared.forward(tokens_BL)
        loss = nn.functional.cross_entropy(logits_BLV[:, :-1].flatten(0, 1).float(), tokens_BL[:, 1:].flatten())
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return loss.detach()
