"""Screenshots are compressed within bounds, and the places where two of them differ are marked."""

import random
from io import BytesIO

import pytest
from PIL import Image, ImageChops, ImageDraw

from crawler.core.page.pictures import MAX_PICTURE_BYTES, compress_picture, mark_differences


def draw(*texts: tuple[int, int, str], size: tuple[int, int] = (400, 300)) -> bytes:
    image = Image.new("RGB", size, "white")
    for x, y, text in texts:
        ImageDraw.Draw(image).text((x, y), text, fill="black")
    return encode(image)


def encode(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def decode(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data), formats=["WEBP"]).convert("RGB")


def test_picture_is_compressed_without_losses() -> None:
    png = draw((10, 10, "The mill opens at nine"))
    picture = compress_picture(png)
    assert (picture.width, picture.height) == (400, 300)
    assert len(picture.data) < len(png)
    assert decode(picture.data).tobytes() == Image.open(BytesIO(png)).convert("RGB").tobytes()


def test_picture_that_compresses_badly_stays_within_the_bound() -> None:
    noise = Image.frombytes("RGB", (1280, 2000), random.Random(1).randbytes(1280 * 2000 * 3))
    assert len(compress_picture(encode(noise)).data) <= MAX_PICTURE_BYTES


def test_only_what_differs_is_marked() -> None:
    before, after = (
        compress_picture(draw((10, 10, "The mill"), (10, 200, f"{price} EUR"))).data for price in ("3.50", "3.70")
    )
    marked = mark_differences(after, before, is_old=False)
    assert 0 < marked.share < 0.01
    original, shown = decode(after), decode(marked.data)
    outside, inside = (0, 0, 400, 150), (10, 195, 60, 220)
    differences = [ImageChops.difference(original.crop(area), shown.crop(area)) for area in (outside, inside)]
    histograms = [each.convert("L").histogram() for each in differences]
    least, most = (max(n for n, count in enumerate(each) if count) for each in histograms)
    assert least < 40, "something else is marked"
    assert most > 60, "the price is not marked"
    assert mark_differences(before, before, is_old=True).share == 0


def test_pictures_of_different_heights_are_compared() -> None:
    short, long = (compress_picture(draw((10, 10, "a"), (10, y, "end"), size=(400, y + 40))).data for y in (100, 260))
    marked = mark_differences(short, long, is_old=True)
    assert decode(marked.data).size == (400, 300)
    assert marked.share > 0


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x89PNG\r\n\x1a\n", b"GIF89a"])
def test_what_is_no_picture_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="no picture"):
        compress_picture(data)
