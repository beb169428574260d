"""The Helm chart renders to resources that Kubernetes takes, and says what the line needs of it."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from infra import acls
from infra.cli.worker import Role
from infra.deploy import render
from infra.settings import Settings
from schemas.topics import TOPICS
from tests.deploy.tools import DEPLOY, run_tool

CHART = DEPLOY / "helm" / "longtake"
EVERYTHING = (
    "keda.enabled=true,keda.authentication=kafka,monitoring.podMonitor=true,monitoring.prometheusRule=true,strimzi.cluster=kafka,"
    "strimzi.users=true,web.console.replicas=2,web.door.replicas=2,"
    "tlsSecret=tls,roles.generate.models=checkpoints,secrets={passwords},imagePullSecrets[0].name=pull,env.AWS_REGION=eu"
)
WEB = ("console", "door")
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
    assert len(core) == 3 * len(Role) + 1 + 3 * len(WEB if values == EVERYTHING else ())


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


def test_the_console_and_the_door_are_replaced_without_a_gap_and_opened_to_the_ingress_only() -> None:
    resources = rendered(EVERYTHING)
    for name in WEB:
        deployment = of_kind(resources, "Deployment")[f"line-{name}"]["spec"]
        assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        (container,) = deployment["template"]["spec"]["containers"]
        assert container["args"][0] == name
        probed = {p: container[f"{p}Probe"]["httpGet"]["path"] for p in ("startup", "liveness", "readiness")}
        assert probed == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
        service = of_kind(resources, "Service")[f"line-{name}"]["spec"]
        assert service["selector"]["app.kubernetes.io/component"] == name
        assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]
        (rule,) = of_kind(resources, "NetworkPolicy")[f"line-{name}"]["spec"]["ingress"]
        assert rule["ports"] == [{"port": "http"}]
    assert not of_kind(rendered("keda.enabled=false"), "Deployment"), "without a password nobody may come in"


def test_every_role_has_a_user_of_strimzi_with_its_rights_and_its_pods_are_that_user() -> None:
    resources = rendered(EVERYTHING)
    users = of_kind(resources, "KafkaUser")
    assert set(users) == {f"longtake-{role}" for role in acls.roles() if role != "subscriber"}
    rights = users["longtake-generate"]["spec"]["authorization"]["acls"]
    read = {"type": "topic", "name": "longtake.segments.requested.v1", "patternType": "literal"}
    assert {"resource": read, "operations": ["Read"]} in rights
    group = {"type": "group", "name": "longtake.generate-", "patternType": "prefix"}
    assert {"resource": group, "operations": ["Read"]} in rights
    assert len(rights) == len(acls.bindings("generate", "generate"))
    pods = of_kind(resources, "StatefulSet") | of_kind(resources, "Deployment")
    for name, pod in pods.items():
        (container,) = pod["spec"]["template"]["spec"]["containers"]
        variables = {v["name"]: v for v in container["env"]}
        user = f"longtake-{name.removeprefix('line-')}"
        assert variables["LONGTAKE_KAFKA_USER"]["value"] == user
        assert variables["LONGTAKE_KAFKA_PASSWORD"]["valueFrom"]["secretKeyRef"] == {"name": user, "key": "password"}


def test_the_operator_of_prometheus_gets_the_alerts() -> None:
    (rule,) = of_kind(rendered(EVERYTHING), "PrometheusRule").values()
    assert {r["alert"] for r in rule["spec"]["groups"][0]["rules"]} >= {"LongtakeWorkerAway", "LongtakeLagGrowing"}


def test_no_pod_may_write_its_root_or_become_root_or_talk_to_the_cluster() -> None:
    resources = rendered(EVERYTHING)
    kinds = ("StatefulSet", "Deployment", "Job")
    templates = [r["spec"]["template"]["spec"] for r in resources if r["kind"] in kinds]
    assert len(templates) == len(Role) + len(WEB) + 1
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
    assert render.USERS_FILE.read_text() == render.users_page(), "run: python -m infra.deploy.render"
    assert render.ALERTS_FILE.read_text() == render.alerts_page(), "run: python -m infra.deploy.render"
    assert render.CLUSTER_FILE.read_text() == render.cluster_page(), "run: python -m infra.deploy.render"
