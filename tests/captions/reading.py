"""Subtitles as other programs read them."""

import subprocess
from pathlib import Path

import imageio_ffmpeg


def subrip(path: Path) -> str:
    """The subtitles as ffmpeg reads them."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-map", "0:s", "-f", "srt", "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
