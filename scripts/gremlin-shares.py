"""Compares a run of TinkerPop's suite with the shares of scenarios that must pass: gremlin-shares.py RESULTS.jsonl

A scenario passes if its results are right and every number has the right type. Scenarios that the runner leaves out do not
count. Every failure must be an answer: a wrong result or an error, never silence or bytes that the driver cannot read.
"""

import json
import sys

SHARES = {
    "reads": (0.95, {"read", "repeat", "group", "lists", "semantics"}),
    "writes": (0.90, {"write"}),
    "types and functions": (0.80, {"types", "scalar"}),
}


def main(path):
    with open(path) as lines:
        rows = [row for row in map(json.loads, lines) if "summary" not in row]
    is_missed = not rows
    for name, (wanted, classes) in SHARES.items():
        asked = [row for row in rows if row["class"] in classes and row["result"] != "skip"]
        passed = [row for row in asked if row["result"] == "pass" and row["strict"]]
        share = len(passed) / len(asked) if asked else 0
        print(f"{name}: {len(passed)} of {len(asked)} pass, {share:.1%}; at least {wanted:.0%} must")
        is_missed |= share < wanted
    for row in rows:
        if row["result"] == "fail" and row.get("kind") in ("silent", "unreadable"):
            print(f"{row['kind']}: {row['feature']}: {row['scenario']}")
            is_missed = True
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
