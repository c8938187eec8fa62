import msgspec
import numpy as np
import pytest
from tests_app_streams import CAPABILITIES, PEAKS, profile

from gptscope.app.viewmodels.charts import roofline
from gptscope.app.viewmodels.columns import sizes
from gptscope.app.viewmodels.fuzzy import best_matches
from gptscope.app.viewmodels.help_texts import help_for, help_texts
from gptscope.app.viewmodels.history_table import history_table
from gptscope.app.viewmodels.inspect_kernel import find, kernel_lines
from gptscope.app.viewmodels.kernel_match import baseline_ms, row_key, shown_name
from gptscope.app.viewmodels.kernel_table import kernel_table, module_table, starred
from gptscope.app.viewmodels.machine_facts import machine_facts
from gptscope.app.viewmodels.tables import Column, Table, as_tsv, filtered_rows, sorted_rows, total_of
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import KernelRow, Profile
from gptscope.profiling.store.entries import Headline, RunEntry


def numbers(*values: float) -> Table:
    column = Column(title="n", values=np.array(values), text=lambda i: str(values[i]), look="number")
    return Table(columns=(column,), rows=len(values))


def test_numbers_sort_by_value_and_unknown_ones_stay_last() -> None:
    table = numbers(3, float("nan"), 10, 2)
    rows = np.arange(4)
    assert sorted_rows(table, 0, rows, descending=False).tolist() == [3, 0, 2, 1]
    assert sorted_rows(table, 0, rows, descending=True).tolist() == [2, 0, 3, 1]


def test_the_filter_wants_every_word() -> None:
    table = Table(columns=(), rows=2, searched=["gemm qkv", "gemm down"])
    assert filtered_rows(table, "QKV gem").tolist() == [0]
    assert filtered_rows(table, "").tolist() == [0, 1]
    assert filtered_rows(table, "absent").size == 0


def test_kernel_columns_are_per_token_with_peak_and_baseline() -> None:
    table = kernel_table(profile("a"), profile("b", scale=2.0), PEAKS, "decode")
    titles = [column.title for column in table.columns]
    assert titles[:6] == ["Kernel", "Category", "Module", "Calls", "Self ms", "Share of token"]
    row = {column.title: column.text(0) for column in table.columns}
    assert (row["Calls"], row["Self ms"], row["Base ms"], row["Speedup"]) == ("30", "5.31", "10.6", "2.00x")
    assert (row["MB per call"], row["GB/s"], row["of peak"]) == ("3.54", "20.0", "42 %")
    assert table.footer[0] == "10 kernels, 12 profiled tokens"
    assert "Base ms" not in [column.title for column in kernel_table(profile("a"), None, PEAKS, "decode").columns]


def test_without_a_profile_the_tables_say_what_will_be_there() -> None:
    assert kernel_table(None, None, None, "decode").rows == 0
    assert "press Run" in module_table(None, None, "decode").empty


def test_modules_add_up_to_the_kernels_and_layers_are_together() -> None:
    assert starred("blocks.11.mlp.up") == "blocks.*.mlp.up"
    modules = module_table(profile("a"), None, "decode")
    total = sum(np.asarray(modules.columns[2].values))
    assert abs(total - sum(np.asarray(kernel_table(profile("a"), None, None, "decode").columns[4].values))) < 1e-9


def test_the_inspector_says_na_with_its_reason() -> None:
    whole = profile("a")
    row = find(whole, row_key(whole.kernels[0]))
    assert row is not None
    lines = dict(kernel_lines(row, whole, PEAKS, "decode"))
    assert lines["Of measured peak"] == "42 %"
    assert dict(kernel_lines(row, whole, None, "decode"))["Of measured peak"].startswith("n/a: ")
    assert find(whole, "nonsense") is None


def test_the_speed_of_an_operator_counts_the_time_of_what_runs_inside_it() -> None:
    outer = KernelRow(
        name="aten::linear",
        category="GEMM",
        calls=10,
        self_time_us=100.0,
        total_time_us=1000.0,
        share=0.1,
        bytes=24_000_000,
        flops=12_000_000,
    )
    composite = msgspec.structs.replace(profile("r1"), kernels=(outer,))
    table = kernel_table(composite, None, PEAKS, "decode")
    shown = {column.title: column.text(0) for column in table.columns}
    assert (shown["GB/s"], shown["of peak"]) == ("24.0", "50 %"), "not the 240 GB/s of its self time"
    lines = dict(kernel_lines(outer, composite, PEAKS, "decode"))
    assert lines["Bandwidth, modelled"] == "24.0 GB/s"
    assert lines["Arithmetic"] == "12.0 GFLOP/s"
    assert lines["Of measured peak"].startswith("50 %")
    (dot,) = roofline.build(composite, PEAKS, "bf16").points
    assert dot.y == pytest.approx(12.0)
    assert dot.x == pytest.approx(0.5)
    assert "24.0 GB/s modelled" in dot.label


def test_copied_rows_are_tab_separated_with_a_header() -> None:
    text = as_tsv(numbers(1, 2), [1])
    assert text == "n\n2\n"


def test_an_empty_history_tells_so_and_a_search_without_match_tells_other() -> None:
    assert history_table(()).empty != history_table((), searching=True).empty


def test_history_colours_a_speedup_only_where_the_verdict_says_that_it_is_one() -> None:
    def entry(verdict: str, speedup: float | None) -> RunEntry:
        return RunEntry(
            run_id=verdict, experiment_id="e", position=1, name="", model="bundled", workload=Workload(),
            variant=Variant(), command="", created_unix_ns=1, finished_unix_ns=2, outcome="done",
            headline=Headline(speedup=speedup, verdict=verdict), tags=(), notes="", deleted_unix_ns=None, trace=None,
        )  # fmt: skip

    told = [("No real difference", 1.36), ("Faster, same output", 1.36), ("Slower", 0.5), ("", 1.36), ("Slower", None)]
    column = history_table(tuple(entry(*one) for one in told)).columns[3]
    assert column.tone is not None
    assert [column.tone(row) for row in range(5)] == ["", "good", "bad", "", ""]


def test_every_term_is_explained_in_one_or_two_sentences() -> None:
    assert len(help_texts()) >= 25
    for key, entry in help_texts().items():
        assert entry.title, key
        sentences = entry.text.count(". ") + entry.text.endswith(".")
        assert 1 <= sentences <= 3, f"{key}: {entry.text}"
    assert help_for("no such key") == ""


def test_the_terms_of_traces_are_explained() -> None:
    from gptscope.profiling.trace.analysis.gaps import CAUSES, UNKNOWN

    told = " ".join(
        f"{entry.title} {entry.text}" for entry in help_texts().values() if "(trace)" in entry.title
    ).lower()
    for term in (*(cause for cause in CAUSES if cause != UNKNOWN), "exposed", "self time", "busy", "occupancy", "idle"):
        assert term in told, term


def test_every_card_has_its_help() -> None:
    from gptscope.app.viewmodels.cards import cards

    assert all(help_for(card.help) for card in cards(None, None))


def test_machine_facts_say_what_is_missing_and_why() -> None:
    assert machine_facts(None, None)[0].state == "later"
    facts = {fact.name: fact for fact in machine_facts(CAPABILITIES, None)}
    assert facts["GPU"].text == "n/a: no NVIDIA driver found"
    assert facts["Memory bandwidth"].action == "Measure"
    assert facts["TF32"].state == "no"
    assert "48.0 GB/s" in {f.name: f for f in machine_facts(CAPABILITIES, PEAKS)}["Memory bandwidth"].text


def test_finding_prefers_words_over_letters() -> None:
    items = ["Theme dark", "Run the demo", "Remove baseline"]
    assert best_matches("demo", items, str)[0] == "Run the demo"
    assert best_matches("rtd", items, str) == ["Run the demo"]
    assert best_matches("", items, str) == items
    assert best_matches("zzz", items, str) == []


def kernel(name: str, module: str, shapes: str, us: float = 10.0, label: str = "") -> KernelRow:
    return KernelRow(
        name=name,
        category="GEMM",
        calls=1,
        self_time_us=us,
        total_time_us=us,
        share=1,
        module=module,
        input_shapes=shapes,
        label=label,
    )


def test_no_time_of_the_baseline_is_given_to_two_kernels() -> None:
    ours = [kernel("mm", "up", "1"), kernel("mm", "up", "2"), kernel("mm", "down", "9"), kernel("new", "", "")]
    theirs = msgspec.structs.replace(
        profile("b", steps=1),
        kernels=(kernel("mm", "up", "1", 4000), kernel("mm", "up", "3", 2000), kernel("mm", "down", "7", 1000)),
    )
    assert baseline_ms(ours, theirs) == [4.0, None, 1.0, None]
    assert baseline_ms(ours, None) == [None] * 4


def test_a_kernel_is_called_by_its_label_else_without_namespaces() -> None:
    assert shown_name(kernel("aten::mm", "", "", label="mlp.down, bf16 GEMV")) == "mlp.down, bf16 GEMV"
    assert shown_name(kernel("aten::mm", "", "")) == "mm"


def test_products_of_another_precision_and_fusion_stand_beside_those_of_the_same_part_of_the_model() -> None:
    def product(name: str, module: str, us: float) -> KernelRow:
        return KernelRow(
            name=name,
            category="GEMM",
            calls=4,
            self_time_us=us,
            total_time_us=us,
            share=0.1,
            module=f"blocks.*.{module}",
        )

    plain = tuple(product("aten::mm", f"attn.qkv.{part}", 100.0) for part in "qkv")
    plain += (product("aten::mm", "mlp.down", 50.0),)
    norm = KernelRow(name="aten::mean", category="norm", calls=4, self_time_us=9.0, total_time_us=9.0, share=0.1)
    baseline = Profile(
        run_id="b", steps=2, overhead=1.0, wall_us=400.0, busy_us=400.0, kernels=(*plain, norm), device="cpu"
    )
    packed = "mkldnn::_linear_pointwise"
    rows = (
        product(packed, "attn.qkv.proj", 40.0),
        product("aten::copy_product", "attn.qkv.proj", 5.0),
        product(packed, "mlp.down", 20.0),
        product(packed, "lm_head", 20.0),
        KernelRow(name="aten::rms_norm", category="norm", calls=4, self_time_us=3.0, total_time_us=3.0, share=0.1),
    )
    found = baseline_ms(rows, baseline)
    assert found == [pytest.approx(0.15), None, pytest.approx(0.025), None, None], (
        "each time once, and only where the work is the same"
    )


@pytest.mark.parametrize(
    ("values", "title", "texts", "total"),
    [
        ([40, None, 12], "Moved B", ["40", "n/a", "12"], "52"),
        ([1_500, 20], "Moved kB", ["1.50", "0.0200"], "1.52"),
        ([2_500_000_000, 8], "Moved GB", ["2.50", "8.00e−9"], "2.50"),
        ([None], "Moved B", ["n/a"], ""),
        ([], "Moved B", [], ""),
    ],
)
def test_sizes_are_in_the_unit_of_the_largest(
    values: list[int | None], title: str, texts: list[str], total: str
) -> None:
    column = sizes("Moved", values, adds=True)
    assert column.title == title
    assert [column.text(row) for row in range(len(values))] == texts
    assert total_of(column) == total
