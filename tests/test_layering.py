"""Rules about the sources themselves: imports, sizes, names, and independence of the machine."""
from __future__ import annotations

import ast
import importlib
import re
import subprocess
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "ir": set[str](),
    "dialects": {"ir"},
    "passes": {"ir", "dialects"},
    "backends": {"ir", "dialects", "passes"},
    "frontend": {"ir", "dialects", "passes"},
    "mlc": {"ir", "dialects", "passes", "backends", "frontend"},
    "tools": {"ir", "dialects", "passes", "backends", "frontend", "mlc"},
}
"""ir <- dialects <- passes <- backends, frontend <- mlc <- tools. A folder may import itself."""
EXCEPTIONS = {("ir/passes.py", "mlc.passes"): "lists the passes that can be found by name",
              ("mlc/__init__.py", "mlc.tools.notebook"): "is called by IPython alone, by the name of the package",
              ("mlc/__main__.py", "mlc.tools.cli.main"): "is the command, by the name of the package"}
"""(file, module): the reason why an import against the order is right."""
OTHER_FOLDERS = ("tests", "examples")
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}
PYTORCH = ("mlc/utils/", "mlc/nn/utils/", "mlc/nn/modules/utils.py", "tests/peers/standins/torchvision/")
"""The exceptions, since programs import `torch.utils.data` and `torch.nn.utils` by these names."""
FILE_LINES, TEST_LINES = 500, 800           # of tests one asks whether it is one thing above the first, too
TABLES = {"frontend/methods.py": "the types of every method, by family, and what is said of others than functions"}
"""Files that may be as long as tests: a list that is read by searching, for which any division would be by number."""
FUNCTION_LINES = 60                        # without the documentation, whose length is not the function's
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:work|root|home|Users)(?:/|\b)")


def sources() -> list[Path]:
    """Every Python file, once: the links in mlc/ are not followed."""
    return [path for folder in (*MAY_IMPORT, *OTHER_FOLDERS) for path in sorted((ROOT / folder).glob("*/**/*.py"))
            + sorted((ROOT / folder).glob("*.py")) if not through_link(path)]


def through_link(path: Path) -> bool:
    return any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes_by_class(module: ast.Module) -> dict[type[ast.AST], list[ast.AST]]:
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(module):
        found.setdefault(type(node), []).append(node)
    return found


def nodes(module: ast.Module, *classes: type[ast.AST]) -> list[Any]:
    """The nodes of these classes in a file: a dozen tests ask for a few of two million."""
    return [node for cls in classes for node in nodes_by_class(module).get(cls, ())]


# -- imports ----------------------------------------------------------------------------------------------------------
def imported_modules(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that is imported: in functions too, and by `import_module` of a literal.

    `import_module` of a computed name is how passes and dialects are found by the name a text gives them, ours and
    those of a user's package alike; it makes no layer depend on another.
    """
    for node in nodes(module, ast.Import, ast.ImportFrom, ast.Call):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(level=level) if level:
                yield node.lineno, "." * level + (node.module or "")
            case ast.ImportFrom(module=str(base), names=names):
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[first, *_]):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield node.lineno, first.value


def layer(dotted: str) -> str | None:
    """The folder a module lives in; None if it is not ours."""
    parts = dotted.split(".")
    if parts[0] != "mlc":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "mlc"


def import_faults(file: str, module: ast.Module) -> list[str]:
    """Violations of the layering by the imports of a file, one line each."""
    faults, folder = [], file.split("/", 1)[0]
    for line, dotted in imported_modules(module):
        target = layer(dotted)
        if (file, dotted) in EXCEPTIONS:
            continue
        if dotted.startswith("."):
            faults.append(f"{line}: relative import {dotted}; write mlc.{folder}....")
        elif dotted.split(".")[0] in MAY_IMPORT.keys() - {"mlc"}:
            faults.append(f"{line}: import {dotted} loads it a second time; write mlc.{dotted}")
        elif target and target != folder and target not in MAY_IMPORT[folder]:
            allowed = ", ".join(sorted(MAY_IMPORT[folder])) or "nothing else of mlc"
            faults.append(f"{line}: {folder} imports {dotted}; it may import {allowed}")
    return faults


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_point_down(folder: str) -> None:
    faults = [f"{name(path)}:{fault}" for path in sources() if path.relative_to(ROOT).parts[0] == folder
              for fault in import_faults(name(path), tree(path))]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize("folder, source, sound", [
    ("dialects", "from mlc.ir.core import Op", True),
    ("dialects", "from mlc.dialects import arith", True),
    ("dialects", "import numpy.ir, irony", True),
    ("ir", "from mlc.dialects import arith", False),
    ("ir", "from mlc import dialects", False),
    ("ir", "import mlc.dialects.arith as a", False),
    ("ir", "import mlc", False),
    ("ir", "from mlc.api import compile", False),
    ("passes", "def f():\n    from mlc.backends import link", False),
    ("passes", "import importlib\ndef f(n): return importlib.import_module('mlc.passes.' + n)", True),
    ("ir", "import importlib\ndef f(n): return importlib.import_module(f'mlc.dialects.{n}')", True),
    ("ir", "import importlib\ndef f(): return importlib.import_module('mlc.dialects.arith')", False),
    ("backends", "from mlc.frontend import trace", False),
    ("frontend", "from mlc.backends import link", False),
    ("mlc", "from mlc.tools import cli", False),
    ("tools", "import mlc\nfrom mlc.api import compile", True),
    ("mlc", "from . import api", False),
    ("mlc", "from ..ir import core", False),
    ("passes", "from dialects import arith", False),
    ("passes", "import ir.core", False),
])
def test_import_faults_are_found(folder: str, source: str, sound: bool) -> None:
    assert (not import_faults(folder, ast.parse(source))) is sound


def private_imports(module: ast.Module) -> list[str]:
    """Names with a leading underscore that are taken from another module, one line each."""
    imports = [node for node in nodes(module, ast.ImportFrom) if layer(node.module or "")]
    modules = {alias.asname or alias.name for node in imports for alias in node.names if alias.name.islower()}
    names = [(node.lineno, alias.name) for node in imports for alias in node.names]
    names += [(node.lineno, node.attr) for node in nodes(module, ast.Attribute)
              if isinstance(node.value, ast.Name) and node.value.id in modules]
    return [f"{line}: {name}" for line, name in names if re.match(r"_[^_]", name)]


def test_private_names_stay_in_their_module() -> None:
    faults = [f"{name(path)}:{fault}" for path in sources() if path.relative_to(ROOT).parts[0] in MAY_IMPORT
              for fault in private_imports(tree(path))]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize("source, sound", [
    ("from mlc.ir.core import Op", True), ("from numpy import _core", True), ("from mlc.ir.core import _Op", False),
    ("from mlc.ir import core\ncore._op()", False), ("from mlc.ir import core\nself._op()", True),
    ("from mlc.ir import core\ncore.__name__", True),
])
def test_private_imports_are_found(source: str, sound: bool) -> None:
    assert (not private_imports(ast.parse(source))) is sound


def module_of(path: Path) -> str:
    """The dotted name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "mlc" else ("mlc", *parts)).removesuffix(".__init__")


PRINTS_ITSELF = ("mlc.ir.core", "mlc.ir.printer")
"""`str(op)` is text of MLIR, for messages and debuggers: the one import of a module above."""


@cache
def graph() -> dict[str, set[str]]:
    """For each module of the package those that it imports when it runs, in functions too, but for PRINTS_ITSELF."""
    modules = {module_of(path): path for path in sources() if path.relative_to(ROOT).parts[0] in MAY_IMPORT}
    out = dict[str, set[str]]()
    for module, path in modules.items():
        typing = {id(node) for block in nodes(tree(path), ast.If)
                  if ast.unparse(block.test) == "TYPE_CHECKING" for node in ast.walk(block)}
        run = ast.Module([node for node in nodes(tree(path), ast.Import, ast.ImportFrom) if id(node) not in typing], [])
        names = {dotted if dotted in modules else dotted.rpartition(".")[0] for _, dotted in imported_modules(run)}
        out[module] = names & modules.keys() - {module}
    out[PRINTS_ITSELF[0]].remove(PRINTS_ITSELF[1])
    return out


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others."""
    def reached(start: str) -> set[str]:
        seen, work = set[str](), [start]
        while work:
            new = edges[work.pop()] - seen
            seen |= new
            work += new
        return seen

    edges = dict(edges)
    while ends := [module for module in edges if not edges[module] & edges.keys()]:
        for module in ends:                                # it is in no group
            del edges[module]
    edges = {module: targets & edges.keys() for module, targets in edges.items()}
    reach = {module: reached(module) for module in edges}
    inside = {frozenset(other for other in reach[module] if module in reach[other]) for module in edges
              if module in reach[module]}
    return sorted(map(sorted, inside))


def test_no_module_imports_itself_through_others() -> None:
    assert not cycles(graph()), "\n".join(" and ".join(group) for group in cycles(graph()))


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [["b", "c"]]


SHARED = ("analysis", "differentiate", "schedule", "lower_kernel", "lower_to_llvm")
"""The folders of passes that hold what several of them use."""


def test_passes_do_not_reach_into_each_other() -> None:
    """A pass may run another one, whole; what is inside is its own. What several need is in a shared folder."""
    faults = []
    for module, targets in graph().items():
        own = module.split(".")[2:3]
        faults += [f"{module} imports {target}" for target in targets if module.startswith("mlc.passes.")
                   and target.startswith("mlc.passes.") and target.count(".") > 2
                   and target.split(".")[2] not in (*own, *SHARED)]
    assert not faults, "\n".join(faults)


def test_every_module_imports() -> None:
    """Or it lacks an optional dependency."""
    required = {"mlc", "numpy", "llvmlite", "ml_dtypes"}
    faults = []
    for path in sources():
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in OTHER_FOLDERS or parts[-1] == "__main__":
            continue
        try:
            importlib.import_module(".".join(("mlc", *parts) if parts[0] != "mlc" else parts).removesuffix(".__init__"))
        except ImportError as e:
            if not e.name or e.name.split(".")[0] in required:
                faults.append(f"{name(path)}: {e}")
    assert not faults, "\n" + "\n".join(faults)


def test_links_lead_to_the_folders() -> None:
    for folder in MAY_IMPORT.keys() - {"mlc"}:
        link = ROOT / "mlc" / folder
        assert link.is_symlink(), f"mlc/{folder} is no symbolic link; a checkout without links cannot be installed"
        assert link.readlink() == Path("..", folder)


# -- sizes and names --------------------------------------------------------------------------------------------------
def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines of a function, without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def test_functions_are_measured_without_their_documentation() -> None:
    (function,) = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    return x\n').body
    assert isinstance(function, ast.FunctionDef) and lines_of(function) == 3


def test_files_and_functions_are_short() -> None:
    asked, failed = list[str](), list[str]()
    for path in sources():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        long = TEST_LINES if name(path).startswith("tests/") or name(path) in TABLES else FILE_LINES
        sized = [(name(path), lines, FILE_LINES, long)]
        for node in nodes(tree(path), ast.FunctionDef, ast.AsyncFunctionDef):
            sized.append((f"{name(path)}:{node.lineno} {node.name}", lines_of(node), FUNCTION_LINES, FUNCTION_LINES))
        for what, lines, ask, fail in sized:
            if lines > ask and what not in TABLES:
                (failed if lines > fail else asked).append(f"{what}: {lines} lines, more than {ask}")
    if asked:
        warnings.warn("is each of these one thing?\n" + "\n".join(asked), stacklevel=1)
    assert not failed, "split by meaning:\n" + "\n".join(failed)
    short = [file for file in TABLES if len((ROOT / file).read_text(encoding="utf-8").splitlines()) <= FILE_LINES]
    assert not short, f"need no exception: {short}"


def test_names_say_what_is_inside() -> None:
    bad = [name(path) for path in sources() if not name(path).startswith(PYTORCH)
           and SAYS_NOTHING & {path.stem, *(p.lower() for p in name(path).split("/")[:-1])}]
    assert not bad, f"a name that says nothing: {', '.join(bad)}"


def test_modules_say_what_they_are() -> None:
    bad = [name(path) for path in sources() if path.read_bytes().strip() and not ast.get_docstring(tree(path))]
    assert not bad, f"no docstring: {', '.join(bad)}"


def test_docstrings_name_their_subject() -> None:
    """A docstring that begins with "What" is a clause without its sentence, also below an assignment."""
    bad = [f"{name(path)}:{node.lineno}" for path in sources() for node in nodes(tree(path), ast.Expr)
           if isinstance(node.value, ast.Constant) and str(node.value.value).lstrip().startswith("What")]
    assert not bad, f"docstrings that begin with \"What\": {', '.join(bad)}"


# -- files of the repository ------------------------------------------------------------------------------------------
def repository_files() -> list[Path]:
    """Files that git tracks or would track; without git, the sources."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return sources()
    paths = (ROOT / line for line in listed.split("\0") if line)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_paths_of_a_machine() -> None:
    found = []
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if MACHINE_PATH.search(line) and path != Path(__file__):
                found.append(f"{name(path)}:{number}: {line.strip()[:100]}")
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("text, bad", [
    ("cd /" + "work/x", True), ("path='/" + "root'", True), ("(/" + "home/me/x)", True), ("/homes", False),
    ("~/" + "work/x", False),
    ("https://example.org/home/x", False), ("framework/work", False), ("./work", False),
])
def test_machine_paths_are_recognised(text: str, bad: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is bad


def test_ci_runs_the_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1]
    assert command.endswith("pytest -n auto")
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()


# -- what catches every error ----------------------------------------------------------------------------------------
GOES_ON = {
    "passes/differentiate/batch.py:_unwind": "the error is on its way already; any other is raised",
    "backends/transport/pending.py:run": "the error is raised where the collective is waited for",
    "backends/transport/threads.py:call": "the error is raised by `run`, for the thread that it is of",
    "dialects/shard/ranks.py:of": "the error is raised by `run`, for the rank that it is of",
    "mlc/checked.py:plain_run": "the program's error is what the compiled call is compared with; a defect is raised",
    "mlc/utils/data/worker.py:_answer_all": "the error is raised in the main process",
    "tools/child.py:__init__": "a forked child tells what ended it, and ends",
    "tools/cli.py:_run": "the command tells what ended it, a defect as a defect",
    "tools/gpu_check.py:check": "a check that dies is a row of the report",
    "tools/bench/measuring.py:measure": "another framework that cannot run a row is named in the table",
    "tools/serve/worker.py:_run": "a model that cannot be loaded is named to who asks for it, and others are served",
    "tools/serve/worker.py:_turn": "an error of a step ends the requests it concerns, and is logged; others go on",
    "tools/trials.py:_run": "a program that ends with an error is what is bisected",
    "tools/fuzzing/": "whatever something dies of is a finding",
}
"""(file:function, or folder): why a handler of every error does not end by raising."""


def silent_handlers(module: ast.Module) -> Iterator[str]:
    """The functions in which a handler of Exception or BaseException does not end by raising."""
    if not any(map(catches_all, nodes(module, ast.ExceptHandler))):
        return
    for function in nodes(module, ast.Module, ast.FunctionDef, ast.AsyncFunctionDef):
        work: list[ast.AST] = list(ast.iter_child_nodes(function))
        while work:
            node = work.pop()
            if isinstance(node, ast.ExceptHandler) and catches_all(node) and not isinstance(node.body[-1], ast.Raise):
                yield getattr(function, "name", "")
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                work += ast.iter_child_nodes(node)


def catches_all(handler: ast.ExceptHandler) -> bool:
    named = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)} if handler.type is not None else None
    return named is None or bool(named & {"Exception", "BaseException"})


def test_broad_exception_handlers_raise() -> None:
    """A defect that is caught would look like a fallback, or like a mistake of the user's."""
    found = {f"{name(path)}:{function}" for path in sources() if name(path).split("/")[0] in MAY_IMPORT
             for function in silent_handlers(tree(path))}
    assert not {at for at in found if not at.startswith(tuple(GOES_ON))}
    assert not {key for key in GOES_ON if not any(at.startswith(key) for at in found)}, "they end by raising now"


@pytest.mark.parametrize("handler, silent", [
    ("except Exception: pass", True), ("except: pass", True), ("except (Exception, SystemExit) as e: log(e)", True),
    ("except BaseException:\n  undo()\n  raise", False), ("except Exception as e: raise Coded(e) from e", False),
    ("except Exception as e:\n  if odd(e): raise\n  x = 1", True), ("except (KeyError, TypeError): pass", False),
])
def test_silent_handlers_are_found(handler: str, silent: bool) -> None:
    body = "\n".join(" " + line for line in f"try: f()\n{handler}".splitlines())
    assert [*silent_handlers(ast.parse(f"def g():\n{body}"))] == ["g"] * silent


# -- what may touch files, run code or open connections ---------------------------------------------------------------
WRITERS = {"ir/files.py": "the writer of files", "backends/private.py": "the key of the cache, under a lock",
           "backends/load.py": "memory that the system's loader takes for a file"}
WRITING = re.compile(r"write_bytes|write_text|rename|NamedTemporaryFile|mkstemp|os\.(replace|link|O_)|open\(")
RUNNING = re.compile(r"pickle|marshal|shelve|eval|exec|runpy|__import__|ctypes|dlopen|subprocess|os\.system|popen|"
                     r"socket|urllib|http|ssl|ftplib|smtplib|requests")
NO_DATA = {"eval", "exec", "__import__"}
NO_MODULES = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "socket", "urllib", "http",
              "ssl", "ftplib", "smtplib", "requests", "httpx", "aiohttp", "xmlrpc"}


def product(words: re.Pattern[str]) -> Iterator[tuple[Path, ast.AST]]:
    """The nodes of files that users get, of those in which one of these words stands."""
    for path in sources():
        if name(path).split("/")[0] in MAY_IMPORT and words.search(path.read_text(encoding="utf-8")):
            for node in nodes(tree(path), ast.Call, ast.Attribute, ast.keyword, ast.Import, ast.ImportFrom):
                yield path, node


def writes(node: ast.AST) -> bool:
    """Whether a call may write to a file in another way than ir/files.py does."""
    match node:
        case ast.Call(func=ast.Attribute(attr="write_bytes" | "write_text" | "NamedTemporaryFile" | "mkstemp")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="replace" | "rename" | "link")):
            return True
        case ast.Call(func=ast.Name(id="open"), args=[_, ast.Constant(value=str(mode)), *_]):
            return bool(set(mode) & set("wax+"))
        case ast.Attribute(value=ast.Name(id="os"), attr="O_CREAT" | "O_TRUNC"):
            return True
    return False


def test_one_module_writes_files() -> None:
    """Atomic writes, unique names, no links, no leftovers: implemented in one place, which all code uses."""
    assert not [f"{name(path)}:{node.lineno}" for path, node in product(WRITING)  # type: ignore[attr-defined]
                if writes(node) and name(path) not in WRITERS]


def runs_or_connects(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=called)):
            return called in NO_DATA
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen")):
            return True
        case ast.keyword(arg="shell" | "allow_pickle", value=value):
            return not isinstance(value, ast.Constant) or value.value is not False
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] in NO_MODULES for alias in names)
        case ast.ImportFrom(module=str(base)):
            return base.split(".")[0] in NO_MODULES
    return False


def test_data_is_not_run_and_no_connection_is_opened() -> None:
    """SECURITY.md: nothing unpickles, evaluates text, starts a shell or speaks to another machine."""
    assert not [f"{name(path)}:{node.lineno}" for path, node in product(RUNNING)  # type: ignore[attr-defined]
                if runs_or_connects(node)]
