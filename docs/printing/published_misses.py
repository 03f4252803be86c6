"""The published figures that are missed: tables for docs/models/misses.md, which
docs/make.py puts in from `validate scenarios/published/`."""

from .pages import ROOT, filled, table

FOLDER = ROOT / "scenarios/published"
PROTOCOLS = ["as-shipped", "leave-one-out"]
PAIR = ("first", "second", "quantity", "table")


def limits_of(answer):
    """The worst error that is asked of a group's rows in percent."""
    return {(group["group"], group["protocol"]): group["asked"]["worst_percent"]
            for group in answer["groups"]
            if group["asked"] and group["asked"]["worst_percent"] is not None}


def misses(row, protocol, limits):
    """Whether that answer is outside its interval, past the limit of its group,
    or on the wrong side of a bound, an outcome or a count."""
    said = row[protocol]
    if "measure" not in said or said["how"] == "printed figures":
        return False
    if said["measure"] in ("percent", "points"):
        past = said["measure"] == "percent" and abs(said["error"]) > limits.get(
            (row["group"], protocol), float("inf"))
        return past or said["covered"] is False
    return not said["right"]


def cell(said):
    if "measure" not in said:
        return "-"
    if said["measure"] not in ("percent", "points"):
        return "right" if said["right"] else "wrong"
    unit = "%" if said["measure"] == "percent" else "pt"
    return (f"{said['error']:+.1f} {unit}"
            + (", outside" if said["covered"] is False else ""))


def rows_that_miss(answer):
    limits = limits_of(answer)
    return [[f"`{row['label']}`", *(cell(row[p]) for p in PROTOCOLS)]
            for row in answer["rows"]
            if any(misses(row, p, limits) for p in PROTOCOLS)]


def orders_that_are_wrong(answer):
    """Pairs whose order is wrong by either protocol: the one that was printed
    as the lesser first, and how far off the run time of each is."""
    wrong = {}
    for order in answer["orders"]:
        if not order["right"]:
            pair = tuple(order[key] for key in PAIR)
            wrong.setdefault(pair, {})[order["protocol"]] = order
    rows = {row["label"]: row for row in answer["rows"]}

    def of(label, protocol):
        error = rows[label][protocol]["error"]
        return f"{round(error):+d}" if round(error) else "0"

    def cell_of(order):
        return ", ".join(of(order[key], order["protocol"])
                         for key in ("first_row", "second_row"))

    return [[f"`{first}`", f"`{second}`",
             "time" if quantity == "run_time" else quantity,
             *(cell_of(orders[p]) if p in orders else "right"
               for p in PROTOCOLS)]
            for (first, second, quantity, _), orders in sorted(wrong.items())]


def limits_missed(answer):
    """The groups that miss a limit, and by how much."""
    missed = {}
    for group in answer["groups"]:
        of = missed.setdefault(group["title"], {})
        if group["met"] is False:
            of.setdefault(group["protocol"], []).append(
                ", ".join(group["missed"]))
    return [[title, *("; ".join(of.get(p, ["-"])) for p in PROTOCOLS)]
            for title, of in missed.items() if of]


def widest(answer):
    """The answer as shipped whose interval is the widest."""
    def width(row):
        said = row[PROTOCOLS[0]]
        return (said["predicted_high"] / said["predicted_low"]
                if said.get("covered") is not None else 0)
    row = max(answer["rows"], key=width)
    return f"The widest is {width(row):,.0f} times wide, of `{row['label']}`."


def coverage(answer):
    """The rows behind fits and the others, apart: what they have inside."""
    def of(seen, protocol):
        rows = [row for row in answer["rows"]
                if row[protocol].get("covered") is not None
                and row[protocol]["how"] != "printed figures"
                and row["as-shipped"]["seen_by_fit"] == seen]
        return sum(row[protocol]["covered"] for row in rows), len(rows)
    whole = {p: answer["intervals"][p] for p in PROTOCOLS}
    shipped, left_out = (
        f"{w['inside']} of {w['with_interval']} rows "
        f"({100 * w['inside'] / w['with_interval']:.0f} %)"
        for w in whole.values())
    seen, unseen = of(True, PROTOCOLS[0]), of(False, PROTOCOLS[0])
    return filled(
        f"80 % intervals hold {shipped} as shipped and {left_out} left out, "
        f"for 72 to 88 %. As shipped {seen[1]} rows are of runs that made the "
        f"fits, {seen[0]} of these inside: the interval is for a run that was "
        f"not measured. Of the other {unseen[1]} it holds {unseen[0]}. "
        + widest(answer))


def lines(program):
    answer = program.json("validate", str(FOLDER))
    return [coverage(answer), "",
            *table(["limits missed", "as shipped", "left out"], "lll",
                   limits_missed(answer)), "",
            *table(["row", "as shipped", "left out"], "lrr",
                   rows_that_miss(answer)), "",
            *table(["printed first", "second", "by", "as shipped", "left out"],
                   "lllrr", orders_that_are_wrong(answer))]
