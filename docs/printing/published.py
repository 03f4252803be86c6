"""docs/results/validation_published.md: `validate scenarios/published/`."""

from .pages import Page, ROOT, filled, table

FOLDER = "scenarios/published/"
INTRODUCTION = """
    trainfare validate scenarios/published/ [--format json|csv|markdown]

[Printed figures](../guide/published.md) beside what ships, and beside a fit that has seen no figure
of the run or its twin (*left out*). What is in percent, in points, and right or wrong has a line
each; a row of a group is in one of them. [What misses, and why](../models/misses.md).

- *seen*: rows of runs that made the shipped fit, or are held against one that did, so no test
- *free*: parameters that the fits determine
- *chosen*: whether the model's form (yes) or priors were chosen in sight of the rows
- *errors*: median and worst; where a document states all that moves a row for some rows and not
  for others, in brackets those of the stated rows alone, and how many they are
- *limits*: of median and worst in percent; *all*: nothing of it wrong, where its group has a limit
- *inside*: rows inside their 80 % interval
"""


def errors_of(group):
    """Median and worst, those of the rows without an assumption in brackets."""
    unit = "pt" if group["measure"] == "points" else "%"
    said = []
    if group["n"]:
        text = f"{group['median']:.1f}, {group['max']:.1f} {unit}"
        stated = group["stated"]
        if 0 < stated["n"] < group["n"]:
            text += (f" ({stated['median']:.1f}, {stated['max']:.1f} of "
                     f"{stated['n']})")
        said.append(text)
    if group["judged"]:
        said.append(f"{group['right']} of {group['judged']} right")
    if group["refused"]:
        said.append(f"{group['refused']} refused")
    return "; ".join(said) or "-"


def verdict_of(line):
    """The line's limits of median and worst, or all, and whether they are met."""
    asked = line["asked"]
    if asked is None:
        return "-"
    percent = [asked["median_percent"], asked["worst_percent"]]
    said = []
    if percent != [None, None]:
        said += ["-" if most is None else f"{most:g}" for most in percent]
    if asked["all_right"]:
        said.append("all")
    if asked["all_inside"]:
        said.append("all inside")
    if not said:
        said = ["none refused"]
    return f"{', '.join(said)}: {'met' if line['met'] else 'missed'}"


def inside_of(group):
    if not group["with_interval"]:
        return "-"
    return f"{group['inside_interval']} of {group['with_interval']}"


def row_of(group, known):
    """A group's row; `known`: what stands between its count and its errors."""
    return [group["title"], str(group["n"] + group["judged"]), *known,
            errors_of(group), verdict_of(group), inside_of(group)]


def tables_of(groups):
    """As shipped, and left out: a row a group."""
    shipped, left_out = ([g for g in groups if g["protocol"] == protocol]
                         for protocol in ("as-shipped", "leave-one-out"))
    return [
        "## As shipped\n",
        *table(["group", "rows", "seen", "free", "chosen", "errors", "limits",
                "inside"], "lrrrllll",
               [row_of(g, [str(g["seen_by_fit"]), str(g["free_parameters"]),
                           g["chosen_on_these_rows"]])
                for g in shipped]),
        "\n## Left out\n",
        *table(["group", "rows", "free", "chosen", "errors", "limits",
                "inside"], "lrrllll",
               [row_of(g, [str(g["free_parameters"]),
                           g["chosen_on_these_rows"]]) for g in left_out])]


def arithmetic(checks):
    wrong = [f"{c['group']} {c['right']} of {c['n']}" for c in checks
             if c["right"] < c["n"]]
    return (f"Arithmetic on printed figures, which is no prediction: "
            f"{sum(c['right'] for c in checks)} of "
            f"{sum(c['n'] for c in checks)} to the printed digits"
            + (f" ({', '.join(wrong)})." if wrong else "."))


def stated(rows):
    """How many predicted rows are of runs of which nothing is assumed."""
    predicted = [row for row in rows if "measure" in row["as-shipped"]
                 and row["as-shipped"]["how"] != "printed figures"]
    whole = sum(not row["inferred"] for row in predicted)
    return (f"Of {len(predicted)} predicted rows {whole or 'none'} "
            f"{'are' if whole > 1 else 'is'} of a run of which nothing is "
            "assumed: model, batch, length, samples, precision, optimizer, "
            "device.")


def intervals(found):
    return "80 % intervals around the figure: " + "; ".join(
        f"{words} {found[name]['inside']} of {found[name]['with_interval']} "
        f"rows, {found[name]['without_interval']} without one"
        for words, name in (("as shipped", "as-shipped"),
                            ("left out", "leave-one-out"))) + "."


def body(given):
    answer = given.program.json("validate", str(ROOT / FOLDER))
    said = given.program.run(["validate", FOLDER, "--format", "markdown"],
                             cwd=ROOT)
    return [filled(said.split("\n", 1)[0] + ".") + "\n",
            filled(intervals(answer["intervals"])) + "\n",
            filled(stated(answer["rows"])) + "\n",
            filled(arithmetic(answer["data_checks"])) + "\n",
            *tables_of(answer["groups"])]


PAGES = [Page("validation_published", "Validation on published figures",
              INTRODUCTION, body)]
