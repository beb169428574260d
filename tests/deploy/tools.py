"""The programs that check what a deployment is made of. `make deploy-tools` builds them; a missing one fails."""

import subprocess
import sys
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "infra" / "deploy"


def run_tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a tool of the environment."""
    tool = Path(sys.prefix) / "bin" / name
    assert tool.exists(), f"{name} is missing: 'make deploy-tools' builds it, which needs Go"
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
