"""Every model on torch, on the processor or a graphics card."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models import as_model
from ducos.upscaling.loading import device_of, load
from ducos.upscaling.options import Options, is_name, memory_limit
from ducos.upscaling.prediction import predict
from ducos.upscaling.runtimes import Answer, Progress, Question


class TorchRuntime:
    """A model by name, a weight file, or a module, which runs where it is."""

    def __init__(self, options: Options):
        model: Any = options.chosen_model
        self.network: nn.Module
        if is_name(model):
            self.device = device_of(options.device)
            self.network = load(
                model, device=self.device, accept_noncommercial=options.accept_noncommercial
            )
        else:
            self.network = model
            where = next((p.device for p in model.parameters()), None)
            self.device = where or device_of(options.device)
        self.bounded = as_model(self.network).bounded
        self.takes_prior = as_model(self.network).takes_prior
        self.mode = Lock()  # held while a module in training is told to evaluate, or back
        self.at_work = 0  # answers under way; the last one to end tells it to train again
        self.was_training = False

    def answer(self, question: Question, progress: Progress | None) -> Answer:
        options, low = question.options, question.low
        with computing(options.threads), self.evaluating(), torch.inference_mode():
            made = predict(
                self.network,
                self.batch(question.image),
                self.batch(low.depth),
                self.batch(low.valid),
                confidence=None if low.confidence is None else self.batch(low.confidence),
                mode=options.mode,
                sensor=options.sensor,
                noise=question.noise,
                prior=None if question.prior is None else self.batch(question.prior),
                metric=low.unit != "relative",
                memory=memory_limit(options.tile),
                progress=progress,
            )
        maps = (made.aux.get(name) for name in ("sigma", "leaned"))
        return Answer(plane(made.depth), *(None if each is None else plane(each) for each in maps))

    def batch(self, x: Any) -> Tensor:
        """(C, H, W) or (H, W) as a batch of one, (1, C, H, W), on the device of the network."""
        tensor = torch.from_numpy(np.ascontiguousarray(x)).to(self.device)
        return tensor.reshape(1, -1, *tensor.shape[-2:])

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """A module that is being trained is put into evaluation meanwhile."""
        with self.mode:
            if self.at_work == 0 and self.network.training:
                self.was_training = True
                self.network.eval()
            self.at_work += 1
        try:
            yield
        finally:
            with self.mode:
                self.at_work -= 1
                if self.at_work == 0 and self.was_training:
                    self.was_training = False
                    self.network.train()


def plane(x: Tensor) -> Any:
    """(1, 1, H, W) as an array (H, W) of its own."""
    return x[0, 0].clone().cpu().numpy()


_threads = {"most": 1, "forked": 0}


def after_fork() -> None:
    """In a forked child torch's threads are gone, and to wait for them is to wait for ever."""
    if _threads["most"] > 1:
        torch.set_num_threads(1)
        _threads["forked"] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


@contextmanager
def computing(threads: int | None) -> Iterator[None]:
    """So many threads of the processor meanwhile; the number belongs to the whole process."""
    _threads["most"] = max(_threads["most"], threads or torch.get_num_threads())
    if _threads["forked"] and (threads or 1) > 1:
        raise InputError(
            f"this process was forked after a super-resolution, so it has one thread, got {threads}"
            " threads; leave threads out, or start processes by spawn instead of fork"
        )
    if threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
