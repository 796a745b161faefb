"""Draining a pool: it is paused, its runs are waited for, and those whose process is gone are not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from flows.operations import worker
from flows.operations.worker import drain
from flows.supervision.presence import at_work, leave_stopped
from schemas.errors import SpecError
from tasks.lake.store import Lake


class Pool:
    """A work pool of its own on the session's server, with a deployment that nobody works for."""

    def __init__(self, client: Any) -> None:
        from prefect.client.schemas.actions import WorkPoolCreate

        self.client, self.name = client, f"drained-{uuid4().hex[:8]}"
        client.create_work_pool(WorkPoolCreate(name=self.name, type="process"))
        flow = client.create_flow_from_name("audit")
        self.deployment: UUID = client.create_deployment(flow, self.name, work_pool_name=self.name)

    def running(self) -> Any:
        """A run that the server takes to be at work."""
        from prefect.states import Running

        run = self.client.create_flow_run_from_deployment(self.deployment)
        self.client.set_flow_run_state(run.id, Running(), force=True)
        return run

    def paused(self) -> bool:
        return bool(self.client.read_work_pool(self.name).is_paused)


@pytest.fixture
def pool(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setattr(worker, "_LOOK_SECONDS", 0.01)
    with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
        made = Pool(client)
        yield made
        client.delete_deployment(made.deployment)
        client.delete_work_pool(made.name)


def test_a_drained_pool_is_paused_and_its_runs_end_first(pool: Pool, tmp_path: Path) -> None:
    from prefect.states import Completed

    run, told = pool.running(), []

    def tell(line: str) -> None:
        assert pool.paused(), "before anybody is waited for"
        told.append(line)
        pool.client.set_flow_run_state(run.id, Completed(), force=True)

    assert drain(Lake(tmp_path), pool.name, tell) == 1
    assert told == [f"waiting for 1 at work: {run.name}"]
    assert pool.paused()
    assert drain(Lake(tmp_path), pool.name, told.append) == 0
    assert len(told) == 1


def test_a_run_whose_process_is_gone_is_not_waited_for_and_one_that_the_server_forgot_is(
    pool: Pool, tmp_path: Path
) -> None:
    lake, run, forgotten, told = Lake(tmp_path), pool.running(), str(uuid4()), []
    leave_stopped(lake, str(run.id))
    with at_work(lake, forgotten) as presence:
        with pytest.raises(KeyboardInterrupt):
            drain(lake, pool.name, lambda line: _stop(told, line))
        assert presence.run in told[0]
        assert run.name not in told[0]
    assert drain(lake, pool.name, told.append) == 0


def _stop(told: list[str], line: str) -> None:
    told.append(line)
    raise KeyboardInterrupt


def test_a_misspelt_pool_is_told(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=f"did you mean '{pool.name}'"):
        drain(Lake(tmp_path), f"{pool.name}x", print)
