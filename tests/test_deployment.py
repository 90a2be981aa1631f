"""docker-compose.yml, Dockerfile, units and secrets: valid, complete, and every command of them
starts. No container engine is needed, and so none was tried."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator

from slotserve.stack.parts import ROOT

SCHEMA = ROOT / "tests" / "schemas" / "compose-spec.json"
OURS = {"setup", "web", "plan", "beat", "network", "host", "edge"}
NETWORKED = {"host", "edge"}
UNITS = sorted((ROOT / "docs" / "systemd").glob("*.service"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    with (ROOT / "docker-compose.yml").open() as file:
        loaded: dict[str, Any] = yaml.safe_load(file)
    return loaded


@pytest.fixture(scope="module")
def schema() -> Any:
    """The pinned edition, with what the specification has added since: depends_on.restart."""
    loaded = json.loads(SCHEMA.read_text())
    long_form = loaded["definitions"]["service"]["properties"]["depends_on"]["oneOf"][1]
    pattern = long_form["patternProperties"]["^[a-zA-Z0-9._-]+$"]
    pattern["properties"]["restart"] = {"type": "boolean"}
    return loaded


def test_compose_is_valid_by_the_specification_s_schema(compose: Any, schema: Any) -> None:
    errors = Draft201909Validator(schema).iter_errors(compose)
    assert [(list(error.path), error.message) for error in errors] == []


def test_the_schema_finds_what_is_wrong(compose: Any, schema: Any) -> None:
    broken = compose | {"services": compose["services"] | {"web": {"comand": "x"}}}
    assert not Draft201909Validator(schema).is_valid(broken)


def test_every_part_is_there_and_none_is_root(compose: Any) -> None:
    services = compose["services"]
    assert set(services) == OURS | {"postgres", "valkey"}
    for name, service in services.items():
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name
        assert service["init"] is True, name
    for name in OURS:
        assert services[name]["cap_drop"] == ["ALL"]
    without_check = {name for name, each in services.items() if "healthcheck" not in each}
    assert without_check == {"setup", "beat", "network"}  # one ends, the others are their process


def test_secrets_are_files_that_make_secrets_makes(compose: Any, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    for _ in range(2):  # a second time changes nothing
        subprocess.run([ROOT / "bin" / "make-secrets", folder], check=True, capture_output=True)
        made = {file.name: file.read_text() for file in folder.iterdir()}
    assert set(made) == set(compose["secrets"])
    assert all(len(text) >= 64 for text in made.values())
    assert len(set(made.values())) == len(made)
    assert folder.stat().st_mode & 0o777 == 0o700
    declared = {name: f"./secrets/{name}" for name in made}
    assert {name: each["file"] for name, each in compose["secrets"].items()} == declared


def test_no_secret_is_in_the_environment_and_each_file_is_mounted(compose: Any) -> None:
    for name, service in compose["services"].items():
        variables = service.get("environment", {})
        files = {v for k, v in variables.items() if k.endswith("_FILE")}
        assert files <= {f"/run/secrets/{each}" for each in service.get("secrets", [])}, name
        secret = [k for k in variables if re.search(r"PASSWORD|SECRET|KEYS", k)]
        assert all(each.endswith("_FILE") for each in secret), name


def test_secrets_go_to_those_who_need_them(compose: Any) -> None:
    holders = {
        secret: {n for n, each in compose["services"].items() if secret in each.get("secrets", [])}
        for secret in compose["secrets"]
    }
    assert holders["secret_key"] == {"setup", "web"}
    assert holders["admin_password"] == {"setup"}
    assert "edge" not in holders["postgres_password"]


def test_host_and_edge_share_a_network_that_outlives_either(compose: Any) -> None:
    services = compose["services"]
    modes = {
        name: each["network_mode"] for name, each in services.items() if "network_mode" in each
    }
    assert modes == dict.fromkeys(NETWORKED, "service:network")
    for name in NETWORKED:
        needed = services[name]["depends_on"]
        assert needed["network"] == {"condition": "service_started", "restart": True}
        assert needed["setup"] == {"condition": "service_completed_successfully"}
        assert not NETWORKED & set(needed)  # an end of one is no end of the other
        # an engine refuses these together with another's network
        assert not {"ports", "hostname", "networks", "expose", "dns"} & set(services[name])


def test_the_network_s_owner_does_nothing_and_knows_no_secret(compose: Any) -> None:
    owner = compose["services"]["network"]
    assert owner["command"] == "sleep infinity"
    assert owner["ports"] == ["127.0.0.1:8001:8001"]
    assert owner["read_only"] is True
    assert not {"secrets", "environment", "volumes", "depends_on", "deploy"} & set(owner)


def test_health_checks_ask_the_worker_by_the_name_that_its_command_gives(compose: Any) -> None:
    """A container in another's network has no name of its own to rely on."""
    host = compose["services"]["host"]
    assert "-n host@${SLOTSERVE_HOST_KEY:-gpu1} " in host["command"]
    assert host["environment"]["SLOTSERVE_HOST_KEY"] == "${SLOTSERVE_HOST_KEY:-gpu1}"
    assert host["healthcheck"]["test"][1].endswith(" -d host@$$SLOTSERVE_HOST_KEY")
    plan = compose["services"]["plan"]
    assert " -n plan@%h " in plan["command"]
    assert plan["healthcheck"]["test"][1].endswith(" -d plan@$$HOSTNAME")


def test_pages_and_who_pushes_see_one_lasting_folder_of_one_user(compose: Any) -> None:
    """`vapid-key.pem` is in it: made by the first of them, 0600, and read by the other."""
    for name in ("web", "plan"):
        service = compose["services"][name]
        assert "data:/var/lib/slotserve" in service["volumes"]
        assert "SLOTSERVE_DATA" not in service["environment"]  # the image's
        assert service["user"] == "10001:10001"
        assert not service.get("read_only", False)
    assert "data" in compose["volumes"]
    image = (ROOT / "Dockerfile").read_text()
    assert "SLOTSERVE_DATA=/var/lib/slotserve\n" in image
    assert "install -d -o slotserve -g slotserve -m 0711 /var/lib/slotserve" in image
    assert "USER 10001:10001" in image


def test_other_settings_come_from_a_file_that_need_not_be_there(compose: Any) -> None:
    optional = "${SLOTSERVE_ENV_FILE:-/dev/null}"
    holders = {name for name, each in compose["services"].items() if "env_file" in each}
    assert holders == OURS - {"network"}
    assert all(compose["services"][name]["env_file"] == optional for name in holders)
    assert "SLOTSERVE_WEB_URL" in compose["services"]["plan"]["environment"]  # who sends mails


def test_volumes_and_services_that_are_named_exist(compose: Any) -> None:
    for service in compose["services"].values():
        assert set(service.get("depends_on", {})) <= set(compose["services"])
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or source.startswith(("./", "$"))


def test_ports_are_of_this_machine_only(compose: Any) -> None:
    ports = [port for each in compose["services"].values() for port in each.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(None, 1)[1]) for line in lines if line.strip()]


def test_the_dockerfile_is_as_hadolint_wants_it() -> None:
    made = instructions()
    assert {name for name, _ in made} <= {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME"}
    for name, rest in made:
        if name == "FROM":
            assert re.fullmatch(r"python:3\.\d+-slim-\w+", rest)
        if name == "WORKDIR":
            assert rest.startswith("/")
        if "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest
        if "pip install" in rest:
            assert "--no-cache-dir" in rest
        assert "sudo" not in rest
    users = [rest for name, rest in made if name == "USER"]
    assert users == ["10001:10001"]
    after = made[made.index(("USER", "10001:10001")) :]
    assert not any(name == "RUN" for name, _ in after)


def test_the_image_s_user_is_compose_s_and_its_folders_too(compose: Any) -> None:
    made = instructions()
    assert {compose["services"][name]["user"] for name in OURS} == {dict(made)["USER"]}
    assert dict(made)["VOLUME"] == "/var/lib/slotserve"
    assert "SLOTSERVE_DATA=/var/lib/slotserve" in dict(made)["ENV"]
    for name in OURS - {"edge", "network"}:
        assert "data:/var/lib/slotserve" in compose["services"][name]["volumes"]


def test_what_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for name, rest in instructions():
        if name == "COPY":
            for source in shlex.split(rest)[:-1]:
                assert (ROOT / source).exists()
                assert source not in ignored
    for needed in ("manage.py", "slotserve", "static", "templates", "wire", "requirements.txt"):
        assert needed not in ignored
    assert {".git", "secrets", ".env", "var"} <= set(ignored)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_what_compose_starts(unit: Path, compose: Any) -> None:
    """So each command is one of those that the test of commands has started."""
    started = re.search(
        r"^ExecStart=/opt/slotserve/.venv/bin/(.*)$", unit.read_text(), re.MULTILINE
    )
    assert started is not None
    name = unit.stem.removeprefix("slotserve-")
    assert essence(started[1]) == essence(compose["services"][name]["command"])


def essence(command: str) -> set[str]:
    """A command without addresses, names and numbers that differ by place."""
    words = re.sub(r"\$\{SLOTSERVE_HOST_KEY[^}]*\}|-n \w+@%+h|-n host@|--host \S+", "", command)
    return set(words.split())


@pytest.mark.skipif(
    not os.path.exists("/usr/bin/systemd-analyze"), reason="NOT TESTED HERE: systemd"
)
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in (ROOT / "docs" / "systemd").glob("slotserve-*.*"):
        text = unit.read_text().replace("/opt/slotserve/.venv/bin/python", "/bin/true")
        (tmp_path / unit.name).write_text(text.replace("/opt/slotserve", str(tmp_path)))
    argv = ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    verified = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
