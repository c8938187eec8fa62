from gptscope.app.viewmodels import lever_options as vm
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import LeverInfo, LeverOptionInfo


def option(name: str, kind: str, default: object, **more: object) -> LeverOptionInfo:
    return LeverOptionInfo(name=name, title=name, kind=kind, default=default, summary=f"About {name}.", **more)  # type: ignore[arg-type]


LEVER = LeverInfo(
    name="int8",
    group="precision",
    title="INT8",
    summary="",
    options=(
        option("granularity", "choice", "channel", choices=("channel", "tensor")),
        option("keep", "text", ""),
        option("worst", "whole", 0, least=0),
        option("alpha", "number", 0.5, least=0, most=1),
        option("head", "switch", True),
        option("embedding", "switch", True),
    ),
)


def test_fields_carry_value_default_limits_and_help() -> None:
    variant = Variant(precision="int8", options={"int8": {"alpha": 0.7}})
    found = {field.name: field for field in vm.fields(LEVER, variant)}
    assert (found["alpha"].value, found["alpha"].changed, found["alpha"].least, found["alpha"].most) == (
        0.7,
        True,
        0,
        1,
    )
    assert found["alpha"].tip == "About alpha. From 0 to 1. Default: 0.5."
    assert found["head"].tip == "About head. Default: on."
    assert found["keep"].tip == "About keep. Empty at first."
    assert not found["granularity"].changed
    assert found["granularity"].title == "Granularity"


def test_a_default_is_not_kept_as_a_setting() -> None:
    field = vm.fields(LEVER, Variant())[0]
    changed = vm.with_option(Variant(precision="int8"), field, "tensor")
    assert changed.options == {"int8": {"granularity": "tensor"}}
    assert vm.with_option(changed, field, "channel").options == {}
    assert vm.without_options(changed, "int8").options == {}


def test_changed_settings_are_shown_also_when_most_are_folded_away() -> None:
    variant = Variant(options={"int8": {"embedding": False}})
    shown = vm.shown_first(vm.fields(LEVER, variant), every=False)
    assert [field.name for field in shown] == ["granularity", "keep", "worst", "alpha", "embedding"]
    assert len(vm.shown_first(vm.fields(LEVER, variant), every=True)) == 6


def test_a_lever_that_is_not_there_has_no_settings() -> None:
    assert vm.fields(vm.lever_called(None, "precision", "int8"), Variant()) == ()
