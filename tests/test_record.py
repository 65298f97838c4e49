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
    path.write_text(json.dumps(rows))
    code, said = run(path, "compare")
    assert code == 1, said
    assert "| plain" in said and "result: off by" in said
    assert f"operations: {status['count']} -> {status['count'] - 1}" in said
    assert "bits: off by 0, within" in said
    assert "2 changed results, counts or errors" in said
