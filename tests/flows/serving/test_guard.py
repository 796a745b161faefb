"""A test a threat: strangers, forged names, forged forms, scripts in data, paths, load, and what is listened on."""

import socket
import time
from pathlib import Path

import pyarrow as pa
import pytest
from lake_of_runs import NEW, lake_of_runs
from served_lake import BASE, TOKEN, served

from flows.serving.guard import MOST_BODY, Admission
from flows.serving.pages.years import shareable
from flows.serving.server import listening
from flows.serving.settings import Settings, check, token_in
from flows.serving.site import Tables
from schemas.errors import InfrastructureError, SpecError

RUN = f"/runs/{NEW}"
ROUTES = ("/", "/runs", "/search", "/style.css", RUN, f"{RUN}/review", f"{RUN}/measures", f"{RUN}/files", "/nothing")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lake_of_runs(tmp_path_factory.mktemp("guarded") / "lake").location


@pytest.mark.parametrize("path", ROUTES)
def test_without_a_token_nothing_is_told(lake: str, path: str) -> None:
    stranger = served(lake, entered=False)
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert NEW not in answer.text
    assert stranger.get(path, headers={"cookie": "evenhand-8321=guessed"}).status_code == 401


def test_a_wrong_token_is_refused_and_an_old_cookie_ends(lake: str) -> None:
    one = served(lake, entered=False)
    assert one.get("/?token=wrong").status_code == 401
    assert one.get(f"/?token={TOKEN}").status_code == 200
    assert one.get("/").status_code == 200
    one.clock.now += 8 * 3600 + 1
    assert one.get("/").status_code == 401


def test_a_cookie_of_another_server_opens_nothing(lake: str) -> None:
    before, after = served(lake), served(lake, entered=False)
    after.client.cookies = before.client.cookies
    assert after.get("/").status_code == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(lake: str) -> None:
    one = served(lake, entered=False)
    answer = one.get(f"/runs?state=breach&token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?state=breach")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28800"):
        assert part in cookie
    assert "Secure" not in cookie


def test_a_redirect_never_leaves_these_pages(lake: str) -> None:
    one = served(lake, entered=False)
    for path in ("//evil.example/", "/\\evil.example/", "/%5Cevil.example"):
        answer = one.client.get(f"{BASE}{path}?token={TOKEN}", follow_redirects=False)
        assert answer.headers["location"].startswith("/")
        assert not answer.headers["location"].startswith(("//", "/\\"))


def test_after_twenty_wrong_tokens_none_is_looked_at_for_a_minute(lake: str) -> None:
    one = served(lake, entered=False)
    assert {one.get("/?token=wrong").status_code for _ in range(20)} == {401}
    assert one.get("/?token=wrong").status_code == 429
    assert one.get(f"/?token={TOKEN}").status_code == 429
    one.clock.now += 61
    assert one.get(f"/?token={TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8322", "", "127.0.0.1:8321.evil"]
)
def test_a_forged_host_is_answered_with_421(lake: str, host: str) -> None:
    one = served(lake)
    assert one.get("/", headers={"host": host}).status_code == 421
    assert one.get("/healthz", headers={"host": host}).status_code == 421


def test_behind_tls_only_its_name_is_a_host_and_the_cookie_is_secure(lake: str) -> None:
    one = served(lake, entered=False, behind_tls="audits.example.org")
    assert one.get("/").status_code == 421
    given = {"host": "audits.example.org"}
    answer = one.get(f"/?token={TOKEN}", headers=given, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["set-cookie"].startswith("__Host-evenhand-8321=")
    assert "; Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:8322", f"{BASE}.evil", None])
def test_a_form_of_another_site_is_refused(lake: str, origin: str | None) -> None:
    one = served(lake, by="Ann Lee", sign=True)
    cookie = one.client.cookies["evenhand-8321"]
    fields = {"text": "forged", "form": one.site.admission.forms.made(cookie)}
    headers = {"origin": origin} if origin else {}
    assert one.client.post(f"{RUN}/notes", data=fields, headers=headers).status_code == 403
    assert one.site.known(refresh=True).log.entries == ()


def test_a_form_needs_the_field_of_its_own_session(lake: str) -> None:
    one, other = served(lake, by="Ann Lee", sign=True), served(lake, by="Ann Lee", sign=True)
    theirs = other.site.admission.forms.made(other.client.cookies["evenhand-8321"])
    for fields in ({}, {"form": ""}, {"form": theirs}, {"form": "é" * 64}):
        answer = one.client.post(f"{RUN}/notes", data={"text": "forged", **fields}, headers={"origin": BASE})
        assert answer.status_code == 403
    assert one.site.known(refresh=True).log.entries == ()


def test_no_get_writes_and_no_form_is_there_without_sign(lake: str) -> None:
    one = served(lake, by="Ann Lee", sign=True)
    assert one.get(f"{RUN}/notes?text=x").status_code in (404, 405)
    reader = served(lake, by="Ann Lee")
    assert '<form class="write"' not in reader.get(f"{RUN}/review").text
    assert reader.post(f"{RUN}/review", f"{RUN}/notes", text="x").status_code in (404, 405)
    assert one.site.known(refresh=True).log.entries == ()


@pytest.mark.parametrize("path", [*ROUTES, "/healthz"])
def test_every_answer_has_the_headers_and_no_script(lake: str, path: str) -> None:
    for one in (served(lake), served(lake, entered=False)):
        answer = one.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert "<script" not in answer.text
        assert "style=" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        *("/runs/%2e%2e", "/runs/%2e%2e%2flog", "/runs/a%00b", "/runs/%2Fetc%2Fpasswd"),
        *(f"{RUN}/files/../manifest.json", f"{RUN}/files/%2e%2e/{NEW}/report.json", f"{RUN}/files/..%2fmanifest.json"),
        *(
            f"{RUN}/evidence/..%2f..%2freport",
            "/audits/..%2f..%2fetc/years",
            f"{RUN}/files//etc/passwd",
        ),
    ],
)
def test_a_path_is_looked_up_and_never_followed(lake: str, path: str) -> None:
    answer = served(lake).client.get(f"{BASE}{path}", follow_redirects=False)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text


def test_a_link_in_the_lake_leads_nowhere(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    (tmp_path / "secret.html").write_text("the secret")
    (lake.root / "reports" / NEW / "secret.html").symlink_to(tmp_path / "secret.html")
    (lake.root / "runs" / "outside").symlink_to(tmp_path)
    one = served(lake.location)
    for path in (f"{RUN}/files/secret.html", "/runs/outside", "/runs/outside/files/secret.html"):
        assert one.get(path).status_code == 404


def test_a_file_that_was_altered_is_not_given(tmp_path: Path) -> None:
    lake = lake_of_runs(tmp_path / "lake")
    one = served(lake.location)
    assert one.get(f"{RUN}/files/report.json").status_code == 200
    (lake.root / "reports" / NEW / "report.json").write_bytes(b"{}")
    assert one.get(f"{RUN}/files/report.json").status_code == 409


def test_rows_of_persons_are_off(lake: str) -> None:
    one = served(lake)
    assert one.get(f"{RUN}/findings/1").status_code == 403
    assert one.get(f"{RUN}/findings").status_code == 200


def test_a_large_body_is_refused(lake: str) -> None:
    one = served(lake, by="Ann Lee", sign=True)
    headers = {"origin": BASE, "content-type": "application/x-www-form-urlencoded"}
    assert one.client.post(f"{RUN}/notes", content=b"x" * (MOST_BODY + 1), headers=headers).status_code == 413
    pieces = (b"x" * 8192 for _ in range(20))
    assert one.client.post(f"{RUN}/notes", content=pieces, headers=headers).status_code == 413


def test_a_slow_query_is_stopped() -> None:
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match="narrow it"):
        Tables(0.2).ask(
            {"rows": pa.table({"n": range(3000)})}, "SELECT sum(a.n * b.n * c.n) FROM rows a, rows b, rows c", {}
        )
    assert time.monotonic() - began < 8


def test_a_query_reaches_no_file_and_no_other_request_s_tables(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    tables = Tables()
    with pytest.raises(Exception, match=r"disabled|Permission"):
        tables.ask({}, f"SELECT * FROM read_csv('{tmp_path / 'x.csv'}')", {})
    assert tables.ask({"mine": pa.table({"a": [1]})}, "SELECT a FROM mine", {}).num_rows == 1
    with pytest.raises(Exception, match="mine"):
        tables.ask({}, "SELECT a FROM mine", {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "--behind-tls"),
        ({"host": "example.org"}, "--behind-tls"),
        ({"sign": True}, "--as NAME"),
        ({"restricted": True}, "--as NAME"),
        ({"behind_tls": "https://x/"}, "--behind-tls"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        check(Settings("lake", **options))
    check(Settings("lake", host="0.0.0.0", behind_tls="audits.example.org"))


def test_only_loopback_is_listened_on_and_a_port_in_use_names_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InfrastructureError, match=r"in use; --port \d+ is free"):
            listening(Settings("lake", port=port))
    with listening(Settings("lake", port=port)) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_a_token_file_must_be_its_owner_s_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 64)
    file.chmod(0o644)
    with pytest.raises(SpecError, match="0600"):
        token_in(file)
    file.chmod(0o600)
    assert token_in(file) == "a" * 64
    file.write_text("short")
    with pytest.raises(SpecError, match="32 letters"):
        token_in(file)


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_another_page_of_this_machine_cannot_use_the_cookie(lake: str, site: str) -> None:
    """Cookies know no ports: a page of another local server sends ours along."""
    one = served(lake)
    assert one.get(RUN, headers={"sec-fetch-site": site}).status_code == 403
    assert one.get(RUN, headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("other", ['prefs={"a":1}', "flag", "k[0]=\xe9", "path=/x", "evenhand-8321=guessed"])
def test_cookies_of_other_programs_lock_nobody_out(lake: str, other: str) -> None:
    one = served(lake)
    own = "; ".join(f"{each.name}={each.value}" for each in one.client.cookies.jar)
    one.client.cookies.clear()
    assert one.get("/", headers={"cookie": f"{other}; {own}".encode("latin-1")}).status_code == 200


def test_a_ticket_opens_one_session_within_half_a_minute() -> None:
    now = [0.0]
    admission = Admission("token", clock=lambda: now[0])
    ticket = admission.ticket()
    assert admission.opened(ticket) is not None
    assert admission.opened(ticket) is None, "it was used"
    late = admission.ticket()
    now[0] = 31
    assert admission.opened(late) is None
    assert admission.opened("") is None


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("column income: at least 0: 3 of 500 values; rows A17, A18", "column income: at least …: … of … values"),
        ("year 2019 has no column 'secret cell'", "year 2019 has no column …"),
        ("verdict\nrows A17", "verdict"),
    ],
)
def test_reasons_of_years_show_no_cell_no_count_and_no_row(reason: str, shown: str) -> None:
    assert shareable(reason).startswith(shown)
    assert "17" not in shareable(reason)
