"""The image as text, linted by kept tools, and its entry point, run by a shell as the image does."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from conftest import REPOSITORY
from deployed import DEPLOYMENTS, ENTRYPOINT, image_words
from lint import lint

DOCKERFILE = (DEPLOYMENTS / "Dockerfile").read_text()
BUILD, FINAL = re.split(r"^FROM ", DOCKERFILE, flags=re.M)[1:]
"""The two stages; what the first has besides what is copied out of it is in no image."""


class TestDockerfile:
    def test_hadolint_has_nothing_to_say(self) -> None:
        done = lint("hadolint", "--no-color", str(DEPLOYMENTS / "Dockerfile"))
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr

    def test_hadolint_would_say_it(self, tmp_path: Path) -> None:
        worse = tmp_path / "Dockerfile"
        worse.write_text((DEPLOYMENTS / "Dockerfile").read_text().replace("USER 10001:10001", "USER root"))
        assert "DL3002" in lint("hadolint", "--no-color", str(worse)).stdout

    def test_everything_that_is_copied_is_there_and_passes_the_ignore_file(self) -> None:
        text = (DEPLOYMENTS / "Dockerfile").read_text()
        copied = [word for line in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.M) for word in line.split()]
        allowed = re.findall(r"^!(\S+)$", (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(), re.M)
        assert copied
        for path in copied:
            assert (REPOSITORY / path).exists(), path
            assert any(entry == path or entry.startswith(f"{path}/") for entry in allowed), path
        assert all((REPOSITORY / entry).exists() for entry in allowed)

    def test_it_has_what_an_installed_wheel_is_built_from(self) -> None:
        wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
        needed = [*wheel["packages"], *wheel["force-include"]]
        copied = [word for line in re.findall(r"^COPY (?!--)(.+) \S+$", BUILD, re.M) for word in line.split()]
        assert [path for path in needed if path.split("/")[0] not in copied] == []
        allowed = re.findall(r"^!(\S+)$", (DEPLOYMENTS / "Dockerfile.dockerignore").read_text(), re.M)
        for path in needed:
            assert any(path == entry or path.startswith(f"{entry}/") for entry in allowed), path

    def test_the_second_stage_installs_nothing_of_ours_and_loses_pip(self) -> None:
        assert "pip wheel" in BUILD
        assert "--require-hashes --no-deps" in BUILD
        assert "pip uninstall --yes pip setuptools wheel" in FINAL
        assert not re.search(r"pip install|requirements|\bgit\b|gcc|build-essential|hatchling", FINAL)
        assert set(re.findall(r"COPY --from=build (\S+)", FINAL)) == {"/opt/venv", "/opt/kernels"}

    def test_it_says_its_version_commit_and_user(self) -> None:
        version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
        assert f'org.opencontainers.image.version="{version}"' in FINAL
        assert 'org.opencontainers.image.revision="${REVISION}"' in FINAL
        assert re.search(r"^USER 10001:10001$", FINAL, re.M)
        assert f"COPY deployments/{ENTRYPOINT.name} /usr/local/bin/{image_words('ENTRYPOINT')[0]}\n" in FINAL
        assert os.access(ENTRYPOINT, os.X_OK)


SHOWN = (
    "import os; print(sorted((k, v) for k, v in os.environ.items() if k.startswith(('PREFECT_', 'EVENHAND_T', 'LD_'))))"
)


def begun(folder: Path, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """A command begun by the entry point, with a folder of secrets and few settings."""
    environment = {"PATH": os.environ["PATH"], "CREDENTIALS_DIRECTORY": str(folder), **settings}
    words = words or (sys.executable, "-c", SHOWN)
    return subprocess.run([ENTRYPOINT, *words], env=environment, capture_output=True, text=True, timeout=30)


class TestEntryPoint:
    def test_secrets_become_variables_of_the_command(self, tmp_path: Path) -> None:
        files = {
            "PREFECT_API_AUTH_STRING": "evenhand:it's $(HOME) \"quoted\" `and` 'long'\n",
            "EVENHAND_TOKEN": "two\nlines",
            "LD_PRELOAD": "/of/somebody.so",
            "server.pem": "a key",
            "PREFECT-odd": "no name",
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        done = begun(tmp_path, PREFECT_API_URL="http://server")
        assert done.returncode == 0, done.stderr
        assert eval(done.stdout) == [
            ("EVENHAND_TOKEN", "two\nlines"),
            ("PREFECT_API_AUTH_STRING", files["PREFECT_API_AUTH_STRING"].rstrip("\n")),
            ("PREFECT_API_URL", "http://server"),
        ]

    def test_the_command_takes_the_place_of_the_shell_and_its_exit_code_is_kept(self, tmp_path: Path) -> None:
        done = begun(tmp_path, sys.executable, "-c", "import sys; sys.exit(3)")
        assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
        words = [ENTRYPOINT, sys.executable, "-c", "import os; print(os.getpid())"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.communicate(timeout=30)[0].strip() == str(process.pid), "a signal has to reach the command"

    def test_a_secret_that_is_empty_stops_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "PREFECT_API_AUTH_STRING").touch()
        done = begun(tmp_path)
        assert (done.returncode, done.stdout) == (5, "")
        assert "PREFECT_API_AUTH_STRING is empty, or user" in done.stderr

    def test_kernels_are_copied_to_where_numba_may_write(self, tmp_path: Path) -> None:
        kernels, there = tmp_path / "kernels", tmp_path / "cache"
        (kernels / "radius").mkdir(parents=True)
        (kernels / "radius" / "a.nbi").write_text("compiled")
        os.utime(kernels / "radius" / "a.nbi", (1_700_000_000, 1_700_000_000))
        for _ in range(2):  # a container that starts again finds them
            done = begun(tmp_path, "true", EVENHAND_KERNELS=str(kernels), NUMBA_CACHE_DIR=str(there))
            assert done.returncode == 0, done.stderr
        assert (there / "radius" / "a.nbi").stat().st_mtime == 1_700_000_000
        assert sorted(path.name for path in there.iterdir()) == ["radius"]

    def test_alerts_are_closed_to_others_and_may_be_missing(self, tmp_path: Path) -> None:
        file = tmp_path / "secrets" / "alerts.yaml"
        file.parent.mkdir()
        settings = {"EVENHAND_ALERTS": str(file), "TMPDIR": str(tmp_path)}
        shown = (sys.executable, "-c", "import os; print(os.environ.get('EVENHAND_ALERTS'))")
        missing = begun(tmp_path, *shown, **settings)
        assert (missing.stdout, "there is no " in missing.stderr) == ("None\n", True)
        file.write_text("to: {}")
        file.chmod(0o440)
        done = begun(tmp_path, *shown, **settings)
        assert (done.stdout.strip(), done.stderr) == (str(tmp_path / "alerts.yaml"), "")
        assert (tmp_path / "alerts.yaml").stat().st_mode & 0o777 in (0o400, 0o600)
        assert (tmp_path / "alerts.yaml").read_text() == "to: {}"
