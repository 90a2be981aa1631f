"""The map of the gateway's modules."""

import re
from pathlib import Path

from gateway import edge


def test_the_map_of_the_gateway_names_each_module_once() -> None:
    folder = Path(edge.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    rows = (edge.__doc__ or "").split("\n\n")[-1].splitlines()
    text = " ".join(re.sub(r"\(.*?\)", "", row[12:]) for row in rows)
    named = [word for word in re.findall(r"[\w.]+", text) if "." not in word]
    assert sorted(named) == sorted(modules)
