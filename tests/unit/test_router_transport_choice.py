"""Which transport a setting means, with the extension and without it."""

import pytest

from kvplan_router.settings import BadSetting
from kvplan_router.transport import choice


def installed(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda _: object() if there else None)


@pytest.mark.parametrize(
    ("setting", "there", "native"),
    [("auto", True, True), ("auto", False, False), ("native", True, True), ("aio", True, False), ("aio", False, False)],
)
def test_auto_is_native_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, setting: str, there: bool, native: bool
) -> None:
    installed(monkeypatch, there)
    assert choice.uses_native(setting) is native


def test_native_that_is_not_installed_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, False)
    with pytest.raises(BadSetting, match="install kvplan-router-native, or use auto or aio"):
        choice.uses_native("native")
