"""torch.compile: traces the model and writes fused kernels for it."""

from gptscope.models.fusion.lever import Fusion
from gptscope.models.levers import Evidence, LeverContext, ProfileFacts


class Compile(Fusion):
    """Graph compilation."""

    name = "compile"
    title = "torch.compile"
    summary = "Traces the model and generates fused kernels for it; costs tens of seconds before the first step."
    part_of_all = False

    def machine_reason(self, context: LeverContext) -> str | None:
        if context.machine.device == "cpu" and context.machine.compiler is None:
            return (
                "torch.compile needs a working C++ compiler, and none was found. Install one, e.g. the package g++ "
                "(Debian, Ubuntu) or the Xcode command line tools (macOS)."
            )
        return None

    def evidence(self, facts: ProfileFacts, context: LeverContext) -> Evidence:
        del context
        regions = facts.counters.get("compiled_regions", 0.0)
        return self.seen(regions > 0, f"{regions:.0f} compiled regions.")
