"""The file of benchmarks keeps what was not measured anew."""

from tests.bench.run import HEAD, SECTIONS, document

TITLES = {name: f"## {title}" for name, (title, _) in SECTIONS.items()}


def text(name: str, figure: str) -> str:
    return f"{TITLES[name]}\n\n{figure}\n"


def test_a_fresh_section_replaces_its_older_text_and_no_other() -> None:
    before = document("", {"solver": text("solver", "old"), "router": text("router", "kept")})
    after = document(before, {"solver": text("solver", "new")})
    assert after == "\n".join([HEAD, text("solver", "new"), text("router", "kept")])


def test_sections_stand_in_their_own_order() -> None:
    made = document(document("", {"router": text("router", "r")}), {"solver": text("solver", "s")})
    assert made.index(TITLES["solver"]) < made.index(TITLES["router"])


def test_what_is_no_section_any_more_goes() -> None:
    assert "Former" not in document(f"{HEAD}\n## Former\n\nfigures\n", {})
