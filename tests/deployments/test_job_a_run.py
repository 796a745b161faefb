"""One job of Kubernetes for each flow run: the work pool's template, the jobs that are made of it, and who may ask."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed import DEPLOYMENTS, SERVICES
from test_kubernetes_manifests import KUBERNETES, validated, with_validator

HOME = KUBERNETES / "job-a-run"
TEMPLATE: dict[str, Any] = json.loads((HOME / "work-pool.json").read_text())
PLAIN: dict[str, Any] = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text())
JOBS: dict[str, Any] = yaml.safe_load((HOME / "prefect.yaml").read_text())
OF_RUN = {
    "name": "loans-2024",
    "command": ["prefect", "flow-run", "execute"],
    "labels": {"prefect.io/flow-run-id": "7"},
}
"""What Prefect's worker gives for each flow run."""


def variables(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["work_pool"].get("job_variables", {})


def rendered(said: dict[str, Any]) -> dict[str, Any]:
    """The job of a run, as Prefect's worker fills in the template; its environment as the list that it makes of it."""
    from prefect.utilities.templating import apply_values

    defaults = {k: v["default"] for k, v in TEMPLATE["variables"]["properties"].items() if "default" in v}
    filled = apply_values(copy.deepcopy(TEMPLATE["job_configuration"]), {**defaults, **OF_RUN, **said})
    job: dict[str, Any] = filled["job_manifest"]
    (box,) = job["spec"]["template"]["spec"]["containers"]
    box["env"] = [{"name": name, "value": value} for name, value in box["env"].items()]
    return job


def pod(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("deployment", JOBS["deployments"], ids=lambda each: each["name"])
def test_what_deployments_ask_for_keeps_the_schema_of_the_pool(deployment: dict[str, Any]) -> None:
    from prefect.utilities.schema_tools.validation import validate

    schema = TEMPLATE["variables"]
    assert validate(variables(deployment), schema, raise_on_error=False) == []
    assert deployment["work_pool"]["name"] == "evenhand-jobs"
    for wrong in ({"memory": "4Gi"}, {"memory_limit": 4}, {"image_pull_policy": "Sometimes"}):
        assert validate({**variables(deployment), **wrong}, schema, raise_on_error=False), wrong


def test_every_variable_is_used_and_every_place_is_filled() -> None:
    used = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(TEMPLATE["job_configuration"])))
    assert used == set(TEMPLATE["variables"]["properties"])
    assert "{{" not in json.dumps(rendered({}))


def test_a_pod_of_a_run_is_as_the_pod_of_the_worker() -> None:
    worker = yaml.safe_load((KUBERNETES / "base" / "worker.yaml").read_text())["spec"]["template"]["spec"]
    run, (theirs,), (ours,) = pod(rendered({})), worker["containers"], pod(rendered({}))["containers"]
    for key in ("terminationGracePeriodSeconds", "automountServiceAccountToken", "securityContext"):
        assert run[key] == worker[key], key
    for key in ("image", "securityContext", "resources"):
        assert ours[key] == theirs[key], key
    *mounted, work = ours["volumeMounts"]
    assert mounted == theirs["volumeMounts"]
    assert work["mountPath"] == ours["workingDir"], "Prefect copies the working directory of a run, which held the lake"
    assert ours["image"] == SERVICES["worker"]["image"]
    where = {v["name"]: v for v in worker["volumes"]}
    own = {v["name"]: v for v in run["volumes"]}
    assert own.pop("work") == {"name": "work", "emptyDir": {"sizeLimit": "64Mi"}}
    assert own.keys() == where.keys()
    for name in ("lake", "incoming", "specs", "scratch"):
        assert own[name] == where[name], name
    assert run["restartPolicy"] == "Never", "a run that died is taken up again by evenhand worker"


def test_each_run_has_what_its_deployment_asks_for() -> None:
    jobs = {each["name"]: pod(rendered(variables(each)))["containers"][0] for each in JOBS["deployments"]}
    assert jobs["by-hand"]["resources"] == {
        "requests": {"cpu": "4", "memory": "12Gi"},
        "limits": {"memory": "24Gi"},
    }
    assert jobs["quarterly"]["resources"]["limits"] == {"memory": "4Gi"}
    assert jobs["quarterly"]["args"] == OF_RUN["command"]


def test_deployments_are_those_of_the_plain_file_but_for_the_pool_and_a_limit() -> None:
    def bare(said: dict[str, Any]) -> list[dict[str, Any]]:
        return [{k: v for k, v in each.items() if k != "work_pool"} for each in said["deployments"]]

    plain, jobs = bare(PLAIN), bare(JOBS)
    assert jobs[-1].pop("concurrency_limit") == {"limit": 4, "collision_strategy": "ENQUEUE"}
    assert plain[-1].pop("concurrency_limit") == {"limit": 1, "collision_strategy": "ENQUEUE"}
    assert jobs == plain
    assert (JOBS["prefect-version"], JOBS["pull"]) == (PLAIN["prefect-version"], PLAIN["pull"])


@pytest.mark.slow
@with_validator
def test_jobs_and_dispatcher_keep_the_schema_of_kubernetes(tmp_path: Path) -> None:
    files = [str(HOME / "dispatcher.yaml")]
    for each in JOBS["deployments"]:
        job = rendered(variables(each))
        for each_one in (
            "parallelism",
            "completions",
        ):  # prefect-kubernetes wants them in the pod, which has no such key
            assert pod(job).pop(each_one) == job["spec"][each_one] == 1
        job["metadata"]["name"] = job["metadata"].pop("generateName") + "x"  # the validator knows no generateName
        files.append(str(tmp_path / f"{each['name']}.yaml"))
        Path(files[-1]).write_text(yaml.safe_dump(job))
    done = validated(*files)
    assert done.returncode == 0, done.stdout + done.stderr
    job["spec"]["template"]["spec"]["volumes"][0]["emptyDirs"] = {}
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(job))
    assert validated(str(tmp_path / "wrong.yaml")).returncode != 0


@pytest.mark.slow
def test_prefect_kubernetes_makes_the_same_job(server: str) -> None:
    worker = pytest.importorskip("prefect_kubernetes.worker", reason="prefect-kubernetes is not installed here")
    import asyncio
    from uuid import uuid4

    from prefect.client.schemas.objects import FlowRun
    from prefect.settings import PREFECT_API_URL, temporary_settings

    (by_hand,) = [each for each in JOBS["deployments"] if each["name"] == "by-hand"]
    with temporary_settings({PREFECT_API_URL: server}):
        configuration = asyncio.run(
            worker.KubernetesWorkerJobConfiguration.from_template_and_values(TEMPLATE, variables(by_hand))
        )
    configuration.prepare_for_flow_run(FlowRun(id=uuid4(), flow_id=uuid4(), name="loans 2024"))
    made, expected = pod(configuration.job_manifest), pod(rendered(variables(by_hand)))
    (box,), (ours,) = made.pop("containers"), expected.pop("containers")
    assert made == expected
    settings = {each["name"]: each["value"] for each in box.pop("env")}
    assert settings["EVENHAND_ALERTS"] == "/run/secrets/alerts.yaml"
    assert settings["PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR"] == "reschedule"
    ours.pop("env")
    assert box == ours
    assert configuration.job_manifest["metadata"]["generateName"] == "loans-2024-"
    assert configuration.job_manifest["spec"]["template"]["metadata"]["labels"]["evenhand/role"] == "run"


def test_who_may_ask_whom_is_as_for_the_worker() -> None:
    made = list(yaml.safe_load_all((HOME / "dispatcher.yaml").read_text()))
    policies = {m["metadata"]["name"]: m["spec"] for m in made if m["kind"] == "NetworkPolicy"}
    asking = [each["podSelector"]["matchLabels"] for each in policies["server-of-jobs"]["ingress"][0]["from"]]
    labels = rendered({})["spec"]["template"]["metadata"]["labels"]
    assert asking == [{"app.kubernetes.io/name": "dispatcher"}, labels]
    assert policies["runs"]["podSelector"] == {"matchLabels": labels}
    plain = {
        m["metadata"]["name"]: m["spec"] for m in yaml.safe_load_all((KUBERNETES / "base" / "network.yaml").read_text())
    }
    assert policies["runs"]["egress"][1] == plain["outside"]["egress"][0]
    (deployment,) = [m for m in made if m["kind"] == "Deployment"]
    (box,) = deployment["spec"]["template"]["spec"]["containers"]
    settings = {each["name"]: each["value"] for each in box["env"]}
    assert settings["PREFECT_INTEGRATIONS_KUBERNETES_WORKER_API_AUTH_STRING_SECRET_NAME"] == "server-auth"
    assert box["image"].startswith(f"prefecthq/prefect:{PLAIN['prefect-version']}-")
    (role,) = [m for m in made if m["kind"] == "Role"]
    assert not [rule for rule in role["rules"] if "*" in str(rule) or "secrets" in rule["resources"]]
    assert {m["metadata"]["namespace"] for m in made} == {"evenhand"}


@pytest.mark.slow
def test_a_server_takes_the_pool_and_its_deployments_and_refuses_what_the_schema_does_not_know(
    server: str, tmp_path: Path
) -> None:
    from conftest import environment
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="evenhand-jobs", type="kubernetes", base_job_template=TEMPLATE))
        own = {**environment(server), "EVENHAND_LAKE": str(tmp_path), "EVENHAND_SPECS": str(tmp_path)}
        words = ["-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(HOME / "prefect.yaml")]
        done = subprocess.run([sys.executable, *words], env=own, cwd=DEPLOYMENTS.parent, capture_output=True, text=True)
        made = [each for each in client.read_deployments() if each.work_pool_name == "evenhand-jobs"]
        try:
            assert done.returncode == 0, done.stdout + done.stderr
            found = {each.name: each.job_variables for each in made}
            assert found == {each["name"]: variables(each) for each in JOBS["deployments"]}
            with pytest.raises(PrefectHTTPStatusError, match=r"Validation failed for field .memory_limit"):
                client.create_deployment(
                    made[0].flow_id, "wrong", work_pool_name="evenhand-jobs", job_variables={"memory_limit": 4}
                )
        finally:
            for each in made:
                client.delete_deployment(each.id)
            client.delete_work_pool("evenhand-jobs")
