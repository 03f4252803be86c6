"""docs/results/peers.md: other programs on the rows that they can express."""

import csv
import importlib
import json
import logging
import pathlib
import statistics
import subprocess
import sys
import time

from .llm_tables import FOLDER, PROTOCOLS
from .measured_tables import what_was_chosen
from .pages import Missing, Page, filled, percentile, table

INTRODUCTION = """
Rows that llm-analysis 0.2.2 can express (efficiency 0.5, its README's assumption; it has no
communication), and those of GPT's layer, for Calculon (a part of its sources, its system files; no
vocabularies, no flash attention). trainfare's are [as shipped, mostly chosen in sight of
them](llm.md). A µs is the processor's, of one prediction; trainfare's are `trainfare_benchmark`'s,
where it is built ([what an answer costs](cost.md)). What NeuSight publishes of itself stands [on
another page](baselines.md#beside-what-neusight-publishes-of-itself): it is of all its rows, ours
there of those that a table at hand has, so that the two are of different rows.
"""
# Rows without splits of VIA-Research/vTrain, data/ground_truth_single.csv.
VTRAIN = "vtrain_gpt"
ABOUT_VTRAIN = """
Of `{table}` the {count} rows without tensor and pipeline splits, GPT-2's layers on 2 to 8 A100s,
[as shipped](tables.md). Which A100, and how many words, is not stated: trainfare reads it as that
of 40 GB, the others have that of 80 GB here, whose memory is faster; llm-analysis has as many words
as trainfare assumes, {words:,}. Calculon finds {too_large} too large.
"""
GPT_WORDS = 50257  # kGptVocabulary of calibrate/records/import/table_model.cc
# MooreThreads/SimuMax, docs/b200/b200_release_v1.2_summary.md: its runs; the mean and
# the worst of its errors in time, and in memory.
OF_SIMUMAX = {"of": "43", "mean": "5.6", "worst": "13.5", "memory": "0.46",
              "memory_worst": "1.38"}
ABOUT_SIMUMAX = """
SimuMax has no figure here: no release of it could be installed. Of its {runs} runs in
`llm/simumax_b200` ({rows} rows) {unsplit} are without tensor, pipeline, context and expert splits;
how far off trainfare is of them stands with [divided models](splits.md). Of itself it publishes, of {of} runs on eight B200s, {mean} % in
the mean and {worst} % at worst in time, {memory} and {memory_worst} % in memory.
"""

# The device files that the programs ship, by our names of the devices.
LLM_ANALYSIS = {"a100_sxm4_40gb": "a100-sxm-40gb",
                "a100_sxm4_80gb": "a100-sxm-80gb", "h100_sxm": "h100-sxm-80gb",
                "v100_sxm2_16gb": "v100-sxm-16gb"}
CALCULON = {"a100_sxm4_80gb": "a100_80g", "h100_sxm": "h100_80g_nvl8"}
# llm_analysis/analysis.py, ActivationRecomputation and DSZeRO.
RECOMPUTATION = {"none": 0, "selective": 1, "full": 2}
STAGE = {"fsdp": 3, "fsdp full_shard": 3, "zero3": 3, "zero2": 2, "zero1": 1}
OURS, ASSUMED, GPT = "trainfare", "llm-analysis", "Calculon"


def modules(given, flag, *names):
    """A program's modules, out of the folder that its flag gave."""
    folder = str(given.asked(flag))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as reason:
        raise Missing(f"{folder}: {reason}") from reason


def llm_analysis(given):
    """Seconds of a row's step as llm-analysis has them, with half of the peak:
    its README, "if one has to make assumptions"."""
    analysis, config, logger = modules(
        given, "llm_analysis", "llm_analysis.analysis", "llm_analysis.config",
        "llm_analysis.logger")
    logger.logger.setLevel(logging.CRITICAL)

    def seconds(row, said):
        shape = shape_of(said)
        model = config.ModelConfig(
            name=row["model"], num_layers=shape["layers"],
            n_head=shape["heads"], hidden_dim=shape["hidden"],
            vocab_size=shape["vocab"], max_seq_len=row["sequence_length"],
            num_key_value_heads=shape["kv_heads"],
            ffn_embed_dim=shape["intermediate"],
            expansion_ratio=shape["intermediate"] / shape["hidden"])
        answer = analysis.LLMAnalysis(
            model, config.get_gpu_config_by_name(LLM_ANALYSIS[row["device"]]),
            config.DtypeConfig(),
            config.ParallelismConfig(dp_size=row["devices"]),
            flops_efficiency=0.5).training(
                batch_size_per_gpu=row["batch"],
                gradient_accumulation_steps=row["accumulation"],
                global_batch_size=global_batch(row),
                seq_len=row["sequence_length"],
                activation_recomputation=analysis.ActivationRecomputation(
                    RECOMPUTATION[said["recompute"]]),
                ds_zero=analysis.DSZeRO(STAGE.get(said["sharding"], 0)))
        return answer["latency_per_iter"]

    return seconds


def calculon(given):
    """Seconds of a row's step as Calculon has them, None where it has no device
    or layer for it; and the rows that it finds too large.

    Its check of the capacity is answered afterwards, by the need that it says:
    rows did run, and their time does not depend on the capacity.
    """
    system, llm = modules(given, "calculon", "calculon.system",
                          "calculon.llm.llm")
    systems, capacity, too_large = {}, {}, set()
    for device, name in CALCULON.items():
        said_of = json.loads(
            (given.calculon / f"systems/{name}.json").read_text())
        capacity[device] = said_of["mem1"]["GiB"] * 1024**3
        said_of["mem1"]["GiB"] = sys.maxsize
        systems[device] = system.System(said_of)
    silent = logging.getLogger("calculon")

    def seconds(row, said):
        # Two products in the feed-forward part; keys of all heads or of one.
        shape = shape_of(said)
        if (row["device"] not in CALCULON
                or not row["model"].startswith(("gpt", "mpt"))
                or shape["kv_heads"] not in (1, shape["heads"])):
            return None
        job = llm.Llm(llm.Llm.Application({
            "hidden": shape["hidden"], "feedforward": shape["intermediate"],
            "seq_size": row["sequence_length"], "attn_heads": shape["heads"],
            "attn_size": shape["hidden"] // shape["heads"],
            "num_blocks": shape["layers"]}), silent)
        job.compile(systems[row["device"]], llm.Llm.Execution.from_json(
            execution(row, said, shape["kv_heads"] == 1)))
        job.run(systems[row["device"]])
        if job.get_mem_tier1_cap_req() > capacity[row["device"]]:
            too_large.add(row["label"])
        return job.get_total_time()

    return seconds, too_large


def execution(row, said, one_key):
    """Calculon's description of a row, the rest as in the files of its
    examples/ and validation/, which overlap nothing of data parallelism. A
    sharded optimizer is what it has nearest to sharded weights; network 0 is
    inside a host."""
    several = row["devices"] > 1
    return {
        "num_procs": row["devices"], "tensor_par": 1, "pipeline_par": 1,
        "data_par": row["devices"], "tensor_par_net": 0, "pipeline_par_net": 1,
        "data_par_net": 0 if row["devices"] <= 8 else 1,
        "batch_size": global_batch(row), "microbatch_size": row["batch"],
        "datatype": "float16", "fused_activation": False,
        "attention_type": "multiquery" if one_key else "multihead",
        "activation_recompute": {"selective": "attn_only"}.get(
            said["recompute"], said["recompute"]),
        "pipeline_interleaving": 1,
        "optimizer_sharding": several and said["sharding"] in STAGE,
        "tensor_par_comm_type": "ar", "tensor_par_overlap": "none",
        "seq_par_ag_redo": False, "data_par_overlap": False,
        "weight_offload": False, "activations_offload": False,
        "optimizer_offload": False, "training": True}


def shape_of(said):
    shape = {key: int(said[key]) for key in
             ("hidden", "layers", "heads", "intermediate", "vocab")}
    return {**shape, "kv_heads": int(said["kv_heads"] or shape["heads"])}


def global_batch(row):
    return row["batch"] * row["accumulation"] * row["devices"]


def expressible(row, said):
    """Whether llm-analysis has words for a row."""
    return (row["device"] in LLM_ANALYSIS
            and row["precision"] in ("bf16", "fp16")
            and said["adapter"] == "none" and not said["experts"]
            and said["recompute"] in RECOMPUTATION and said["intermediate"])


def rows_of(given):
    """A table's name, what `validate` says of a row, and the row itself."""
    for name, _ in what_was_chosen(given.tables):
        if not name.startswith(FOLDER):
            continue
        path = given.tables / f"{name}.csv"
        try:
            answer = given.program.json("validate", str(path), "--protocol",
                                        PROTOCOLS[0])
        except SystemExit:
            continue  # untouched.md says which tables have no row, and why
        with open(path, encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        for row in answer["rows"]:
            said = lines[int(row["label"].rsplit(":", 1)[1]) - 2]
            if expressible(row, said):
                yield name[len(FOLDER):], row, said


def vtrain_rows(given):
    """The same of the rows that are not split; in the words of the other
    tables, and with a device that the other programs have."""
    path = given.tables / f"{VTRAIN}.csv"
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for row in given.program.json("validate", str(path))["rows"]:
        said = lines[int(row["label"].rsplit(":", 1)[1]) - 2]
        full = "full recomputation" in said["stack_notes"]
        yield VTRAIN, {**row, "device": "a100_sxm4_80gb"}, {
            **said, "vocab": said["vocab"] or GPT_WORDS, "kv_heads": "",
            "sharding": "none", "recompute": "full" if full else "none"}


def microseconds(seconds, rows):
    """The processor's, of one prediction: the median over rows, each the best
    of several."""
    each = []
    for _, row, said in rows:
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            seconds(row, said)
            best = min(best, time.process_time() - start)
        each.append(1e6 * best)
    return f"{statistics.median(each):.0f}"


def our_microseconds(given):
    """An estimate of a decoder on sharded devices, by the benchmark that is
    built beside the program."""
    beside = pathlib.Path(given.program.path).with_name("trainfare_benchmark")
    if not beside.exists():
        return "-"
    done = subprocess.run(
        [beside, "--benchmark_filter=EstimateOneJob/8b_fsdp",
         "--benchmark_repetitions=7", "--benchmark_format=json"],
        capture_output=True, text=True, check=True,
        env=given.program.environment())
    return next(f"{one['cpu_time']:.0f}"
                for one in json.loads(done.stdout)["benchmarks"]
                if one.get("aggregate_name") == "median")


def errors_of(rows, seconds):
    """In percent of what was measured, with their signs."""
    return [100 * (seconds[row["label"]] / row["measured_s"] - 1)
            for _, row, _ in rows]


def summary(tool, rows, seconds, speed):
    errors = errors_of(rows, seconds)
    sizes = list(map(abs, errors))
    return [str(len(rows)), tool, f"{statistics.mean(sizes):.1f}",
            f"{statistics.median(sizes):.1f}",
            f"{percentile(sizes, 0.9):.1f}", f"{max(sizes):.0f}",
            f"{statistics.median(errors):+.1f}", *speed]


def by_table(rows, predicted, tools):
    """Median error of each table and device."""
    groups = {}
    for one in rows:
        groups.setdefault((one[0], one[1]["device"]), []).append(one)
    for names, some in sorted(groups.items()):
        cells = []
        for tool in tools:
            known = [one for one in some if one[1]["label"] in predicted[tool]]
            errors = map(abs, errors_of(known, predicted[tool]))
            part = "" if len(known) == len(some) else f"; {len(known)}"
            cells.append(f"{statistics.median(errors):.1f}{part}"
                         if known else "-")
        yield [*names, str(len(some)), *cells]


def about_simumax(given):
    """How its rows are split, and what it says of itself."""
    path = given.tables / FOLDER / "simumax_b200.csv"
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    unsplit = sum(all(one[split] == "1" for split in ("tp", "pp", "cp", "ep"))
                  for one in lines)
    return filled(ABOUT_SIMUMAX.format(
        rows=len(lines), unsplit=unsplit, **OF_SIMUMAX,
        runs=sum(one["metric"] == "step_s" for one in lines)).strip())


def predictions(rows, asked):
    """Seconds by program and label; of others than ours where they have any."""
    predicted = {OURS: {row["label"]: row["predicted_s"]
                        for _, row, _ in rows}}
    for tool, seconds in asked.items():
        found = {row["label"]: seconds(row, said) for _, row, said in rows}
        predicted[tool] = {label: s for label, s in found.items()
                           if s is not None}
    return predicted


HEADER = ["rows", "program", "mean, %", "median, %", "90 % below, %",
          "worst, %", "bias, %"]


def of_vtrain(given, asked, too_large):
    rows = list(vtrain_rows(given))
    before = len(too_large)
    predicted = predictions(rows, asked)
    return [
        "\n## Data parallel GPT\n",
        filled(ABOUT_VTRAIN.format(
            table=VTRAIN, count=len(rows), words=GPT_WORDS,
            too_large=len(too_large) - before).strip()) + "\n",
        *table(HEADER, "rlrrrrr",
               [summary(tool, rows, predicted[tool], ())
                for tool in predicted]), "",
        *table(["batch of a device", "rows", *predicted], "rrrrr",
               [[str(batch), str(len(some)),
                 *(f"{statistics.mean(errors_of(some, predicted[tool])):+.1f}"
                   for tool in predicted)]
                for batch, some in by_batch(rows)]),
        "\nThe second table has means with their signs."]


def by_batch(rows):
    batches = sorted({row["batch"] for _, row, _ in rows})
    return [(batch, [one for one in rows if one[1]["batch"] == batch])
            for batch in batches]


def body(given):
    gpt_seconds, too_large = calculon(given)
    asked = {ASSUMED: llm_analysis(given), GPT: gpt_seconds}
    rows = list(rows_of(given))
    predicted = predictions(rows, asked)
    shared = [one for one in rows if one[1]["label"] in predicted[GPT]]
    speed = {OURS: our_microseconds(given),
             **{tool: microseconds(seconds, shared)
                for tool, seconds in asked.items()}}
    lines = [summary(tool, some, predicted[tool], [speed[tool]])
             for some in (rows, shared) for tool in predicted
             if some is shared or tool != GPT]
    return [
        *table([*HEADER, "µs"], "rlrrrrrr", lines),
        f"\nCalculon finds {len(too_large)} too large. "
        "Medians; with a semicolon, of so many rows:\n",
        *table(["table", "device", "rows", *predicted], "llrrrr",
               by_table(rows, predicted, list(predicted))),
        *of_vtrain(given, asked, too_large),
        "\n## Not here\n", about_simumax(given)]


PAGES = [Page("peers", "Other programs on the same rows", INTRODUCTION, body,
              needs_tables=True,
              takes=" --llm-analysis FOLDER --calculon FOLDER")]
