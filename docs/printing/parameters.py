"""docs/results/parameters.md: parameters beside those that Transformers counts.

What Transformers builds on the meta device is printed once by scripts of tests/,
which need torch; the page needs the program alone.
"""

import json
import pathlib
import re
import tempfile

from .pages import Page, ROOT, filled, table

INTRODUCTION = """
Of each `model_type` that is read and that Transformers has, a `config.json` as its versions save
it (`tests/hardware/files/saved_configs.py`: its class's own values, with few blocks): what it
builds of the file on the meta device, encoders with a classifier of two labels, others with a
language model's head, beside `parameters` of `trainfare predict --model FILE --format json`. And
presets (`trainfare list models`) beside what it builds of each one's `config.json`
(`tests/model/parameter_counts.py`).
"""
# Of Transformers 4 and 5; a type has its row of the newest that has it.
SAVED = [ROOT / "tests/hardware/files/saved_configs.inc",
         ROOT / "tests/hardware/files/saved_configs_5.inc"]
PRESETS = [ROOT / "tests/model/parameter_counts.inc",
           ROOT / "tests/model/parameter_counts_5.inc"]
# A run that any of the files can be asked in: parameters do not depend on it.
RUN = ["--device", "h100_sxm", "--batch", "1", "--length", "128",
       "--samples", "100"]


def counted(path, text):
    """Pairs of a file's array: what stands in `text`'s quotes, and its count."""
    found = re.findall(text + r',\s*(\d+)\}', path.read_text(encoding="utf-8"),
                       re.DOTALL)
    return [(what, int(count)) for what, count in found]


def version(path):
    return re.search(r"Transformers ([\d.]+)\.",
                     path.read_text(encoding="utf-8"))[1]


def of_types(given, path):
    """Type, class, what Transformers counts and what the program says."""
    with tempfile.TemporaryDirectory() as folder:
        for saved, count in counted(path, r'R"\((.*?)\)"'):
            file = pathlib.Path(folder) / "config.json"
            file.write_text(saved, encoding="utf-8")
            answer = given.program.json("predict", "--model", str(file), *RUN)
            config = json.loads(saved)
            yield (config["model_type"], config["architectures"][0], count,
                   answer["scenario"]["parameters"])


def of_presets(given, path):
    """Name, what Transformers counts and what the program says."""
    known = {}
    for row in given.program.json("list", "models")["rows"]:
        for name in [row["model"], *row["aliases"]]:
            known[name] = row["parameters"]
    return [(name, count, known.get(name))
            for name, count in counted(path, r'"([^"]+)"')]


def verdict(what, path, counts):
    """How many are equal; `counts` of a name: theirs, ours."""
    other = [name for name, theirs, ours in counts if ours != theirs]
    names = f": all but {', '.join(other)}" if other else ""
    return (f"{len(counts) - len(other)} of {len(counts)} {what} have exactly "
            f"the parameters of Transformers {version(path)}{names}.")


def body(given):
    types = {path: list(of_types(given, path)) for path in SAVED}
    verdicts = [
        verdict("types", path, [(name, *of) for name, _, *of in rows])
        for path, rows in types.items()
    ] + [verdict("presets", path, of_presets(given, path)) for path in PRESETS]
    newest = {row[0]: row for rows in types.values() for row in rows}
    return [
        filled(" ".join(verdicts)),
        "",
        *table(["type", "class", "Transformers", "trainfare", "apart"],
               "llrrr",
               [[name, of, str(theirs), str(ours), str(ours - theirs)]
                for name, of, theirs, ours in sorted(newest.values())])]


PAGES = [Page("parameters", "Parameters beside Transformers'", INTRODUCTION,
              body)]
