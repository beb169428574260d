"""The Helm chart renders to resources that Kubernetes takes, and says what the line needs of it."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from infra.cli.worker import Role
from infra.deploy import render
from infra.settings import Settings
from schemas.topics import TOPICS
from tests.deploy.tools import DEPLOY, run_tool

CHART = DEPLOY / "helm" / "longtake"
EVERYTHING = (
    "keda.enabled=true,keda.authentication=kafka,monitoring.podMonitor=true,strimzi.cluster=kafka,"
    "tlsSecret=tls,roles.generate.models=checkpoints,secrets={passwords},imagePullSecrets[0].name=pull,env.AWS_REGION=eu"
)
Resource = dict[str, Any]


def rendered(values: str, chart: Path = CHART) -> list[Resource]:
    done = run_tool("helm", "template", "line", chart, "--kube-version", "1.31.0", "--set", values)
    assert done.returncode == 0, done.stderr
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]


def of_kind(resources: list[Resource], kind: str) -> dict[str, Resource]:
    return {r["metadata"]["name"]: r for r in resources if r["kind"] == kind}


@pytest.mark.parametrize("values", ["keda.enabled=false", EVERYTHING], ids=["plain", "everything"])
def test_kubernetes_takes_every_resource(values: str) -> None:
    core = [r for r in rendered(values) if r["apiVersion"] in ("v1", "apps/v1", "batch/v1", "policy/v1")]
    network = [r for r in rendered(values) if r["apiVersion"].startswith("networking")]
    for resource in core + network:
        kubernetes_validate.validate(resource, "1.31", strict=True)
    assert len(core) == 3 * len(Role) + 1


def test_lint_finds_nothing() -> None:
    done = run_tool("helm", "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ("objects=file:///data", "objects"),
        ("clickhouse=http://:secret@host/db", "clickhouse"),
        ("roles.generate.replica=3", "replica"),
        ("kafka.partitions=0", "partitions"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: str, complaint: str) -> None:
    done = run_tool("helm", "template", "line", CHART, "--kube-version", "1.31.0", "--set", values)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_every_role_is_a_stateful_set_whose_ordinal_is_its_slot() -> None:
    sets = of_kind(rendered(EVERYTHING), "StatefulSet")
    assert set(sets) == {f"line-{role.value}" for role in Role}
    for role in Role:
        pod = sets[f"line-{role.value}"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["args"] == ["worker", role.value, "--slot", "$(SLOT)"]
        variables = {v["name"]: v for v in container["env"]}
        field = variables["SLOT"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert field == "metadata.labels['apps.kubernetes.io/pod-index']"
        known = {f"LONGTAKE_{name.upper()}" for name in Settings.model_fields} | {"LONGTAKE_MODELS"}
        assert {name for name in variables if name.startswith("LONGTAKE_")} <= known
        assert pod["terminationGracePeriodSeconds"] >= float(variables["LONGTAKE_DRAIN_S"]["value"]) + 20
        assert {container[f"{p}Probe"]["httpGet"]["path"] for p in ("liveness", "readiness")} == {"/healthz", "/readyz"}


def test_no_pod_may_write_its_root_or_become_root_or_talk_to_the_cluster() -> None:
    resources = rendered(EVERYTHING)
    templates = [r["spec"]["template"]["spec"] for r in resources if r["kind"] in ("StatefulSet", "Job")]
    assert len(templates) == len(Role) + 1
    for pod in templates:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            security = container["securityContext"]
            assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
            assert security["capabilities"] == {"drop": ["ALL"]}


def test_only_pods_with_a_gpu_get_its_image_and_its_limits() -> None:
    sets = of_kind(rendered(EVERYTHING), "StatefulSet")
    images = {name: s["spec"]["template"]["spec"]["containers"][0]["image"] for name, s in sets.items()}
    assert {name for name, image in images.items() if image.endswith(":gpu")} == {"line-generate"}
    limits = sets["line-generate"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == 1


def test_scaling_follows_the_lag_of_the_role_and_takes_one_pod_at_a_time() -> None:
    resources = rendered(EVERYTHING)
    scaled = of_kind(resources, "ScaledObject")
    assert set(scaled) == {"line-generate", "line-stitch", "line-check-pieces"}
    generate = scaled["line-generate"]["spec"]
    (trigger,) = generate["triggers"]
    assert trigger["metadata"]["topic"] in {topic.name for topic in TOPICS}
    assert trigger["metadata"]["consumerGroup"] == "longtake.generate"
    down = generate["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    grace = of_kind(resources, "StatefulSet")["line-generate"]["spec"]["template"]["spec"]
    assert down["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 570}]
    assert down["policies"][0]["periodSeconds"] <= grace["terminationGracePeriodSeconds"]
    assert "replicas" not in of_kind(resources, "StatefulSet")["line-generate"]["spec"], "the scaler owns the count"


def test_the_topics_of_strimzi_are_those_of_the_schemas() -> None:
    topics = of_kind(rendered(EVERYTHING), "KafkaTopic")
    assert set(topics) == {topic.name for topic in TOPICS}
    assert topics["longtake.jobs.state.v1"]["spec"]["config"]["cleanup.policy"] == "compact"


def test_what_is_written_from_the_code_is_up_to_date() -> None:
    assert render.TOPICS_FILE.read_text() == render.topics_page(), "run: python -m infra.deploy.render"
    assert render.CLUSTER_FILE.read_text() == render.cluster_page(), "run: python -m infra.deploy.render"
