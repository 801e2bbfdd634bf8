"""Networks on onnxruntime, and interpolation on numpy: no torch.

What surrounds the network is that of `prediction.predict`, for one pair of arrays.
"""

import os
from typing import Any

import numpy as np

from ducos.arrays import Size
from ducos.hints import mode_of
from ducos.kernels import FARTHER
from ducos.runtime import PLAIN, can_take_prior, open_network
from ducos.sampling import area, bilinear, doubted, fill_holes, masked_bicubic
from ducos.upscaling.options import Options, memory_limit
from ducos.upscaling.runtimes import Answer, Progress, Question
from ducos.upscaling.weights import find_weights


class OnnxRuntime:
    """A model of the package by name, or a weight file with graphs beside it."""

    bounded = True

    def __init__(self, options: Options):
        weights = find_weights(options.chosen_model)
        self.network: Any
        self.trained = weights is not None
        self.takes_prior = weights is not None and can_take_prior(weights)
        if weights is None:
            self.network = PLAIN[os.fspath(options.chosen_model)]
        else:
            self.network = open_network(weights, options.threads)

    def answer(self, question: Question, progress: Progress | None) -> Answer:
        image, options = question.image, question.options
        low, valid, trust = question.low.depth, question.low.valid, question.low.confidence
        size: Size = (min(low.shape[0], image.shape[1]), min(low.shape[1], image.shape[2]))
        if size != low.shape:  # a depth map finer than its image: shrink it first
            trust = None if trust is None else bilinear(trust, size)
            low, valid = masked_bicubic(low, valid, size)
        known = low[valid]
        lowest, highest = (known.min(), known.max()) if known.size else (np.float32(0),) * 2
        span = highest - lowest if highest > lowest else np.float32(1)
        far = 0.0 if question.low.unit == "relative" else FARTHER
        guide = area(image, size)
        if trust is None:
            filled = fill_holes(low, valid, guide, far)
            trust = valid.astype(np.float32)
        else:
            trust = valid * trust
            filled = doubted(low, trust, guide, far)
        normalised = (filled - lowest) / span
        full = (image.shape[1], image.shape[2])
        if self.trained:
            told = {"mode": mode_of(options.mode, options.sensor), "sensor": options.sensor}
            found = self.network(
                np.ascontiguousarray(image),
                normalised,
                trust,
                noise=float(question.noise / span),
                told=told,
                prior=question.prior,
                memory=memory_limit(options.tile),
                progress=progress,
            )
            return Answer(found.depth * span + lowest, found.sigma * span, found.leaned)
        return Answer(self.network(normalised, full) * span + lowest)
