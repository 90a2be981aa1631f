"""Hosts, lanes, models, presets; what a lane should run (its order) and what runs (its runtime).

Every column has one writer: an `Order` is written by the planner, a `Runtime`, a `LoadRecord`,
a `HostReport` and a `LlamaServer` by the host, the rest by `lanes.services`.
"""

from lanes.models.announcements import Announcement, Level
from lanes.models.audit import AuditEntry, AuditPruning, Subject
from lanes.models.catalogue import A_PROJECTOR, GONE, ModelFile, ModelFolder, ModelKind
from lanes.models.gpus import GpuState, HostGpus, LaneMinute, LaneStretch
from lanes.models.hosts import SLUG_WORDS, Driver, Gpu, Host, HostReport, slug_validator
from lanes.models.joining import JoinToken, TokenState
from lanes.models.lane import Lane, LaneEvent, ManualChoice, ReloadRequest
from lanes.models.maintenance import Maintenance
from lanes.models.notices import Notice
from lanes.models.presets import Engine, Preset, PresetRevision
from lanes.models.programs import LlamaServer
from lanes.models.running import LoadRecord, Order, Phase, PresetFailure, Runtime
from lanes.models.trying import Outcome, TestLoad

__all__ = [
    "A_PROJECTOR",
    "GONE",
    "SLUG_WORDS",
    "Announcement",
    "AuditEntry",
    "AuditPruning",
    "Driver",
    "Engine",
    "Gpu",
    "GpuState",
    "Host",
    "HostGpus",
    "HostReport",
    "JoinToken",
    "Lane",
    "LaneEvent",
    "LaneMinute",
    "LaneStretch",
    "Level",
    "LlamaServer",
    "LoadRecord",
    "Maintenance",
    "ManualChoice",
    "ModelFile",
    "ModelFolder",
    "ModelKind",
    "Notice",
    "Order",
    "Outcome",
    "Phase",
    "Preset",
    "PresetFailure",
    "PresetRevision",
    "ReloadRequest",
    "Runtime",
    "Subject",
    "TestLoad",
    "TokenState",
    "slug_validator",
]
