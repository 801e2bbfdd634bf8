"""Several processes as one: shared batches, averaged gradients, and an orderly stop."""

import os
import signal
import subprocess
import threading
from functools import cache
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ducos.children import environment, python_program
from ducos.upscaling import device_of


def join_processes() -> tuple[int, int]:
    """(rank, number of processes) under torchrun, else (0, 1)."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return (dist.get_rank(), world) if world > 1 else (0, 1)


def pick_device(name: str = "auto", rank: int = 0) -> torch.device:
    """The device of a name; of several GPUs, this process's."""
    device = device_of(name)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", rank % torch.cuda.device_count())
    return device


HALF_PRECISION_TRIAL = """
import torch
with torch.autocast("cpu", torch.bfloat16):
    x = torch.randn(1, 16, 64, 64, requires_grad=True)
    product = torch.nn.functional.conv2d(x, torch.randn(16, 16, 3, 3)) @ torch.randn(62, 62)
product.float().sum().backward()
"""


@cache
def half_precision_runs() -> bool:
    """Whether this CPU multiplies in bfloat16. Some virtual machines announce AMX and do not have
    it; who believes them dies of an illegal instruction, so a child process tries first."""
    trial = subprocess.run(
        python_program("exec(task[0])", HALF_PRECISION_TRIAL),
        env=environment(),
        capture_output=True,
    )
    return trial.returncode == 0


def average_gradients(parameters: list[nn.Parameter], world: int) -> None:
    """Mean of every gradient over the processes, in one message."""
    if world == 1:
        return
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([g.reshape(-1) for g in gradients])
    dist.all_reduce(flat)
    flat /= world
    offset = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.grad = flat[offset : offset + count].view_as(parameter)
        offset += count


def average_numbers(numbers: dict[str, Tensor], world: int) -> dict[str, float]:
    """Plain numbers, averaged over the processes so that every multiplier stays the same."""
    stacked = torch.stack([value.detach().double() for value in numbers.values()])
    if world > 1:
        dist.all_reduce(stacked)
        stacked /= world
    return dict(zip(numbers, stacked.tolist(), strict=True))


class StopRequest:
    """The first SIGINT or SIGTERM finishes the step and saves; the second one ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self.former: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                self.former[name] = signal.signal(name, self.ask)

    def __enter__(self) -> "StopRequest":
        return self

    def __exit__(self, *problem: object) -> None:
        for name, handler in self.former.items():
            signal.signal(name, handler)

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def agreed(self, world: int, device: torch.device) -> bool:
        """True on every process as soon as one was asked."""
        if world == 1:
            return self.asked
        flag = torch.tensor(float(self.asked), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag > 0)
