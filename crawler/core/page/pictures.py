"""Screenshots as pictures: compress one, and mark where two of them differ."""

from io import BytesIO

from msgspec import Struct
from PIL import Image, ImageChops, ImageFilter

MAX_PICTURE_BYTES = 2_000_000  # of a compressed picture; a larger one is compressed with losses
TOLERANCE = 32  # of 255, in the brightness of a pixel: more than compression with losses changes
MARGIN_PIXELS = 4  # around a pixel that differs
OUTLINE_PIXELS = 3  # around the margin, so that small marks are seen in a reduced picture
OLD_COLOR, NEW_COLOR = (214, 69, 55), (34, 139, 84)
OPACITY = 64  # of 255, of the marks

# Tried in this order. Without losses, unchanged parts of a page are equal to the pixel.
_COMPRESSIONS: tuple[dict[str, int | bool], ...] = ({"lossless": True, "quality": 40, "method": 2},)
_COMPRESSIONS += tuple({"quality": quality, "method": 2} for quality in (75, 40, 10))


class Picture(Struct, frozen=True):
    """A picture. data: a WebP file."""

    data: bytes
    width: int
    height: int


class MarkedPicture(Struct, frozen=True):
    """A picture with marks where it differs from another one. share: of its area that is marked, 0 to 1."""

    data: bytes
    share: float


def compress_picture(png: bytes) -> Picture:
    """Return a picture as WebP of at most about MAX_PICTURE_BYTES. Raises ValueError if it is no picture."""
    try:
        with Image.open(BytesIO(png), formats=["PNG"]) as opened:
            image = opened.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"this is no picture: {error}") from error
    data = b""
    for options in _COMPRESSIONS:
        data = _encode(image, **options)
        if len(data) <= MAX_PICTURE_BYTES:
            break
    return Picture(data, image.width, image.height)


def mark_differences(picture: bytes, other: bytes, *, is_old: bool) -> MarkedPicture:
    """Mark where a picture differs from another one. is_old: it is the older one.

    If one is larger than the other, white is added to the other. Raises MemoryError if there is no memory for it.
    """
    shown, compared = _decode(picture), _decode(other)
    size = (max(shown.width, compared.width), max(shown.height, compared.height))
    shown, compared = _extend(shown, size), _extend(compared, size)
    mask = ImageChops.difference(shown, compared).convert("L").point([255 * (n > TOLERANCE) for n in range(256)])
    del compared
    mask = mask.filter(ImageFilter.MaxFilter(2 * MARGIN_PIXELS + 1))
    share = mask.histogram()[255] / (size[0] * size[1])
    color = OLD_COLOR if is_old else NEW_COLOR
    shown.paste(color, (0, 0), mask.point([OPACITY * (n > 0) for n in range(256)]))
    outline = ImageChops.subtract(mask.filter(ImageFilter.MaxFilter(2 * OUTLINE_PIXELS + 1)), mask)
    shown.paste(color, (0, 0), outline)
    return MarkedPicture(_encode(shown, quality=75, method=2), share)


def _decode(data: bytes) -> Image.Image:
    try:
        with Image.open(BytesIO(data), formats=["WEBP"]) as opened:
            return opened.convert("RGB")
    except OSError as error:  # the file is our own
        raise MemoryError from error


def _extend(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    extended = Image.new("RGB", size, "white")
    extended.paste(image)
    return extended


def _encode(image: Image.Image, **options: int | bool) -> bytes:
    out = BytesIO()
    try:
        image.save(out, "WEBP", **options)
    except (OSError, ValueError) as error:
        raise MemoryError from error
    return out.getvalue()
