"""No code of ours runs what somebody else wrote: no pickle, no shell, no eval, and checkpoints are loaded as weights only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "streams", "gpu_consumers", "qc_consumers", "infra", "benchmarks", "examples")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
HARMLESS = {"UnpicklingError"}
"""What `torch.load(weights_only=True)` raises for a file that is not only weights."""
SAFE_LOADERS = {"_Loader"}
"""Subclasses of yaml.SafeLoader: see streams/prompts/storyboard.py."""


def name_of(node: ast.expr) -> str:
    """`os.system` of a call's function; empty for what has no name."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def unsafe(source: str) -> list[str]:
    """What is wrong with a module, line by line."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [f"{node.lineno}: {a.name}" for a in node.names if a.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            found += [f"{node.lineno}: {node.module}.{a.name}" for a in node.names if a.name not in HARMLESS]
        elif isinstance(node, ast.Call):
            found += [f"{node.lineno}: {what}" for what in _in_call(node)]
    return found


def _in_call(call: ast.Call) -> list[str]:
    name, arguments = name_of(call.func), {k.arg: k.value for k in call.keywords}
    found = [name] if name in CALLS else []
    if "shell" in arguments and not _is(arguments["shell"], value=False):
        found.append("shell")
    if name == "torch.load" and not _is(arguments.get("weights_only"), value=True):
        found.append("torch.load without weights_only")
    if name in ("np.load", "numpy.load") and "allow_pickle" in arguments:
        found.append("allow_pickle")
    if name in ("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"):
        loader = arguments.get("Loader") or (call.args[1] if len(call.args) > 1 else None)
        if loader is None or name_of(loader).rpartition(".")[2] not in {"SafeLoader", "CSafeLoader", *SAFE_LOADERS}:
            found.append(name)
    return found


def _is(node: ast.expr | None, *, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_no_module_has_an_unsafe_call() -> None:
    assert len(FILES) > 100
    found = {str(file.relative_to(ROOT)): unsafe(file.read_text(encoding="utf-8")) for file in FILES}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "torch.load(f, weights_only=flag)",
        "np.load(f, allow_pickle=True)",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=flag)",
        "os.system('ls')",
        "eval('1')",
        "exec(code)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
    ],
)
def test_an_unsafe_call_is_found(code: str) -> None:
    assert unsafe(code)


@pytest.mark.parametrize(
    "code", ["torch.load(f, weights_only=True)", "yaml.safe_load(t)", "model.eval()", "yaml.load(t, Loader=_Loader)"]
)
def test_a_safe_one_is_not(code: str) -> None:
    assert unsafe(code) == []
