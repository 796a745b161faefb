"""Where a run stands, in words, and the time left by earlier runs and by the steps of the stage at work."""

import logging

import pytest

from tasks.pipeline import progress
from tasks.pipeline.progress import Course, coarse, course_of, duration, stage_began, stage_ended


class Clock:
    """Seconds that pass when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.course: Course | None = None

    def opened(self, course: Course) -> None:
        self.course = course
        self.told.append(course.stage)

    def began(self) -> None:
        assert self.course is not None
        self.told.append(self.course.stage)

    def ended(self, stage: str, said: str) -> None:
        self.told.append(f"{stage}: {said}")

    def closed(self) -> None:
        self.told.append("closed")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    display = Kept()
    monkeypatch.setattr(progress._Shown, "display", display)
    return display


def course(*seconds: float | None) -> tuple[Course, Clock]:
    clock = Clock()
    return Course(["ingest", "mediate", "report"], seconds, clock), clock


@pytest.mark.parametrize(
    ("seconds", "number", "passed", "steps", "words"),
    [
        ((2.0, 100.0, 20.0), 2, 40.0, (4, 10), "2 of 3 mediate, 4 of 10, about 80 s left"),
        ((2.0, 300.0, 20.0), 2, 40.0, (4, 10), "2 of 3 mediate, 4 of 10, about 5 min left"),
        ((2.0, 100.0, 20.0), 2, 120.0, (6, 10), "2 of 3 mediate, 6 of 10, about 2 min left"),  # 80 s by its steps
        ((2.0, 100.0, 20.0), 2, 120.0, (0, 0), "2 of 3 mediate, about 20 s left"),
        ((2.0, None, 20.0), 2, 40.0, (5, 10), "2 of 3 mediate, 5 of 10, about 1 min left"),  # 40 + 20
        ((2.0, None, 20.0), 2, 40.0, (0, 0), "2 of 3 mediate, for 40 s"),
        ((None, None, None), 1, 4000.0, (0, 0), "1 of 3 ingest, for 1 h 6 min"),
        ((2.0, 3.0, 7200.0), 0, 0.0, (0, 0), "starting, about 2 h left"),
    ],
)
def test_a_line_tells_stage_step_and_time_left(
    seconds: tuple[float | None, ...], number: int, passed: float, steps: tuple[int, int], words: str
) -> None:
    at, clock = course(*seconds)
    if number:
        at.began(number)
    at.stepped("generators", *steps)
    clock.now += passed
    assert at.words() == words.replace("about 80 s", "about 1 min")


def test_time_left_follows_the_pace_of_the_run_and_is_never_below_nothing() -> None:
    at, clock = course(10.0, 100.0, 20.0)
    assert at.remaining() == at.forecast() == 143.0  # with 10 s before the first stage, and 3 s after the last one
    clock.now += 30.0  # the first stage is late
    assert at.remaining() == pytest.approx(133.0 * 50 / 30)
    at.began(1)
    clock.now += 10.0
    at.began(2)
    assert at.remaining() == pytest.approx(123.0 * 60 / 40)
    clock.now += 50.0
    assert at.remaining() == pytest.approx(73.0 * 110 / 90)
    clock.now += 150.0  # the stage is late: what it has left nobody knows
    assert at.remaining() == pytest.approx(23.0 * 260 / 140)
    at.stepped("groups", 3, 4)  # but by its own steps
    assert at.remaining() == pytest.approx(23.0 * 260 / 140 + 200 / 3)
    at.began(3)
    clock.now += 900.0
    assert at.remaining() == pytest.approx(3.0 * 1160 / 160)
    assert course(10.0, None, 20.0)[0].remaining() is None


def test_the_shipped_costs_tell_where_no_earlier_run_does_and_not_of_what_is_held(kept: Kept) -> None:
    for seconds, expected in (((0.0, None, 3.0), [0.0, 6.0, 7.0]), ((1.0, 2.0, 3.0), [1.0, 2.0, 3.0])):
        with progress.course_of(["ingest", "mediate", "report"], seconds):
            progress.forecast([4.0, 5.0, 6.0])
            assert kept.course is not None
            assert list(kept.course.seconds) == expected
            assert kept.course.by_table == (seconds[1] is None)


def test_the_steps_of_one_stage_are_not_those_of_the_next() -> None:
    at, _ = course(1.0, 1.0, 1.0)
    at.began(1)
    at.stepped("generators", 3, 10)
    at.began(2)
    assert at.words().startswith("2 of 3 mediate, about")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "10 s"), (34.0, "30 s"), (54.9, "50 s"), (61.0, "1 min"), (5500.0, "1 h 32 min")]
)
def test_a_forecast_is_no_more_exact_than_it_can_be(seconds: float, words: str) -> None:
    assert duration(coarse(seconds)) == words


MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),  # a clock that was set back
        (0, "0 s"),
        (59, "59 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (7 * MINUTE, "7 min"),
        (8 * MINUTE - 0.1, "7 min"),
        (14 * MINUTE, "14 min"),
        (15 * MINUTE, "15 min"),
        (59 * MINUTE, "59 min"),
        (HOUR - 0.1, "59 min"),
        (60 * MINUTE, "1 h"),
        (90 * MINUTE, "1 h 30 min"),
        (23 * HOUR, "23 h"),
        (24 * HOUR - 1, "23 h 59 min"),
        (24 * HOUR, "24 h"),
        (2 * DAY - 1, "47 h 59 min"),
        (2 * DAY, "2 days"),
        (3 * DAY - 1, "2 days"),
        (400 * DAY, "400 days"),
    ],
)
def test_a_duration_is_in_full_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_back_fill_counts_years_and_no_steps_of_stages_in_threads_beside_it() -> None:
    clock = Clock()
    at = Course(["years"], [600.0], clock, only="years")
    at.began(1)
    at.stepped("years", 3, 8)
    at.stepped("generators", 9, 10)
    clock.now += 240
    assert at.words() == "years, 3 of 8, about 6 min left"


def test_a_display_is_told_of_stages_while_a_run_lasts(kept: Kept) -> None:
    stage_began(1)
    with course_of(["ingest", "report"], [None, None]):
        stage_began(1)
        with progress.progress(4, "rows") as tell:
            tell("a")
            tell("b")
        assert kept.course is not None
        assert kept.course.words().startswith("1 of 2 ingest, 2 of 4, for ")
        stage_ended("100 rows")
    stage_ended("nothing listens any more")
    assert kept.told == ["starting", "1 of 2 ingest", "1 of 2 ingest: 100 rows", "closed"]


def test_a_display_is_closed_after_an_error(kept: Kept) -> None:
    with pytest.raises(ValueError, match="of ours"), course_of(["ingest"], [1.0]):
        raise ValueError("of ours")
    assert kept.told[-1] == "closed"


def test_what_steps_say_of_themselves_is_for_those_who_ask(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="evenhand"), progress.progress(3, "training for race: Black") as tell:
        tell("fold 1 of 3, full: CEC 0.250")
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.DEBUG, "training for race: Black 1 of 3: fold 1 of 3, full: CEC 0.250")
    ]


def test_stages_side_by_side_have_a_line_each_with_the_time_passed_and_their_share() -> None:
    at, clock = course(1.0, 1.0, 1.0)
    at.beside = True
    at.began(1)
    at.began(2)
    at.stepped("generators", 3, 10, number=2)
    clock.now += 40
    assert at.lines() == ["1 of 3 ingest, for 40 s", "2 of 3 mediate, 3 of 10, for 40 s"]
    at.ended(1)
    at.began(3)
    assert at.lines() == ["2 of 3 mediate, 3 of 10, for 40 s", "3 of 3 report, for 0 s"]
    assert at.long(30) == ["2 of 3 mediate, 3 of 10, for 40 s"]


def test_a_stage_that_ends_beside_others_is_told_by_its_own_name(kept: Kept) -> None:
    with course_of(["ingest", "score"], [None, None], beside=True):
        stage_began(1)
        stage_began(2)
        stage_ended("ten rows", 1)
        assert kept.course is not None
        assert list(kept.course.at_work) == [2]
    assert kept.told[1:] == ["1 of 2 ingest", "2 of 2 score", "1 of 2 ingest: ten rows", "closed"]


def test_a_worker_relays_its_steps() -> None:
    told: list[tuple[str, int, int]] = []
    progress.relay_to(lambda *step: told.append(step))
    with progress.progress(2, "rows") as tell:
        tell("a")
    progress.relay_to(None)
    progress.stepped("rows", 2, 2)
    assert told == [("rows", 0, 2), ("rows", 1, 2)]
