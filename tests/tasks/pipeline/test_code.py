"""What changes the digest of code, and what does not: a small tree of modules, and the project's own."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import REPOSITORY

from tasks.pipeline import digests
from tasks.pipeline.digests import Sources

TREE = {
    "ours/__init__.py": '"""What is ours."""\n',
    "ours/stage.py": """
import numpy as np
from typing import TYPE_CHECKING
from ours.steps import search
from ours.steps.figures import HALF, total as all_of
if TYPE_CHECKING:
    from ours.steps import words

class Stage:
    '''A stage.'''
    def run(self, x: "words.Word") -> float:
        '''Run.'''
        from ours.store import put
        put(search.found(np.asarray(x)))
        return all_of(x) * HALF  # half of it
""",
    "ours/steps/__init__.py": "",
    "ours/steps/search.py": "from ours.steps.figures import HALF\ndef found(x):\n    return x[x > HALF]\n",
    "ours/steps/figures.py": """
from ours.steps.numbers import WEIGHT
HALF = 0.5
def total(x):
    return sum(x) * WEIGHT
""",
    "ours/steps/numbers.py": "WEIGHT = 2.0\n",
    "ours/steps/words.py": "class Word(str):\n    pass\n",
    "ours/store.py": "def put(x):\n    print(x)\n",
}
"""``stage`` reaches ``numbers`` by way of ``search`` and ``figures``; ``store`` moves results, and makes none."""

Digest = Callable[[Mapping[str, str]], str]


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    """The digest of the module ``stage`` of a tree, written anew each time; shapes are kept between trees."""

    def digest_of(tree: Mapping[str, str], stage: str = "ours.stage") -> str:
        shutil.rmtree(tmp_path / "ours", ignore_errors=True)
        for name, text in tree.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        unreached = tuple(n.removesuffix(".py").replace("/", ".") for n in tree if n.endswith("store.py"))
        return sources_in(tmp_path, unreached).digests([stage])[0]

    return digest_of


def sources_in(place: Path, unreached: tuple[str, ...] = ()) -> Sources:
    return Sources(place, ("ours",), unreached, place / "kept.json")


def changed(*replaced: tuple[str, str]) -> dict[str, str]:
    """The tree with texts replaced, in the names of its files too."""
    tree = dict(TREE)
    for old, new in replaced:
        assert any(old in part for item in tree.items() for part in item), old
        tree = {name.replace(old, new): text.replace(old, new) for name, text in tree.items()}
    return tree


def test_a_moved_module_changes_no_digest(digest: Digest) -> None:
    moved = changed(("ours/steps/numbers", "ours/deep/er/numbers"), ("ours.steps.numbers", "ours.deep.er.numbers"))
    assert digest(moved) == digest(TREE)


def test_a_moved_package_changes_no_digest(digest: Digest) -> None:
    assert digest(changed(("ours/steps/", "ours/way/steps/"), ("ours.steps", "ours.way.steps"))) == digest(TREE)


def test_a_renamed_module_changes_no_digest_although_it_has_another_name_in_what_imports_it(digest: Digest) -> None:
    renamed = changed(
        ("steps/search.py", "steps/look.py"), ("import search", "import look"), ("search.found", "look.found")
    )
    assert digest(renamed) == digest(TREE)
    assert digest(changed(("import search", "import search as _s"), ("search.found", "_s.found"))) == digest(TREE)
    assert digest(changed(("from ours.steps import search", "import ours.steps.search as search"))) == digest(TREE)


def test_the_stage_itself_may_move(digest: Digest) -> None:
    assert digest(changed(("ours/stage.py", "ours/steps/stage.py")), "ours.steps.stage") == digest(TREE)


def test_the_order_of_our_imports_and_the_place_of_one_change_no_digest(digest: Digest) -> None:
    search, figures = "from ours.steps import search\n", "from ours.steps.figures import HALF, total as all_of\n"
    assert digest(changed((search + figures, figures + search))) == digest(TREE)
    assert digest(changed(("HALF, total as all_of", "total as all_of, HALF"))) == digest(TREE)
    inside = changed((search, ""), ("        put(", "        from ours.steps import search\n        put("))
    assert digest(inside) == digest(TREE)


def test_a_comment_a_docstring_and_layout_change_no_digest(digest: Digest) -> None:
    said = changed(
        ("half of it", "a half"), ("A stage.", "The stage."), ("'''Run.'''", ""), ("WEIGHT = 2.0", "\n\nWEIGHT=2.0")
    )
    assert digest(said) == digest(TREE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("WEIGHT = 2.0", "WEIGHT = 2"),  # three imports away, and equal in value
        ("HALF = 0.5", "HALF = 0.25"),
        ("class Word(str)", "class Word(bytes)"),  # imported under TYPE_CHECKING
        ("x > HALF", "x >= HALF"),
        ("* HALF", "* np.pi"),
        ("import put", "import take as put"),
        ("total as all_of", "HALF as all_of"),
        ("numpy", "scipy"),
    ],
)
def test_a_change_of_what_is_reached_changes_the_digest(digest: Digest, old: str, new: str) -> None:
    assert digest(changed((old, new))) != digest(TREE)


def test_what_moves_results_changes_no_digest_wherever_it_lies(digest: Digest) -> None:
    assert digest(changed(("print(x)", "print(x, x)"))) == digest(TREE)
    assert digest(changed(("ours/store", "ours/steps/my_store"), ("ours.store", "ours.steps.my_store"))) == digest(TREE)


def test_two_modules_that_change_places_change_the_digest(digest: Digest) -> None:
    """Their digests are the same two, but they are called by each other's names."""
    one, other = "import numpy\ndef found(x):\n    return x\n", "def found(x):\n    return -x\n"
    text = "from ours import a, b\ny = a.found(1) - b.found(2)\n"
    tree = {"ours/__init__.py": "", "ours/stage.py": text, "ours/a.py": one, "ours/b.py": other}
    assert digest(tree) != digest(tree | {"ours/a.py": other, "ours/b.py": one})
    assert digest(tree) != digest(tree | {"ours/stage.py": text.replace("import a, b", "import b as a, a as b")})


@pytest.mark.parametrize(
    "text",
    [
        "if {}:\n    from ours.a import f\nelse:\n    from ours.b import f\n",
        "from ours.a import f\nfrom ours.b import f\n__all__ = ['{}']\n",
        "from ours.a import f\ndef g(f, {}):\n    from ours.b import f\n    return f\n",
    ],
)
def test_an_ambiguous_name_keeps_the_order_of_its_imports(digest: Digest, text: str) -> None:
    tree = {"ours/__init__.py": "", "ours/a.py": "def f(): return 1\n", "ours/b.py": "def f(): return 2\n"}
    text = text.format("fast")
    swapped = text.replace("ours.a", "ours.c").replace("ours.b", "ours.a").replace("ours.c", "ours.b")
    assert digest(tree | {"ours/stage.py": text}) != digest(tree | {"ours/stage.py": swapped})


def test_names_that_a_module_gives_on_are_told_apart(digest: Digest) -> None:
    """Nothing in ``a`` uses them; who imports them does so by these names."""
    tree = {
        "ours/__init__.py": "",
        "ours/b.py": "F = 1\nG = 2\n",
        "ours/stage.py": "from ours import a\nx = a.f - a.g\n",
    }
    one = digest(tree | {"ours/a.py": "from ours.b import F as f, G as g\n"})
    assert one != digest(tree | {"ours/a.py": "from ours.b import F as g, G as f\n"})


def test_a_circle_is_an_error_that_names_it(digest: Digest) -> None:
    tree = changed(("WEIGHT = 2.0", "WEIGHT = 2.0\ndef late():\n    from ours.steps import search\n"))
    circle = r"ours\.steps\.search -> ours\.steps\.figures -> ours\.steps\.numbers -> ours\.steps\.search$"
    with pytest.raises(ImportError, match=circle):
        digest(tree)


@pytest.mark.parametrize("wrong", ["from .steps import search", "from ours.steps.search import *"])
def test_an_import_that_cannot_be_followed_is_an_error(digest: Digest, wrong: str) -> None:
    with pytest.raises(ImportError, match=r"stage\.py: line 4: keys do not follow"):
        digest(changed(("from ours.steps import search", wrong)))


def test_a_module_that_is_not_there_is_an_error(digest: Digest, tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"'ours\.steps\.numbers'"):
        digest({name: text for name, text in TREE.items() if "numbers" not in name})
    with pytest.raises(ModuleNotFoundError, match=r"'ours\.lake'"):
        sources_in(tmp_path, ("ours.lake",))


def test_what_is_kept_gives_the_same_digest_and_parses_nothing(digest: Digest, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    first = digest(TREE)
    assert (tmp_path / "kept.json").stat().st_mode & 0o022 == 0
    monkeypatch.setattr(digests, "shape_of", None)
    assert digest(TREE) == first
    with pytest.raises(TypeError):
        digest(changed(("WEIGHT = 2.0", "WEIGHT = 3.0")))


@pytest.mark.parametrize("harm", ["cut", "other", "empty", "bytes", "open", "older"])
def test_a_file_of_shapes_that_cannot_be_trusted_is_as_none(
    digest: Digest, tmp_path: Path, harm: str, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    first, file = digest(TREE), tmp_path / "kept.json"
    text = file.read_text()
    match harm:
        case "cut":
            file.write_text(text[:-20])
        case "other":
            file.write_text(text.replace('"ours.steps.figures"', '"ours.steps.words"'))
        case "empty":
            file.write_text("")
        case "bytes":
            file.write_bytes(b"\xff\xfe\n{}")
        case "open":
            file.chmod(0o666)
        case "older":
            monkeypatch.setattr(digests.sys, "version", "3.12")
    assert digests.Kept(file, ("ours",)).find(TREE["ours/stage.py"].encode()) is None
    assert digest(TREE) == first
    assert digests.Kept(file, ("ours",)).find(TREE["ours/stage.py"].encode()) is not None


def test_without_a_place_to_keep_shapes_digests_are_the_same(digest: Digest, tmp_path: Path) -> None:
    first = digest(TREE)
    nowhere = Sources(tmp_path, ("ours",), ("ours.store",), tmp_path / "ours" / "stage.py" / "kept.json")
    assert nowhere.digests(["ours.stage"]) == [first]


def test_the_projects_own_modules_have_digests(tmp_path: Path) -> None:
    """There is no circle among them, and each import can be followed."""
    ours = Sources(REPOSITORY, cache_path=tmp_path / "kept.json")
    found = ours.digests(["tasks.metrics.stage", "tasks.scoring.stage", "tasks.lake.store", "flows.cli.main"])
    assert len(set(found)) == 4
    assert found[2] == "unreached"


def test_a_fix_in_an_algorithm_changes_the_digest_of_the_stages_that_reach_it(tmp_path: Path) -> None:
    for package in ("tasks", "schemas"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    names = ["tasks.metrics.stage", "tasks.feasibility_graph.stage"]
    before = Sources(tmp_path, cache_path=tmp_path / "kept.json").digests(names)
    assert before == Sources(REPOSITORY, cache_path=tmp_path / "kept.json").digests(names)
    fixed = tmp_path / "tasks" / "numerics" / "statistics" / "intervals.py"
    text = fixed.read_text()
    assert "(1 + beyond)" in text
    fixed.write_text(text.replace("(1 + beyond)", "(0 + beyond)"))
    after = Sources(tmp_path, cache_path=tmp_path / "kept.json").digests(names)
    assert (after[0] != before[0], after[1] == before[1]) == (True, True)
