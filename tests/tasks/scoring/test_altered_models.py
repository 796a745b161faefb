"""A stranger's model file does no more than be refused; a sound one decides in its own process as it would here."""

import os
import re
import signal
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from model_corpus import FLIPS, HAND_MADE, SOUND, WIDTH, boosted, flipped, forest, outcome

from schemas.errors import IntegrityError, SpecError
from tasks.scoring.model_formats import check_archive
from tasks.scoring.model_reader.confined import KEPT, OWN, Confined
from tasks.scoring.model_reader.protocol import Frame
from tasks.scoring.models import ModelFile, probabilities, read, vouched

WHOLE = "EVENHAND_FUZZ" in os.environ
"""Whether all places of each format are altered; for a nightly run."""


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_file_made_to_do_harm_is_refused_by_what_it_says(name: str) -> None:
    """In this process: what is wrong is found in the data, before anything is made of them."""
    make, words = HAND_MADE[name]
    with pytest.raises((SpecError, IntegrityError), match=words):
        read_here(ModelFile(make(), "model.bin"))


def read_here(file: ModelFile) -> None:
    if vouched(file) == "skops":
        check_archive(file.content, file.name)
    read(file)


@pytest.fixture(scope="module")
def confined() -> Confined:
    return Confined(ModelFile(forest(), "model.skops"))


def test_a_sound_model_decides_to_the_last_bit_as_it_would_here(confined: Confined) -> None:
    rows = np.random.default_rng(0).normal(size=(20_001, WIDTH))
    here = probabilities(read(ModelFile(forest(), "model.skops")), rows)
    assert (probabilities(confined, rows) == here).all()
    assert confined.probability(rows[:0]).shape == (0,)
    assert (confined.facts.kind, confined.facts.inputs) == ("RandomForestClassifier", WIDTH)


def test_what_a_model_does_not_take_is_an_error_of_the_file_and_ends_nothing(confined: Confined) -> None:
    with pytest.raises(SpecError, match="does not take the rows that it gets: X has 3 features"):
        confined.probability(np.zeros((2, WIDTH - 1)))
    assert confined.probability(np.zeros((2, WIDTH))).shape == (2,)


@pytest.mark.skipif(not Path("/proc/self/limits").is_file(), reason="limits are read from /proc, which is Linux's")
def test_the_process_has_limits_and_knows_no_secret(confined: Confined) -> None:
    of = Path(f"/proc/{confined._process.pid}")
    limits = dict(re.findall(r"^(Max [a-z ]+?)  +(\S+)", (of / "limits").read_text(), re.MULTILINE))
    assert 3e9 < int(limits["Max address space"]) < 6e9
    assert (limits["Max file size"], limits["Max core file size"]) == ("0", "0")
    assert int(limits["Max cpu time"]) < 700
    known = {each.partition("=")[0] for each in (of / "environ").read_text().split("\0") if each}
    assert known <= {*KEPT, *OWN, "PYTHONPATH", "LC_CTYPE"}


def test_a_model_that_ends_its_process_is_told_and_then_refused_again(confined: Confined) -> None:
    os.kill(confined._process.pid, signal.SIGSEGV)
    with pytest.raises(SpecError, match=r"model\.skops ended the process that reads it \(signal 11\): it is damaged"):
        confined._asked(Frame({"asked": "probability"}, {"rows": np.zeros((1, WIDTH))}), 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_a_flipped_byte_is_refused_or_is_another_model(name: str) -> None:
    """Only its digest tells an altered weight from another weight; whatever the byte, nothing else happens."""
    content = SOUND[name]()
    places = FLIPS if WHOLE else 2
    for altered in flipped(content, places):
        digest = sha256(altered).hexdigest()
        outcome(name, altered, digest)  # anything but a refusal would leave it as an error of Python
        assert "it is another file" in outcome(name, altered, sha256(content).hexdigest())


@pytest.mark.slow
def test_boosted_trees_and_a_process_that_went_away() -> None:
    model = Confined(ModelFile(boosted(), "model.skops"))
    rows = np.random.default_rng(0).normal(size=(99, WIDTH))
    first = model.logit(rows)
    model._process.stdin.close()  # as after a minute without a question
    assert model._process.wait(timeout=60) == 0
    assert (model.logit(rows) == first).all()
