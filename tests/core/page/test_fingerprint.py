"""Fingerprints and digests of texts."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simhash import Simhash

from crawler.core.page.fingerprint import (
    MAX_WORDS,
    Fingerprint,
    compute_digest,
    compute_fingerprint,
    count_distance_bits,
    mix_shingles,
)
from crawler.core.page.text_words import hash_each

VOCABULARY = [f"word{n}" for n in range(2000)]


def prose(seed: int, words: int = 800) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=words)


def of(text: str) -> Fingerprint:
    found = compute_fingerprint(text)
    assert found is not None
    return found


@given(st.text())
def test_any_nonblank_text_has_a_fingerprint(text: str) -> None:
    found = compute_fingerprint(text)
    assert (found is None) == (not text.split())
    assert found is None or 0 <= found < 2**64


@pytest.mark.parametrize("times", [1, 49, 50, 51, 255, 256, 257, 65_536, 1_000_000])
def test_one_word_a_million_times_has_a_fingerprint(times: int) -> None:
    assert of("word " * times) != of("other " * times)


def test_word_weight_above_a_byte_does_not_overflow() -> None:
    # The frequent shingle decides nearly every bit, whether it occurs 255, 256 or 512 times.
    rest = " ".join(prose(1, 60))
    heavy = [of("heavy " * times + rest) for times in (240, 255, 258, 260, 514, 5000)]
    assert all(count_distance_bits(heavy[0], each) <= 2 for each in heavy)


def test_fingerprints_are_stable_across_releases() -> None:
    # Stored fingerprints are compared with new ones, so another algorithm would need another column.
    assert of("The quick brown fox jumps over the lazy dog") == 16249430220917664214
    assert of("日本語のテキスト") == 1153085685350568968


@given(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=600))
def test_fingerprint_equals_that_of_the_simhash_package(words: list[str]) -> None:
    hashes = mix_shingles(hash_each([word.encode() for word in words]))
    features = [str(n) for n in range(len(hashes))]
    by_package = Simhash(
        features, hashfunc=lambda feature: int(hashes[int(feature)]).to_bytes(8) if feature != b"test" else b""
    )
    assert of(" ".join(words)) == by_package.value


def test_small_edit_is_near_and_another_text_is_far() -> None:
    words = prose(1)
    page = of(" ".join(words))
    words[400] = "changed"
    assert count_distance_bits(page, of(" ".join(words))) <= 6
    assert count_distance_bits(page, of(" ".join(prose(2)))) >= 18


def test_case_whitespace_and_punctuation_do_not_count() -> None:
    assert of("One two,\n three: four.") == of("one  TWO three four")
    assert of("one two three") != of("one three two")


def test_text_of_punctuation_alone_has_a_fingerprint() -> None:
    assert of("— … !") != of("? ? ?")


def test_text_without_spaces_changes_little_with_one_word() -> None:
    random_text = "".join(random.Random(3).choices("日本語漢字文章単語変更検査試験機械学習", k=600))
    edited = random_text[:300] + "龍" + random_text[301:]
    assert 0 < count_distance_bits(of(random_text), of(edited)) <= 8


def test_words_beyond_the_limit_cost_nothing() -> None:
    long = " ".join(prose(1, MAX_WORDS))
    assert of(long) == of(long + " and more" * 1000)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_distance_is_symmetric_and_zero_only_for_equals(one: int, other: int) -> None:
    bits = count_distance_bits(Fingerprint(one), Fingerprint(other))
    assert (
        bits
        == count_distance_bits(Fingerprint(other), Fingerprint(one))
        == sum((one ^ other) >> bit & 1 for bit in range(64))
    )
    assert (bits == 0) == (one == other)


def test_page_of_800_words_takes_under_half_a_millisecond() -> None:
    pages = [" ".join(prose(seed)) for seed in range(40)]
    began = time.process_time()
    for page in pages:
        compute_fingerprint(page)
    assert (time.process_time() - began) / 40 < 0.002  # 0.4 ms on a quiet machine


def test_digest_is_16_bytes_of_all_the_data() -> None:
    assert len(compute_digest(b"")) == 16
    assert compute_digest(b"a" * 10_000) != compute_digest(b"a" * 9_999 + b"b")
