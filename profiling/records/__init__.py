"""Every message between worker, engine and client, and every value a saved run consists of; one file per topic.

Frozen typed structs in unions (`unions.py`: `Record` flows towards the client, `Command` towards the worker), told
apart by the field `type`. A saved run is the stream of its records: opening one replays them through the same code as
a live run.
"""

from gptscope.profiling.records.machine import Capabilities, LeverInfo, LeverOptionInfo, MachineInfo, Peaks
from gptscope.profiling.records.message import SCHEMA_VERSION, Message
from gptscope.profiling.records.model import Compiled, ModelFetched, ModelInfo, ModelInspected, ModelLoaded
from gptscope.profiling.records.profile import EvidenceItem, EvidenceReport, KernelRow, OperatorRow, Profile, TraceChunk
from gptscope.profiling.records.progress import (
    Bye,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    FailureKind,
    Hello,
    Notice,
    Phase,
    Progress,
    RunFinished,
    RunStarted,
)
from gptscope.profiling.records.quality import (
    LayerErrors,
    ModuleError,
    PromptComparison,
    Quality,
    ScaleHistory,
    ScaleSeries,
)
from gptscope.profiling.records.requests import (
    AskCapabilities,
    Cancel,
    FetchModel,
    InspectModel,
    MeasurePeaks,
    Shutdown,
    StartExperiment,
)
from gptscope.profiling.records.steps import GeneratedText, MemoryPeak, SliceDone, StepKind, StepSamples
from gptscope.profiling.records.telemetry import CpuSample, GpuSample, Telemetry
from gptscope.profiling.records.tuning import Calibrate, Calibrated, FineTune, FineTuned, TextScore
from gptscope.profiling.records.unions import Command, Record, WorkerRecord
from gptscope.profiling.records.worker import (
    CommandDone,
    EvaluateWindow,
    ForcedGaps,
    ForceTokens,
    GreedyPrompt,
    GreedyTokens,
    Leave,
    LoadVariant,
    Logits,
    MapLayers,
    RecordProfile,
    RunSlice,
    WarmUp,
)

__all__ = [
    "SCHEMA_VERSION",
    "AskCapabilities",
    "Bye",
    "Calibrate",
    "Calibrated",
    "Cancel",
    "Capabilities",
    "Command",
    "CommandDone",
    "Compiled",
    "CpuSample",
    "EvaluateWindow",
    "EvidenceItem",
    "EvidenceReport",
    "ExperimentFinished",
    "ExperimentStarted",
    "Failure",
    "FailureKind",
    "FetchModel",
    "FineTune",
    "FineTuned",
    "ForceTokens",
    "ForcedGaps",
    "GeneratedText",
    "GpuSample",
    "GreedyPrompt",
    "GreedyTokens",
    "Hello",
    "InspectModel",
    "KernelRow",
    "LayerErrors",
    "Leave",
    "LeverInfo",
    "LeverOptionInfo",
    "LoadVariant",
    "Logits",
    "MachineInfo",
    "MapLayers",
    "MeasurePeaks",
    "MemoryPeak",
    "Message",
    "ModelFetched",
    "ModelInfo",
    "ModelInspected",
    "ModelLoaded",
    "ModuleError",
    "Notice",
    "OperatorRow",
    "Peaks",
    "Phase",
    "Profile",
    "Progress",
    "PromptComparison",
    "Quality",
    "Record",
    "RecordProfile",
    "RunFinished",
    "RunSlice",
    "RunStarted",
    "ScaleHistory",
    "ScaleSeries",
    "Shutdown",
    "SliceDone",
    "StartExperiment",
    "StepKind",
    "StepSamples",
    "Telemetry",
    "TextScore",
    "TraceChunk",
    "WarmUp",
    "WorkerRecord",
]
