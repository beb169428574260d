"""Frames, latents and blocks of a take: the first latent is one frame, every other one four; a block is three latents."""

from gpu_consumers.engines.causal_dit.config import Window


def frames_of(latents: int) -> int:
    """Frames that this many latents from the take's start decode to."""
    return 4 * latents - 3 if latents else 0


def blocks_for(frames: int, window: Window) -> int:
    """Blocks that hold at least this many frames from the take's start."""
    latents = (frames + 3 + 3) // 4
    return -(-latents // window.block)
