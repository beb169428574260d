"""Tiny models: one thread each, or the threads cost more than the work."""

import torch

torch.set_num_threads(1)
