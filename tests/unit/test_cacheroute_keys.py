"""The keyed hash of a routing key."""

import pytest

from kvplan_solver.cacheroute.keys import fingerprint, from_hex, key_hash, to_hex, weak_secret
from kvplan_solver.errors import InvalidInput

SECRET = b"0123456789abcdef"


def test_parts_of_a_key_do_not_run_into_one_another() -> None:
    hashes = {
        key_hash(SECRET, "chat", "header:x-tenant-id", "ab"),
        key_hash(SECRET, "chat", "header:x-tenant-ida", "b"),
        key_hash(SECRET, "chatheader", ":x-tenant-id", "ab"),
        key_hash(SECRET, "code", "header:x-tenant-id", "ab"),
        key_hash(SECRET + b"!", "chat", "header:x-tenant-id", "ab"),
    }
    assert len(hashes) == 5


def test_text_and_its_utf8_bytes_are_the_same_value() -> None:
    assert key_hash(SECRET, "chat", "field:user", "Zoë") == key_hash(SECRET, "chat", "field:user", "Zoë".encode())


def test_lone_surrogate_from_a_json_body_has_a_hash() -> None:
    assert 0 <= key_hash(SECRET, "chat", "field:user", "\ud800") < 2**64


@pytest.mark.parametrize("secret", [b"", b"short", b"x" * 65])
def test_secret_of_an_unusable_length_is_refused_without_being_shown(secret: bytes) -> None:
    for call in (lambda: key_hash(secret, "a", "b", "c"), lambda: fingerprint(secret)):
        with pytest.raises(InvalidInput, match="16 to 64 bytes") as refusal:
            call()
        assert not secret or secret.decode() not in str(refusal.value)


def test_fingerprint_tells_secrets_apart_and_is_no_key() -> None:
    assert fingerprint(SECRET) != fingerprint(SECRET + b"!")
    assert fingerprint(SECRET) != to_hex(key_hash(SECRET, "", "", ""))


def test_hex_text_round_trips_and_sorts_like_the_number() -> None:
    numbers = [0, 1, 255, 2**63, 2**64 - 1]
    texts = [to_hex(number) for number in numbers]
    assert texts == sorted(texts)
    assert [from_hex(text) for text in texts] == numbers


@pytest.mark.parametrize("text", ["", "0", "0" * 15, "0" * 17, "0" * 15 + "G", "A" * 16, " " + "0" * 15])
def test_text_that_is_not_sixteen_lower_case_hex_digits_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="16 lower-case hex digits"):
        from_hex(text)


def test_the_weak_secret_is_valid_and_tells_fleets_apart() -> None:
    first, second = (
        weak_secret("6f1c2c6e-0000-4000-8000-000000000001"),
        weak_secret("6f1c2c6e-0000-4000-8000-000000000002"),
    )
    assert first == b"kvplan-weak-6f1c2c6e-0000-4000-8000-000000000001"
    assert fingerprint(first) != fingerprint(second)
    assert len(weak_secret("x" * 100)) == 64
    assert len(weak_secret("")) == 16
