"""The three unions that frames are decoded as."""

from gptscope.profiling.records.machine import Capabilities, Peaks
from gptscope.profiling.records.model import Compiled, ModelFetched, ModelInspected, ModelLoaded, ModelSaved
from gptscope.profiling.records.profile import EvidenceReport, Profile, TraceChunk
from gptscope.profiling.records.progress import (
    Bye,
    ExperimentFinished,
    ExperimentStarted,
    Failure,
    Hello,
    Notice,
    Progress,
    RunFinished,
    RunStarted,
)
from gptscope.profiling.records.quality import LayerErrors, Quality, ScaleHistory, SeedLosses
from gptscope.profiling.records.requests import (
    AskCapabilities,
    Cancel,
    FetchModel,
    InspectModel,
    MeasurePeaks,
    SaveModel,
    Shutdown,
    StartExperiment,
)
from gptscope.profiling.records.steps import GeneratedText, MemoryPeak, SliceDone, StepSamples
from gptscope.profiling.records.telemetry import Telemetry
from gptscope.profiling.records.tuning import Calibrate, Calibrated, FineTune, FineTuned
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
    TrainSeed,
    WarmUp,
)

Record = (
    Hello
    | Capabilities
    | ExperimentStarted
    | RunStarted
    | Progress
    | Notice
    | ModelLoaded
    | Compiled
    | StepSamples
    | GeneratedText
    | SliceDone
    | MemoryPeak
    | Telemetry
    | Profile
    | EvidenceReport
    | TraceChunk
    | Peaks
    | Quality
    | LayerErrors
    | ScaleHistory
    | SeedLosses
    | Failure
    | RunFinished
    | ExperimentFinished
    | ModelInspected
    | ModelFetched
    | ModelSaved
    | FineTuned
    | Calibrated
    | Bye
)


Command = (
    StartExperiment
    | Cancel
    | AskCapabilities
    | MeasurePeaks
    | InspectModel
    | FetchModel
    | FineTune
    | Calibrate
    | SaveModel
    | Shutdown
    | LoadVariant
    | WarmUp
    | RunSlice
    | RecordProfile
    | EvaluateWindow
    | GreedyPrompt
    | ForceTokens
    | MapLayers
    | TrainSeed
    | Leave
)


WorkerRecord = Record | CommandDone | Logits | GreedyTokens | ForcedGaps
