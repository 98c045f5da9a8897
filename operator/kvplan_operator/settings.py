"""What the person who installs the operator decides: where it looks, whom it asks, how often, how many at a time.

Inputs: a YAML file (optional) and ``KVPLAN_*`` variables, which win. Output: frozen ``Settings``. Credentials are
files named here and never fields of a fleet (01-api). Must not: read a Secret, or connect to anything.

A variable is named after the path of its field: ``lease.duration_seconds`` is ``KVPLAN_LEASE_DURATION_SECONDS``;
lists have commas. Variables that are no setting are passed over: Kubernetes adds some for every Service.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kvplan_operator.errors import SettingsError
from kvplan_operator.observe.profile import PrometheusConnection, PrometheusSettings, without_credentials

PREFIX = "KVPLAN_"
FILE_VARIABLE = "KVPLAN_CONFIG"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LeaseSettings(_Section):
    """Who of several operators writes (04 §1): one holds the Lease, the others wait.

    Attributes:
        namespace: of the Lease; empty means the operator's own, from its service account, else ``default``.
        name: of the Lease.
        identity: of this process; empty means host name and process id.
        duration_seconds: after which a silent leader is taken over.
        renew_seconds: within which a renewal must succeed.
        retry_seconds: between two attempts.
    """

    namespace: str = ""
    name: str = "kvplan-operator"
    identity: str = ""
    duration_seconds: float = Field(default=15.0, gt=0)
    renew_seconds: float = Field(default=10.0, gt=0)
    retry_seconds: float = Field(default=2.0, gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.retry_seconds < self.renew_seconds < self.duration_seconds:
            raise ValueError("use retry_seconds < renew_seconds < duration_seconds")
        return self


class TickSettings(_Section):
    """How often a fleet is looked at.

    Attributes:
        settling_seconds: after the first sign of a change, for what was changed together with it.
        spacing_seconds: least time between two looks at one fleet.
        staleness_seconds: longest time without a look, whatever happens or does not.
        backoff_seconds: bound of the first wait after a failed look; doubles with each failure.
        backoff_cap_seconds: bound of any such wait.
    """

    settling_seconds: float = Field(default=0.2, ge=0)
    spacing_seconds: float = Field(default=1.0, gt=0)
    staleness_seconds: float = Field(default=30.0, gt=0)
    backoff_seconds: float = Field(default=2.0, gt=0)
    backoff_cap_seconds: float = Field(default=120.0, gt=0)


class SolverSettings(_Section):
    """How plans are computed.

    Attributes:
        concurrency: solves that run at the same time; further ones wait in a queue.
    """

    concurrency: int = Field(default=2, ge=1, le=64)


class StartSettings(_Section):
    """What is done about a cluster that is not ready for the operator.

    Attributes:
        patience_seconds: how long missing CRDs and permissions are waited for before the process gives up.
        retry_seconds: between two looks.
    """

    patience_seconds: float = Field(default=300.0, ge=0)
    retry_seconds: float = Field(default=5.0, gt=0)


class Settings(_Section):
    """All of it.

    Attributes:
        namespaces: looked after; none means the whole cluster.
        kubeconfig: of the cluster; None means the pod's service account, else the user's own kubeconfig.
        listen: address and port of /metrics, /healthz and /readyz.
        log_level: DEBUG, INFO, WARNING or ERROR.
        echo_seconds: longest silence of the watches before the process calls itself dead.
    """

    namespaces: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    listen: str = Field(default="0.0.0.0:8080", pattern=r"^[^:]*:\d{1,5}$")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    echo_seconds: float = Field(default=90.0, gt=0)
    prometheus: PrometheusSettings = PrometheusSettings()
    lease: LeaseSettings = LeaseSettings()
    ticks: TickSettings = TickSettings()
    solver: SolverSettings = SolverSettings()
    start: StartSettings = StartSettings()

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.listen.rpartition(":")
        return host, int(port)


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process: the file that ``KVPLAN_CONFIG`` names, and the variables over it.

    Raises:
        SettingsError: a file that cannot be read, or a value that is refused; names each and the remedy.
    """
    known = os.environ if environment is None else environment
    path = known.get(FILE_VARIABLE)
    if not path:
        return settings_from("", known)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{FILE_VARIABLE} is {path!r}: {error.strerror}: name a YAML file of settings") from None
    return settings_from(text, known)


def settings_from(text: str, environment: Mapping[str, str]) -> Settings:
    """Settings from the text of a file (empty for none) and variables.

    Raises:
        SettingsError: no YAML mapping, or refused values; one line each.
    """
    values = _document(text)
    for path, value in _variables(environment):
        _put(values, path, value)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(map(_problem, error.errors(include_url=False)))) from None


def _document(text: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise SettingsError(f"{FILE_VARIABLE}: the file is no YAML: {error}") from None
    if not isinstance(document, dict):
        raise SettingsError(f"{FILE_VARIABLE}: the file holds {document!r:.80}: write a mapping of settings")
    return document


_DEFAULT_PROFILE = ("prometheus", "profiles", "default")


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Path and value of every variable that names a setting."""
    for path, many in (*_paths(Settings), *_default_profile()):
        shown = ("prometheus", *path[3:]) if path[:3] == _DEFAULT_PROFILE else path
        text = environment.get(PREFIX + "_".join(shown).upper())
        if text is not None:
            yield path, [part.strip() for part in text.split(",") if part.strip()] if many else text


def _default_profile() -> Iterator[tuple[tuple[str, ...], bool]]:
    for path, many in _paths(PrometheusConnection):
        yield (*_DEFAULT_PROFILE, *path), many


def _paths(section: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Path of every single value below a section, and whether it is a list."""
    for name, field in section.model_fields.items():
        path = (*before, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _paths(field.annotation, path)
        elif field.annotation == tuple[str, ...]:
            yield path, True
        elif name != "profiles":
            yield path, False


def _put(values: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{'.'.join(path[:-1])} is {inner!r:.80}: write a mapping")
        values = inner
    values[path[-1]] = value


def _problem(detail: ErrorDetails) -> str:
    path = [str(step) for step in detail["loc"]]
    variable = PREFIX + "_".join(path).upper()
    found = without_credentials(f"{detail['input']!r:.80}")
    return f"{'.'.join(path)} is {found}: {detail['msg']} (in the file, or {variable})"
