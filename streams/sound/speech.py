"""Words to a file of sound, by eSpeak NG where it is installed."""

import shutil
import subprocess
from pathlib import Path

from schemas.records import Sound
from streams.sound import SoundError

PROGRAM = "espeak-ng"
REMEDY = "install the package espeak-ng (Debian: apt-get install espeak-ng)"
WAV = "audio/wav"
_TIMEOUT_S = 60.0


def spoken(sound: Sound, path: Path) -> None:
    """Write what it says as WAV. Raises: SoundError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise SoundError(f"narration: this worker has no {PROGRAM}: {REMEDY}")
    command = [program, "-v", sound.voice, "-s", str(sound.words_per_minute), "-b", "1", "-w", str(path), "--stdin"]
    try:
        ran = subprocess.run(command, input=sound.text.encode(), capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SoundError(f"narration: {PROGRAM} was not done after {_TIMEOUT_S:.0f} s") from error
    if ran.returncode or not path.is_file():
        said = ran.stderr.decode(errors="replace").strip()[-200:]
        raise SoundError(f"narration: {PROGRAM} ended with {ran.returncode}: {said}")
