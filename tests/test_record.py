"""tools/record.py: what changed is found, and what did not is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "tools"
ROWS = "chain of 3 | mass_matrix[crba]"  # three of them
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {tools!r})
import record
raise SystemExit(record.main(sys.argv[1:], Path({path!r})))
"""


def run(path: Path, command: str) -> tuple[int, str]:
    text = RUN.format(tools=str(TOOLS), path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", text, command, f"ROWS={ROWS}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_record_tells_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    code, said = run(path, "record")
    assert code == 0, said
    rows = json.loads(path.read_text())
    assert list(rows) == [f"{ROWS} | {x}" for x in ("plain", "status", "float32", "vjp")]
    assert all(row["count"] > 0 and row["ns"] > 0 and "digest" in row for row in rows.values())
    # an old record of other numbers, another count, and bits alone
    plain, status, single, _ = rows.values()
    plain["numbers"][0] *= 1.001
    plain["digest"] = single["digest"] = "other"
    status["count"] += 1
    path.write_text(json.dumps({**rows, f"{ROWS} | former": plain}))
    code, said = run(path, "compare")
    assert code == 1, said
    assert "| plain" in said and "result: off by" in said
    assert f"operations: {status['count']} -> {status['count'] - 1}" in said
    assert "bits: off by 0, within" in said
    assert f"{ROWS} | former" in said and "  gone: there is no such row any more" in said
    assert "3 changed results, counts or errors" in said


CHANGES = """
import sys
sys.path.insert(0, {tools!r})
import numpy as np, record

def row(numbers):
    return {{"digest": str(numbers.tolist()), "size": 1.0, "tolerance": 1e-9,
            "numbers": record._some(numbers)}}

before = np.random.default_rng(0).uniform(-1, 1, 1000)
before[7] = np.nan
for k in range(8, 1000, 31):
    after = before.copy()
    after[k] += 0.01
    (bad, said), = record.differences(row(before), row(after))
    near_nan = record._some(after)[0] is None and k < 15  # in one sum with it
    assert near_nan or bad >= 1000, (k, said)
after = before.copy()
after[500] = np.inf
(bad, said), = record.differences(row(before), row(after))
assert bad >= 1000 and "not finite" in said, said
"""


def test_one_changed_number_of_a_long_result_is_found() -> None:
    subprocess.run([sys.executable, "-c", CHANGES.format(tools=str(TOOLS))], check=True)
