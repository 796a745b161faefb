"""The schedules of prefect.yaml: named, in a zone, and on the dates that the runbook says.

The dates are counted twice: by cronsim, and by what Prefect's server plans runs with.
"""

import asyncio
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from cronsim import CronSim
from deployed import DEPLOYMENTS

_ROW = re.compile(r"^\| `([a-z-]+)` \| (\d{4}-\d\d-\d\d) \([a-z ]+\) \| ([^|]+) \|$", re.M)


def schedules() -> dict[str, dict[str, Any]]:
    """Slug -> schedule."""
    said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
    return {schedule["slug"]: schedule for each in said["deployments"] for schedule in each["schedules"]}


def rows() -> list[tuple[str, datetime, str]]:
    """The runbook's table: slug, day that is counted from, next three dates."""
    text = (DEPLOYMENTS / "README.md").read_text()
    known = schedules()
    return [
        (slug, datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(known[slug]["timezone"])), dates)
        for slug, day, dates in _ROW.findall(text)
    ]


def by_cronsim(schedule: dict[str, Any], start: datetime) -> Iterator[datetime]:
    return islice(CronSim(schedule["cron"], start), 3)


def by_prefect(schedule: dict[str, Any], start: datetime) -> Iterator[datetime]:
    from prefect.server.schemas.schedules import CronSchedule

    planned = CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])
    return iter(asyncio.run(planned.get_dates(3, start=start)))


def test_every_schedule_has_a_zone_and_a_name_of_its_own() -> None:
    said = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
    all_of_them = [schedule for each in said["deployments"] for schedule in each["schedules"]]
    assert all_of_them
    for schedule in all_of_them:
        assert set(schedule) == {"cron", "timezone", "slug"}
        ZoneInfo(schedule["timezone"])
    assert len({schedule["slug"] for schedule in all_of_them}) == len(all_of_them)


@pytest.mark.parametrize("dates_by", [by_cronsim, by_prefect])
def test_the_next_three_dates_are_the_runbooks(dates_by: Any) -> None:
    known = schedules()
    for slug, start, said in rows():
        counted = ", ".join(f"{date:%Y-%m-%d %H:%M %Z}" for date in dates_by(known[slug], start))
        assert counted == said, (slug, start)


def test_the_runbook_counts_each_from_both_changes_of_the_clock_and_from_a_leap_day() -> None:
    for slug in schedules():
        starts = [start for name, start, _ in rows() if name == slug]
        changes = {_offset(start + timedelta(days=1)) - _offset(start) for start in starts}
        assert changes == {timedelta(hours=1), timedelta(0), timedelta(hours=-1)}, slug
        assert any((start.month, start.day) == (2, 29) for start in starts), slug


def _offset(moment: datetime) -> timedelta:
    offset = moment.utcoffset()
    assert offset is not None
    return offset
