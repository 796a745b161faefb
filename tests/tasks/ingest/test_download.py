"""Downloads from a real server that fails in all ways that servers do: the file comes whole, or not at all."""

import hashlib
import io
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from publisher import Published, Publisher, becomes, certified, cut, hang_up, other_piece, publisher, status
from rich.console import Console
from rich.logging import RichHandler

from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.ingest.download import Patience, bytes_progress, download

BODY = random.Random(482).randbytes(200_000)
OTHER = random.Random(5).randbytes(150_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def server() -> Iterator[Publisher]:
    with publisher() as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def patience(pauses: list[float]) -> Patience:
    return Patience(sleep=pauses.append, jitter=random.Random(1))


def publish(server: Publisher, **said: object) -> str:
    server.files["/lar.zip"] = Published(**{"body": BODY, **said})
    return f"{server.url}/lar.zip"


def left_behind(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_a_file_comes_whole_with_its_digest_and_nothing_beside_it(server: Publisher, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    url = publish(server, modified="Mon, 01 May 2023 08:00:00 GMT")
    got = download(url, tmp_path / "a", tell=lambda done, whole: told.append((done, whole)))
    assert (tmp_path / "a").read_bytes() == BODY
    assert (got.sha256, got.bytes, got.modified) == (SHA256, len(BODY), "Mon, 01 May 2023 08:00:00 GMT")
    assert left_behind(tmp_path) == ["a"]
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_dropped_connection_is_gone_on_with(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, troubles=[cut(90_000), hang_up, cut(60_000)])
    got = download(url, tmp_path / "a", SHA256, patience)
    assert (tmp_path / "a").read_bytes() == BODY
    assert got.sha256 == SHA256
    assert server.ranges() == [None, "bytes=90000-", "bytes=90000-", "bytes=150000-"]
    assert {headers.get("if-range") for _, headers in server.asked[1:]} == {'"1"'}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(st.integers(0, 50_000), max_size=5),
    ranges=st.booleans(),
    etag=st.sampled_from(['"1"', 'W/"1"', None]),
    modified=st.sampled_from(["Mon, 01 May 2023 08:00:00 GMT", None]),
    chunked=st.booleans(),
    packed=st.booleans(),
)
def test_wherever_it_breaks_off_the_bytes_are_the_servers(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], **said: object
) -> None:
    """For any way of breaking off, with and without Range, ETag, Last-Modified, length and compression."""
    place = tmp_path_factory.mktemp("any")
    with publisher() as server:
        url = publish(server, troubles=[cut(after) for after in cuts], **said)
        patience = Patience(failures=9, sleep=lambda _: None)
        assert download(url, place / "a", patience=patience).sha256 == SHA256
    assert (place / "a").read_bytes() == BODY
    assert left_behind(place) == ["a"]


def test_what_one_process_left_the_next_goes_on_with(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, troubles=[cut(120_000)])
    with pytest.raises(InfrastructureError, match=r"120,000 of 200,000 bytes came\. Later, run again to go on"):
        download(url, tmp_path / "a", patience=replace(patience, failures=1))
    assert left_behind(tmp_path) == ["a.part", "a.part.json"]
    assert download(url, tmp_path / "a").sha256 == SHA256
    assert server.ranges() == [None, "bytes=120000-"]


def test_a_killed_download_is_gone_on_with(server: Publisher, tmp_path: Path) -> None:
    """Kill -9 while bytes come in; the next call asks for the rest of them only."""
    url = publish(server, body=BODY * 10)
    code = """
import os, signal, sys, time
from pathlib import Path
from tasks.ingest.download import download
def tell(done, whole):
    if done > 700_000:
        os.kill(os.getpid(), signal.SIGKILL)
download(sys.argv[1], Path(sys.argv[2]), tell=tell)
"""
    run = subprocess.run([sys.executable, "-c", code, url, str(tmp_path / "a")], cwd=REPOSITORY, check=False)
    assert run.returncode == -signal.SIGKILL
    assert left_behind(tmp_path) == ["a.part", "a.part.json"]
    came = (tmp_path / "a.part").stat().st_size
    assert came > 0
    assert download(url, tmp_path / "a").bytes == 10 * len(BODY)
    assert (tmp_path / "a").read_bytes() == BODY * 10
    assert server.ranges() == [None, f"bytes={came}-"]


def test_bytes_without_their_record_are_not_gone_on_with(server: Publisher, tmp_path: Path) -> None:
    url = publish(server)
    (tmp_path / "a.part").write_bytes(b"of something else")
    (tmp_path / "a.part.json").write_text('{"url": "half a rec')
    assert download(url, tmp_path / "a").sha256 == SHA256
    assert server.ranges() == [None]


def test_a_file_that_changed_in_between_is_fetched_anew(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, troubles=[cut(90_000), becomes(OTHER, '"2"')])
    got = download(url, tmp_path / "a", patience=patience)
    assert (tmp_path / "a").read_bytes() == OTHER
    assert got.sha256 == hashlib.sha256(OTHER).hexdigest()


def test_a_server_that_ignores_range_sends_the_file_anew(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, ranges=False, troubles=[cut(90_000)])
    assert download(url, tmp_path / "a", patience=patience).sha256 == SHA256
    assert server.ranges() == [None, "bytes=90000-"]


def test_a_piece_of_another_place_is_not_joined(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, troubles=[cut(90_000), other_piece])
    assert download(url, tmp_path / "a", patience=patience).sha256 == SHA256


def test_a_piece_of_a_changed_file_is_not_joined(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    """A server that does not know If-Range sends a piece of the new file: its ETag gives it away."""
    url = publish(server, troubles=[cut(90_000)])
    changed = BODY[::-1]

    def piece_of_the_new(handler, published: Published) -> bool:  # type: ignore[no-untyped-def]
        published.body, published.etag = changed, '"2"'
        handler.headers.replace_header("If-Range", '"2"')
        return False

    server.files["/lar.zip"].troubles.append(piece_of_the_new)
    download(url, tmp_path / "a", patience=patience)
    assert (tmp_path / "a").read_bytes() == changed


def test_a_file_that_shrank_below_what_is_here_is_fetched_anew(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    """Its ETag is the same, so that the server answers that it has no bytes there."""
    url = publish(server, troubles=[cut(120_000), becomes(BODY[:100_000], '"1"')])
    download(url, tmp_path / "a", patience=patience)
    assert (tmp_path / "a").read_bytes() == BODY[:100_000]
    assert server.ranges() == [None, "bytes=120000-", None]


def test_what_came_from_another_address_is_not_gone_on_with(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    url = publish(server, troubles=[cut(90_000)])
    server.files["/other.zip"] = Published(OTHER)
    with pytest.raises(InfrastructureError):
        download(url, tmp_path / "a", patience=replace(patience, failures=1))
    download(f"{server.url}/other.zip", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == OTHER
    assert server.ranges() == [None, None]


def test_as_long_as_bytes_come_it_goes_on(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    url = publish(server, troubles=[cut(5_000)] * 30)
    assert download(url, tmp_path / "a", patience=replace(patience, failures=2)).sha256 == SHA256
    publish(server, troubles=[cut(5_000)] * 31, etag='"3"')
    with pytest.raises(InfrastructureError, match="150,000 of 200,000 bytes came"):
        download(url, tmp_path / "a", patience=replace(patience, tries=30))


@pytest.mark.parametrize(
    ("etag", "modified", "validator"),
    [
        ('W/"1"', None, None),
        ('W/"1"', "Mon, 01 May 2023 08:00:00 GMT", "Mon, 01 May 2023 08:00:00 GMT"),
        ('"1"', "Mon, 01 May 2023 08:00:00 GMT", '"1"'),
    ],
)
def test_a_weak_etag_is_not_relied_on(
    server: Publisher, tmp_path: Path, patience: Patience, etag: str, modified: str | None, validator: str | None
) -> None:
    url = publish(server, troubles=[cut(90_000)], etag=etag, modified=modified)
    assert download(url, tmp_path / "a", patience=patience).sha256 == SHA256
    assert server.ranges() == [None, "bytes=90000-" if validator else None]
    assert server.asked[1][1].get("if-range") == validator


def test_the_record_of_one_state_never_stands_beside_the_bytes_of_another(server: Publisher, tmp_path: Path) -> None:
    """The file becomes one of which nothing can be told, the process is killed in it, and the first file returns."""
    url = publish(server, troubles=[cut(90_000), becomes(OTHER, None)])
    code = """
import os, signal, sys
from pathlib import Path
from tasks.ingest.download import Patience; from tasks.ingest.download import download
def tell(done, whole):
    if whole == 150_000:
        os.kill(os.getpid(), signal.SIGKILL)
download(sys.argv[1], Path(sys.argv[2]), patience=Patience(sleep=lambda _: None), tell=tell)
"""
    run = subprocess.run([sys.executable, "-c", code, url, str(tmp_path / "a")], cwd=REPOSITORY, check=False)
    assert run.returncode == -signal.SIGKILL
    assert (tmp_path / "a.part").stat().st_size > 0
    url = publish(server)
    assert download(url, tmp_path / "a").sha256 == SHA256
    assert server.ranges() == [None, "bytes=90000-", None]


def test_trouble_that_passes_is_waited_for(
    server: Publisher, tmp_path: Path, patience: Patience, pauses: list[float]
) -> None:
    url = publish(server, troubles=[status(503), status(429, retry_after="7"), status(504)])
    assert download(url, tmp_path / "a", patience=patience).sha256 == SHA256
    first, second, third = pauses
    assert 0.5 <= first <= 1.0
    assert second == 7.0
    assert 2.0 <= third <= 4.0


def test_pauses_double_and_are_spread_and_bounded() -> None:
    patience = Patience(jitter=random.Random(3))
    for failures, doubled in enumerate((1, 2, 4, 8, 16, 32, 60, 60, 60), start=1):
        drawn = [patience.pause(failures, 0.0) for _ in range(200)]
        assert all(doubled / 2 <= pause <= doubled for pause in drawn)
        assert max(drawn) - min(drawn) > doubled / 4
    assert patience.pause(1, 3_600.0) == patience.longest_pause


def test_trouble_that_stays_is_named(
    server: Publisher, tmp_path: Path, patience: Patience, pauses: list[float]
) -> None:
    url = publish(server, troubles=[status(503)] * 9)
    with pytest.raises(InfrastructureError, match=r"lar\.zip: it answered 503 .*; 0 bytes came"):
        download(url, tmp_path / "a", patience=patience)
    assert len(pauses) == patience.failures - 1
    assert left_behind(tmp_path) == []


def test_a_body_that_always_ends_early_is_named_with_what_came(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    """The server announces more bytes than it has, and sends what it has, whatever is asked for."""
    url = publish(server, troubles=[status_with_length] * 20)
    with pytest.raises(InfrastructureError, match=r"broke off .*; 1,000 of 5,000 bytes came"):
        download(url, tmp_path / "a", patience=patience)
    assert not (tmp_path / "a").exists()


def status_with_length(handler, _published: Published) -> bool:  # type: ignore[no-untyped-def]
    handler.close_connection = True
    return handler.answer(200, {"Content-Length": "5000", "Content-Type": "application/zip"}, BODY[:1000])


def test_an_answer_without_length_that_ends_early_is_noticed_where_the_digest_is_known(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    def no_length(handler, _published: Published) -> bool:  # type: ignore[no-untyped-def]
        handler.close_connection = True
        return handler.answer(200, {"Content-Type": "text/csv"}, BODY[:1000])

    url = publish(server, troubles=[no_length])
    with pytest.raises(IntegrityError, match="expected; the publisher has another edition there"):
        download(url, tmp_path / "a", SHA256, patience)
    assert left_behind(tmp_path) == []
    assert download(url, tmp_path / "a", SHA256, patience).sha256 == SHA256


def test_a_piece_in_chunks_that_ends_early_is_gone_on_with(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    """Chunks end well here, and yet the server said how long the whole is."""

    def short_piece(handler, published: Published) -> bool:  # type: ignore[no-untyped-def]
        piece = BODY[90_000:120_000]
        headers = {"Content-Range": f"bytes 90000-{len(BODY) - 1}/{len(BODY)}", "ETag": published.etag}
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(piece), piece)
        return handler.answer(206, {**headers, "Transfer-Encoding": "chunked"}, chunk)

    url = publish(server, troubles=[cut(90_000), short_piece])
    assert download(url, tmp_path / "a", patience=patience).sha256 == SHA256
    assert server.ranges() == [None, "bytes=90000-", "bytes=120000-"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_that_is_not_the_one_expected_is_refused_and_not_kept(
    server: Publisher, tmp_path: Path, patience: Patience, chunked: bool
) -> None:
    url = publish(server, chunked=chunked)
    with pytest.raises(IntegrityError, match=r"sha256 is .* expected; the publisher has another edition there"):
        download(url, tmp_path / "a", "0" * 64, patience)
    assert left_behind(tmp_path) == []
    assert len(server.asked) == 1


PAGE = b"<!DOCTYPE html>\n<html><head><title>We&#39;ll be\n back</title></head><body>Maintenance</body></html>"


@pytest.mark.parametrize(
    "page",
    [
        status(200, PAGE, "text/html; charset=utf-8"),
        status(200, PAGE, "application/octet-stream"),
        status(200, b"\xef\xbb\xbf  \n<HTML><title>We'll be back</title>", "text/csv"),
    ],
)
def test_a_page_instead_of_the_file_is_refused_at_once(
    server: Publisher, tmp_path: Path, patience: Patience, pauses: list[float], page
) -> None:  # type: ignore[no-untyped-def]
    url = publish(server, troubles=[page])
    with pytest.raises(InfrastructureError, match=r"answered with a web page \(.We'll be back.\) instead of the file"):
        download(url, tmp_path / "a", patience=patience)
    assert pauses == []
    assert left_behind(tmp_path) == []


def test_a_page_in_between_costs_none_of_the_bytes_that_came(
    server: Publisher, tmp_path: Path, patience: Patience
) -> None:
    url = publish(server, troubles=[cut(90_000), status(200, PAGE, "text/html")])
    with pytest.raises(InfrastructureError, match="web page"):
        download(url, tmp_path / "a", patience=patience)
    assert download(url, tmp_path / "a").sha256 == SHA256
    assert server.ranges()[-1] == "bytes=90000-"


@pytest.mark.parametrize("code", [200, 400])
def test_a_query_that_the_data_browser_does_not_take_is_named(
    server: Publisher, tmp_path: Path, patience: Patience, pauses: list[float], code: int
) -> None:
    said = b'{"errorType":"provide-atleast-msamds-or-states","message":"Provide msamds or states"}'
    url = publish(server, troubles=[status(code, said, "application/json")])
    with pytest.raises(SpecError, match=r"does not take the query: provide-atleast-msamds-or-states; see --year"):
        download(url, tmp_path / "a", patience=patience)
    assert pauses == []
    assert left_behind(tmp_path) == []


def test_a_file_that_is_not_there_is_named_at_once(server: Publisher, tmp_path: Path, pauses: list[float]) -> None:
    with pytest.raises(InfrastructureError, match=r"none\.zip answered (404 Not Found|with a web page)"):
        download(f"{server.url}/none.zip", tmp_path / "a", patience=Patience(sleep=pauses.append))
    assert pauses == []


def test_an_empty_file_is_refused(server: Publisher, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="the server sent no bytes"):
        download(publish(server, body=b""), tmp_path / "a")
    assert left_behind(tmp_path) == []


def test_a_redirect_is_followed_and_gone_on_with(server: Publisher, tmp_path: Path, patience: Patience) -> None:
    publish(server, troubles=[cut(90_000)])
    server.files["/moved"] = Published(b"", location="/lar.zip")
    assert download(f"{server.url}/moved", tmp_path / "a", patience=patience).sha256 == SHA256
    assert server.ranges() == [None, None, "bytes=90000-", "bytes=90000-"]


@pytest.mark.parametrize("location", ["/round", "ftp://127.0.0.1/lar.zip"])
def test_a_redirect_that_leads_nowhere_is_named(
    server: Publisher, tmp_path: Path, patience: Patience, location: str
) -> None:
    server.files["/round"] = Published(b"", location=location)
    with pytest.raises(InfrastructureError, match="cannot be followed to a file"):
        download(f"{server.url}/round", tmp_path / "a", patience=patience)


def test_without_a_network_it_says_so_at_once(tmp_path: Path, pauses: list[float]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    for url in (f"http://127.0.0.1:{port}/lar.zip", "https://files.example.invalid/lar.zip"):
        with pytest.raises(InfrastructureError, match=r"no way to .*; is this machine online\?"):
            download(url, tmp_path / "a", patience=Patience(sleep=pauses.append))
    assert pauses == []
    assert time.monotonic() - began < 10
    assert left_behind(tmp_path) == []


def test_without_a_network_what_came_is_kept(tmp_path: Path, pauses: list[float]) -> None:
    with publisher() as server:
        url = publish(server, troubles=[cut(90_000)])
        quick = Patience(failures=1, sleep=pauses.append)
        with pytest.raises(InfrastructureError):
            download(url, tmp_path / "a", patience=quick)
    with pytest.raises(InfrastructureError, match="no way to"):
        download(url, tmp_path / "a", patience=quick)
    assert left_behind(tmp_path) == ["a.part", "a.part.json"]  # for a day with a network


def test_a_server_that_answered_and_is_gone_is_waited_for(tmp_path: Path, pauses: list[float]) -> None:
    with ExitStack() as stack:
        url = publish(stack.enter_context(publisher()), troubles=[cut(90_000)])

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            stack.close()

        with pytest.raises(InfrastructureError, match=r"connection broke off .*; 90,000 of 200,000 bytes came"):
            download(url, tmp_path / "a", patience=Patience(failures=3, sleep=sleep))
    assert len(pauses) == 2


@pytest.mark.parametrize("back", [False, True])
def test_a_redirect_out_of_encryption_is_not_followed(
    server: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    certificate = certified(tmp_path / "server.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    plain = publish(server)
    with publisher(certificate) as encrypted:
        encrypted.files["/lar.zip"] = Published(BODY)
        encrypted.files["/moved"] = Published(b"", location=f"{server.url}/back" if back else plain)
        server.files["/back"] = Published(b"", location=f"{encrypted.url}/lar.zip")
        assert download(f"{encrypted.url}/lar.zip", tmp_path / "a").sha256 == SHA256
        with pytest.raises(InfrastructureError, match=r"/moved leads to http:.*, which is not encrypted; nothing was"):
            download(f"{encrypted.url}/moved", tmp_path / "b")
    assert server.asked == []


def test_a_redirect_to_another_host_is_named(
    server: Publisher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = publish(server).replace("127.0.0.1", "localhost")
    server.files["/moved"], server.files["/near"] = Published(b"", location=there), Published(b"", location="/lar.zip")
    download(f"{server.url}/near", tmp_path / "a")
    assert "another host" not in caplog.text
    download(f"{server.url}/moved", tmp_path / "b")
    assert f"{server.url}/moved leads to another host: localhost" in caplog.text


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_without_an_end_is_given_up(server: Publisher, tmp_path: Path, chunked: bool) -> None:
    url = publish(server, chunked=chunked)
    with pytest.raises(InfrastructureError, match=r"sends more than 100,000 bytes, which no file of HMDA has"):
        download(url, tmp_path / "a", patience=Patience(most=100_000))
    assert left_behind(tmp_path) == []


def test_a_file_that_comes_too_slowly_is_given_up_and_gone_on_with(server: Publisher, tmp_path: Path) -> None:
    url = publish(server, troubles=[cut(90_000)])
    slow = Patience(seconds=0.5, sleep=lambda _: time.sleep(0.6))
    with pytest.raises(InfrastructureError, match=r"takes too long; [\d,]+ bytes came. Later, run again to"):
        download(url, tmp_path / "a", patience=slow)
    assert download(url, tmp_path / "a").sha256 == SHA256


def test_a_line_is_logged_for_each_tenth(
    server: Publisher, tmp_path: Path, caplog: pytest.LogCaptureFixture, patience: Patience
) -> None:
    caplog.set_level(logging.INFO, logger="evenhand")
    url = publish(server, body=BODY * 20, troubles=[cut(2_500_000)])
    with bytes_progress("lar") as tell:
        download(url, tmp_path / "a", patience=patience, tell=tell)
    told = [line for line in caplog.messages if line.startswith("lar: ")]
    assert told == [f"lar: {share} % of 4,000,000 bytes" for share in range(10, 101, 10)]


def test_a_bar_is_drawn_on_a_terminal(server: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(logging.getLogger("evenhand"), "handlers", [RichHandler(console=console)])
    with bytes_progress("lar") as tell:
        download(publish(server), tmp_path / "a", tell=tell)
    assert "lar" in screen.getvalue()
    assert "200.0/200.0 kB" in screen.getvalue()


def test_a_word_that_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is no address of a file"):
        download("files/lar.zip", tmp_path / "a")


def test_a_file_that_would_not_fit_is_refused_before_its_bytes_come(server: Publisher, tmp_path: Path) -> None:
    def vast(handler, _published: Published) -> bool:  # type: ignore[no-untyped-def]
        handler.close_connection = True
        return handler.answer(200, {"Content-Length": str(2**60)}, BODY[:10])

    url = publish(server, troubles=[vast])
    with pytest.raises(InfrastructureError, match=r"MB free and .*lar\.zip needs .* MB; free some"):
        download(url, tmp_path / "a")


def test_a_disk_that_fills_up_is_named_and_what_came_is_kept(server: Publisher, tmp_path: Path) -> None:
    """On a real file system of 80 MB: the check passes, and others take the space meanwhile."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        url = publish(server, body=BODY * 50)
        taken: list[Path] = []

        def tell(done: int, _whole: int | None) -> None:
            if done > 1_000_000 and not taken:
                taken.append(disk / "others")
                taken[0].write_bytes(b"x" * (77 * 2**20))

        with pytest.raises(InfrastructureError, match=r"is full; free some space and run again: what came is kept"):
            download(url, disk / "a", tell=tell)
        taken[0].unlink()
        assert download(url, disk / "a").bytes == 50 * len(BODY)
        assert (disk / "a").read_bytes() == BODY * 50
        assert server.ranges()[-1] is not None
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_cannot_be_written_is_named(server: Publisher, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="could not be written"):
        download(publish(server), tmp_path / "none" / "a")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InfrastructureError, match="could not be written"):
            download(publish(server), tmp_path / "a")
